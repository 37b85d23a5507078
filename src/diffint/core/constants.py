"""Numeric constants shared by the reference definition and every engine."""

MIN_MEMBERSHIP = 1e-8  # the smallest membership; lower ones are raised to it
NORM_EPSILON = 1e-5  # added to the variance in the decoder's LayerNorm
LOSS_EPSILON = 1e-8  # added to the mean squared error under the root of the training loss

# Robust memberships, by which a row is compared with patterns and each value with the rest of its
# row: none counts less than this, so that a single wrong value cannot rule a unit out.
MEMBERSHIP_FLOOR = 1 / 4
# How much more a distance counts where it lies beyond every training value.
BEYOND_WEIGHT = 4.0
