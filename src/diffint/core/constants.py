"""Numbers that the definition and every engine share."""

MIN_MEMBERSHIP = 1e-8  # a membership is never taken below this
NORM_EPSILON = 1e-5  # added to the variance in the decoder's LayerNorm
LOSS_EPSILON = 1e-8  # added to the mean squared error under the root of the training loss
