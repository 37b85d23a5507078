"""From scores to decisions: thresholds and p-values."""
