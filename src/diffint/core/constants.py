"""Numeric constants shared by the reference definition and every engine."""

MIN_MEMBERSHIP = 1e-8  # the smallest membership; lower ones are raised to it
NORM_EPSILON = 1e-5  # added to the variance in the decoder's LayerNorm
LARGEST_WEIGHT = 1e15  # of a network; with larger ones sums and squares could overflow float32
LOSS_EPSILON = 1e-8  # added to the mean squared error under the root of the training loss

# Scaled values that are not clipped to the training range are limited to this; larger ones could
# overflow float32 when squared.
UNCLIPPED_LIMIT = 1e15
# The scaled distance between a constant feature's value and any other value, without clipping.
CONSTANT_DISTANCE = 2.0

# Limits in original units. Training values are at most the first, so that every difference and
# every mean of values is finite; reconstructions and ranges are cut to the second.
LARGEST_TRAINING_VALUE = 1e303
LARGEST_ORIGINAL = 1e305

# Robust memberships, by which a row is compared with patterns and each value with the rest of its
# row: none counts less than this, so that a single wrong value cannot rule a unit out.
MEMBERSHIP_FLOOR = 1 / 4
# How much more a distance counts where it lies beyond every training value.
BEYOND_WEIGHT = 4.0

# Share of missing training cells from which one more missing cell says nothing about a row.
COMMONLY_MISSING = 0.05
