"""Reports: paper-shaped tables with intervals and plots, from runs, scored predictions and official files."""
