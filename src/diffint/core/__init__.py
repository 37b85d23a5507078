"""Shared by all other folders: settings, errors, the fitted model, scalers, decoders."""
