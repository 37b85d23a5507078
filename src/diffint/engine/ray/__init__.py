"""Training on the workers of a Ray cluster (needs the extra ``ray``)."""
