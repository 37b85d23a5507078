"""Numeric constants shared by the reference definition and every engine."""

MIN_MEMBERSHIP = 1e-8  # the smallest membership; lower ones are raised to it
NORM_EPSILON = 1e-5  # added to the variance in the decoder's LayerNorm
LOSS_EPSILON = 1e-8  # added to the mean squared error under the root of the training loss
