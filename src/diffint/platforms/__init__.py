"""Fitted detectors on engines and registries that exist: Spark and others, each an extra."""
