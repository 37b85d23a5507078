"""The definition in plain NumPy (float64) and torch, which the fast engines are tested against."""
