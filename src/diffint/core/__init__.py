"""Values that everything shares: settings, errors, the fitted model, scalers, decoders."""
