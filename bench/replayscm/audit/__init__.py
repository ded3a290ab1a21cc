"""The audit of a pool, what `calibrant audit` does: findings of one instance, records, text, HTML."""
