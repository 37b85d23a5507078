"""The layout of a packed model: indices into the flat vectors that scoring works on.

`packed_members` builds the vectors; compiled functions take them instead of dozens of arrays.

places: (N_PLACES,) int64, sizes, flags, and the start of each array within a member's parameters or
within the scratch space. The names below are indices into it. "Padded" sizes are rounded up to
whole vectors (LANES).
floats: the float32 parameters of all members, after floats[0], the bound on 1/membership.
doubles: their float64 parameters, after doubles[0], which is 1/τ, and doubles[1 : 1 + features],
the number of members with a value of each feature in training.
"""

from __future__ import annotations

import numpy as np

from ...core.scaling.curves import MOST_KNOTS

# Rows go through in tiles: everything about a tile stays in the second-level cache while a member
# is applied to it, and so do the parameters of the member while it is applied to a chunk of rows.
TILE_ROWS = 32
CHUNK_ROWS = 512
DECODED_ROWS = 8  # rows of a tile that share one list of units to decode

# Sizes and flags. UNITS, HIDDEN, OUTPUTS and CELLS (features) are padded.
FEATURES, UNITS, HIDDEN, OUTPUTS, MEMBERS = 0, 1, 2, 3, 4
CELLS, GROUPS, TRUE_UNITS, TRUE_HIDDEN = 5, 6, 7, 8  # GROUPS: of four features
CERTIFIED, BY_DIFFERENCE, CLIPS, UNCLIPPED = 9, 10, 11, 12
# Length of one member's parameters in float32 and float64, and where the first member starts.
FLOATS, DOUBLES, FIRST_FLOAT, FIRST_DOUBLE = 13, 14, 15, 16

# Starts within a member's float32 parameters.
P, Q, C = 17, 18, 19  # with BY_DIFFERENCE: lower bounds, upper bounds, unused
HIDDEN_WEIGHT, HIDDEN_BIAS, GAIN, SHIFT, OUTPUT_WEIGHT, OUTPUT_BIAS = 20, 21, 22, 23, 24, 25
BOX_LOWER, BOX_UPPER, CENTER, BOX_HALF_WIDTH = 26, 27, 28, 29

# Starts within the float32 scratch space, then within the int32 scratch space.
CLIPPED, TARGET, U, V, CODE, PRE, ACTIVATION, OUTPUT, SEEN = 30, 31, 32, 33, 34, 35, 36, 37, 38
EXPONENT, LISTED, EVERY = 39, 40, 41
# The distance from kept rows: their number in groups of LANES and whether missing cells count;
# starts of the parameters, of the float32 and of the int32 scratch space.
KEPT_GROUPS, MISSING_COUNTS, KEPT, KEPT_WEIGHT = 42, 43, 44, 45
WEIGHTED, SMALLEST, MASK, NEAREST = 46, 47, 48, 49
# Boxes around the groups, in blocks of LANES groups; distances of the rows from the boxes; groups
# to compare a row with; the nearest rows.
GROUP_MIDDLE, GROUP_HALF, BOUND, CANDIDATES, NEAREST_ROW = 50, 51, 52, 53, 54
N_PLACES = 55

# Starts within a member's float64 parameters, in multiples of CELLS.
OFFSET, DIVISOR, CONSTANT, LOWER, UPPER = 0, 1, 2, 3, 4
TO_FACTOR, TO_OFFSET = 5, 6  # back to original units; 0 for a feature that was never seen
MISSING_ERROR, MISSING_SURPRISE = 7, 8
N_DOUBLES = 9
# After them: whether a feature is constant or was never seen, the number of features that count,
# the weight of the distance, the sum of all surprise, the number of curves; then the curves.
SPECIAL, COUNTED, DISTANCE_WEIGHT, ALL_SURPRISE, CURVES = 0, 1, 2, 3, 4
N_SINGLE = 5
# A curve: its feature, its number of knots, their values, their scaled values, their runs.
CURVE = 2 + 3 * MOST_KNOTS

ITEM = 4  # bytes of a float32 or int32
NEVER = np.int32(1 << 29)  # larger than any exponent of a box: the unit is never chosen
