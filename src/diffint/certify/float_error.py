"""Bounds on the error of the scorer's float32 arithmetic.

Certificates bound the score that `score.scoring` computes in float32, not the exact one. The
difference is bounded here step by step, for the code of `intervals.py`, `score_encoding.py` and
`score_decoding.py` in `engine/cpu/`. No bound depends on the row or region, so bounds on scores
stay monotone.
With u = 2⁻²⁴, one float32 operation has a relative error of at most u; a sum of n products in any
order has an error of at most γ_n = n·u / (1 − n·u) times the sum of magnitudes; and
`intervals.exp` and `intervals.log` have a relative error of at most 3u (the largest measured over
25 million arguments is 1.5u).

Encoder, by exponentials. An argument x/τ is rounded twice (the inverse and the product), so e^(x/τ)
has a relative error of at most 2u·|x/τ| + 3u. The same holds for P = e^(lower/τ) and
Q = e^(−upper/τ), whose arguments are clipped at 49. So in 1/I = 1 + P·Q + v·P + u·Q every term
except the 1 has a relative error of at most `edge`. Three additions, the multiplication into the
product over features and the effect of the clipping at 49 (below e⁻¹⁸) add less than 5u: `feature`.
The factor of a missing cell is multiplied in and divided out again: the same 5u. A division and a
multiplication turn the product into a code: `unit`.

Encoder, by differences (small τ, or values that are not clipped). The argument (lower − x)/τ is
rounded three times; where it exceeds log 1e8 < 19 the clamp binds, so `edge` is at most 3u·20 + 3u.
The logarithms and their running sum have relative errors of at most 3u and features·u: `total`.
The softmax rounds differences of up to 87 once: `unit`. (`score_encoding` multiplies the factors
instead of adding logarithms, as the exponentials' form does: it has no error `total`, and of `unit`
only the division and the multiplication.)

Both divide the codes by their sum. Its relative error of at most (units + 3)·u is the same for all
codes: `scale`.

Codes below `CODE_FLOOR` are set to 0, so that most units need not be decoded. With K units they sum
to less than δ = K·CODE_FLOOR. The other codes, whose sum is taken without them, are larger by a
factor of at most 1/(1 − δ). A pre-activation loses at most δ·max|w| by the first and moves by at
most δ·max|w| by the second: together 2·δ·max|w|, which `decoder_rounding` adds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.model import Member
from ..engine.cpu import intervals
from ..engine.cpu.score_encoding import CODE_FLOOR

UNIT_ROUNDOFF = 2.0**-24
# Error allowed for float64 sums of up to a few thousand terms; far above their rounding error.
SLIGHT = 1e-11
# A row's score may differ by this, relative to 1 + score, if it is scored alone or with others.
ALONE = 1e-9
_EXP = 3 * UNIT_ROUNDOFF
_EXPONENT_LIMIT = 49.0

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class EncoderRounding:
    """Bounds on the errors of a computed code; each is derived in the module's docstring.

    The error of a unit's log box membership is at most Σ_j (edge·(1 − I_kj) + feature) + unit
    + total·|log box membership|. In addition, all codes have a common factor 1 ± scale.
    """

    edge: float
    feature: float
    unit: float
    total: float
    scale: float

    def log_box(self, n_features: int, lowest: NDArray[np.float64]) -> NDArray[np.float64]:
        """Error of log box memberships that are at least `lowest`, for any row."""
        return n_features * (self.edge + self.feature) + self.unit - self.total * lowest


def encoder_rounding(member: Member, temperature: float) -> EncoderRounding:
    """Error bounds of one member's encoder."""
    u = UNIT_ROUNDOFF
    n_units, n_features = member.center.shape
    largest = member.scaler.largest_input
    scale = (n_units + 4) * u
    if largest / temperature > intervals.SAFE_EXPONENT:
        total = (n_features + 4) * u
        return EncoderRounding(3 * u * 20 + _EXP, 4 * u, 87 * u + _EXP + 2 * u, total, scale)
    ends = max(float(np.abs(member.lower).max()), float(np.abs(member.upper).max()))
    bounds = min(ends / temperature, _EXPONENT_LIMIT)
    cells = largest / temperature
    edge = 1.01 * (2 * u * (max(cells, bounds) + bounds) + 2 * _EXP + 2 * u)
    return EncoderRounding(edge, 5 * u, 4 * u, 0.0, scale)


@dataclass(frozen=True)
class DecoderRounding:
    """Bounds on the errors of the decoder's two linear maps.

    hidden: (hidden,) absolute error of the pre-activations, including the codes' common factor.
    hidden_size: (hidden,) bound on the magnitude of the pre-activations.
    output: error of a sum over the hidden layer, relative to the sum of magnitudes.
    """

    hidden: Vector
    hidden_size: Vector
    output: float


def decoder_rounding(member: Member, encoder: EncoderRounding) -> DecoderRounding:
    """Error bounds of one member's decoder."""
    weight = member.decoder.hidden_weight.astype(np.float64)
    n_units, width = weight.shape
    size = np.abs(member.decoder.hidden_bias.astype(np.float64)) + np.abs(weight).max(axis=0)
    # The codes that are set to 0; the last hundredth is for the rounding of those near the floor.
    dropped = 2.01 * n_units * CODE_FLOOR
    relative = sum_error(n_units + 2) + encoder.scale + dropped
    return DecoderRounding(relative * size, (1.0 + relative) * size, sum_error(width + 2))


def sum_error(n: int) -> float:
    """γ_n: error of a sum of n products, relative to the sum of magnitudes."""
    return n * UNIT_ROUNDOFF / (1.0 - n * UNIT_ROUNDOFF)
