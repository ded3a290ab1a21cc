"""What people type about laboratories, and what their readings left open."""
