"""The definition, plain and in float64 or torch: what the fast engines are tested against."""
