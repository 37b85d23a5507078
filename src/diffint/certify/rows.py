"""The clipping margin: a proven lower bound on a row's score (certified decoder).

For every code f_0, by the reverse triangle inequality,

    error(x) ≥ (1/d)·‖x − g(f_0)‖₁ − (L/√d)·‖f(x) − f_0‖₂,

where L is the product of the exact largest singular values of the decoder's two maps. A row beyond
the envelope of all units on some features has a code near the *empty code* f_0 of that side
pattern. Its distance from f_0 is bounded without computing the code, one feature at a time. Missing
features are left out of the sums; leaving out outputs cannot increase L. The other parts of the
score, the distance from the nearest kept row and what missing cells count, are not bounded but
computed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from ..core.checks import check_index, check_real
from ..core.config import Config
from ..core.decoder import DECODERS, CertifiedDecoder, Decoder
from ..core.errors import InputError
from ..core.immutable import Immutable
from ..core.model import FlagRates, Member
from ..core.row_labels import index_for
from ..engine.cpu.margins import row_margins
from ..engine.reference.score import missing_parts
from ..engine.threads import run_blocks
from ..score.prepared import PreparedMembers, PreparedModel
from ..score.scoring import anomaly_scores
from .bound_propagation import IntervalNetwork
from .float_error import ALONE, SLIGHT, decoder_rounding, encoder_rounding
from .kept_distances import KeptDistances

if TYPE_CHECKING:
    import pandas

MARGIN = 0.2  # η: smallest distance, in scaled units, that counts as beyond an interval's end
ACTIVE_THRESHOLD = 0.9  # θ: an interval with a lower mean membership constrains inliers
_BLOCK_ROWS = 2_048
FLAGS = {
    "out_of_support": "outside the soft box of every unit",
    "strict": "beyond every constraining interval of some unit",
    "strict_envelope": "beyond all units on every feature that any of them constrains",
    "beyond_envelope": "beyond all units on some feature",
}

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate(Immutable):
    """Proven lower bounds on scores, their parts, and flags.

    (rows,), means over the members; no bound is below 0:
    score: the anomaly score.
    bound: a-priori bound from the features one at a time, without the row's code or a decoder pass.
    bound_at_row: bound with the actual distance of the codes, a diagnostic.

    (members, rows), the parts of the bounds:
    image_distance: proven error whatever the code: the distance from all outputs of the decoder.
    distance: (1/d)·‖x − g(f_0)‖₁.
    beside_error: the other parts of the score: the distance from the nearest kept row, missing
        cells, and the surprise of categories.
    kappa: bound on ‖f(x) − f_0‖₂ from the features one at a time; code_distance: that distance.
    slack, slack_at_row: what is subtracted for the distance of the codes.
    rounding: what is subtracted for float32 arithmetic.

    lipschitz_bound: (members,) L.
    pattern: (members, rows, features) +1 above or −1 below the intervals of all units by at least
        `margin`, after the clipping of the encoder.

    (rows,), flags raised by all members:
    out_of_support: every unit's box membership is below σ(−margin/τ).
    strict: beyond every active interval of some unit by `margin` (active: the mean membership of
        inliers is below `active_threshold`).
    strict_envelope: beyond the envelope of all units on every active feature.
    n_beyond: number of features beyond the envelope.
    active_threshold, margin: the paper's θ and η; the latter in scaled units.

    n_vacuous_units: (members,) units without an active interval, which no row can violate.
    n_units: number of units of a member.
    inlier_rates: how often training rows raise the flags; None if the model file has no rates, or
        for another threshold or margin than it was measured with.
    index: the labels of the rows, None if they have positions only.
    categories: the positions of the features that are categories.
    """

    feature_names: tuple[str, ...]
    score: Array
    bound: Array
    bound_at_row: Array
    image_distance: Array
    distance: Array
    beside_error: Array
    kappa: Array
    code_distance: Array
    slack: Array
    slack_at_row: Array
    rounding: Array
    lipschitz_bound: Array
    pattern: NDArray[np.int8]
    out_of_support: NDArray[np.bool_]
    strict: NDArray[np.bool_]
    strict_envelope: NDArray[np.bool_]
    n_beyond: NDArray[np.int64]
    n_vacuous_units: NDArray[np.int64]
    n_units: int
    inlier_rates: FlagRates | None
    index: pandas.Index | None = None
    categories: frozenset[int] = frozenset()
    active_threshold: float = ACTIVE_THRESHOLD
    margin: float = MARGIN

    def __len__(self) -> int:
        return len(self.score)

    @property
    def beyond_envelope(self) -> NDArray[np.bool_]:
        """(rows,) whether the row is beyond the envelope of all units on some feature."""
        return self.n_beyond > 0

    def to_frame(self) -> pandas.DataFrame:
        """One line per row: score, bounds, parts (means over the members) and flags.

        The index is that of the table, or positions.
        """
        import pandas

        row = np.arange(len(self))
        columns: dict[str, NDArray[Any]] = {"row": row}
        columns |= {n: getattr(self, n) for n in ("score", "bound", "bound_at_row")}
        parts = ("distance", "beside_error", "slack", "slack_at_row", "rounding")
        columns |= {name: getattr(self, name).mean(axis=0) for name in parts}
        flags = ("n_beyond", "out_of_support", "strict", "strict_envelope")
        columns |= {name: getattr(self, name) for name in flags}
        return pandas.DataFrame(columns, index=index_for(row, self.index, len(self)))

    def rates(self) -> pandas.DataFrame:
        """One line per flag: the share of these rows and of training inliers that raise it."""
        import pandas

        rates = self.inlier_rates
        return pandas.DataFrame(
            {
                "flag": list(FLAGS),
                "meaning": list(FLAGS.values()),
                "share": [float(getattr(self, name).mean()) for name in FLAGS],
                "inlier_rate": [getattr(rates, name) if rates else np.nan for name in FLAGS],
            }
        )

    def text(self, row: int | None = None) -> str:
        """The certificate as text, of one row (given by its position, from 0) or of all rows.

        Bounds are rounded outwards, so that every statement is proven.
        """
        from ..show.wording.certificates import certificate_text

        if row is None:
            return "\n\n".join(self.text(i) for i in range(len(self)))
        return certificate_text(self, check_index(row, len(self), "row", "certified"))

    def _repr_html_(self) -> str:
        from ..show.notebook import certificate_html

        return certificate_html(self)

    def __repr__(self) -> str:
        return f"Certificate({len(self)} rows, {int((self.bound > 0).sum())} with a positive bound)"


def certify(
    prepared: PreparedModel,
    x: NDArray[Any],
    n_jobs: int = 1,
    index: pandas.Index | None = None,
    *,
    active_threshold: float = ACTIVE_THRESHOLD,
    margin: float = MARGIN,
) -> Certificate:
    """The clipping margin of rows in original units. x: (rows, features); index: their labels

    Both bounds hold for every margin: it chooses f_0, and the inequality is true for any code f_0.
    """
    model = prepared.model
    active_threshold = check_real("active_threshold", active_threshold, at_least=0.0)
    margin = check_real("margin", margin, above=0.0)
    if not DECODERS[model.config.decoder].certified:
        raise InputError(
            "certify needs a decoder with a Lipschitz bound, which the free decoder does not have; "
            'fit DiffInt(decoder="certified"), or use certify_region, which works for any decoder'
        )
    every = prepared.derived(MemberMargin)
    margins = [_member_margins(m, x, n_jobs, active_threshold, margin) for m in every]
    usual = (active_threshold, margin) == (ACTIVE_THRESHOLD, MARGIN)
    vacuous = [~active(m.member, active_threshold).any(axis=1) for m in every]
    parts = {name: np.array([getattr(m, name) for m in margins]) for name in _PARTS}
    images = [
        _image_distances(network, model.config, x, n_jobs)
        for network in prepared.derived(IntervalNetwork)
    ]
    parts["image_distance"] = np.array(images)
    certain, beside = parts["distance"] - parts["rounding"], parts["beside_error"]
    return Certificate(
        feature_names=model.feature_names,
        categories=frozenset(model.categories),
        score=anomaly_scores(prepared, x, n_jobs),
        bound=(np.maximum(certain - parts["slack"], parts["image_distance"]) + beside).mean(axis=0),
        bound_at_row=(
            np.maximum(certain - parts["slack_at_row"], parts["image_distance"]) + beside
        ).mean(axis=0),
        **parts,
        lipschitz_bound=np.array([m.lipschitz for m in every]),
        pattern=np.array([m.pattern for m in margins]),
        **_model_flags(margins),
        n_vacuous_units=np.array([int(units.sum()) for units in vacuous]),
        n_units=model.config.n_units,
        inlier_rates=model.flag_rates if usual else None,
        index=index,
        active_threshold=active_threshold,
        margin=margin,
    )


def flag_rates(prepared: PreparedMembers, x: NDArray[Any], n_jobs: int = 1) -> FlagRates:
    """How often rows in original units raise the flags. x: (rows, features)"""
    every = prepared.derived(MemberMargin)
    flags = _model_flags([_member_margins(margin, x, n_jobs) for margin in every])
    flags["beyond_envelope"] = flags["n_beyond"] > 0
    names = (f.name for f in fields(FlagRates) if f.name != "n_rows")
    return FlagRates(n_rows=len(x), **{name: float(flags[name].mean()) for name in names})


def common_pattern(pattern: NDArray[np.int8]) -> NDArray[np.int8]:
    """The side if all members agree on it, else 0. (members, …, features) → (…, features)"""
    return np.where((pattern == pattern[0]).all(axis=0), pattern[0], 0).astype(np.int8)


def active(member: Member, threshold: float = ACTIVE_THRESHOLD) -> NDArray[np.bool_]:
    """Whether each interval constrains inliers. → (units, features)"""
    return member.mean_membership < threshold


def empty_codes(
    patterns: NDArray[np.int8], lower: Array, upper: Array, temperature: float
) -> Array:
    """f_0 of side patterns. patterns: (patterns, features) → (patterns, units)

    lower, upper: (units, features). Features beyond the clamp are 2 or −2 and left out: they are
    equal for all units.
    """
    above, below = (patterns == 1).astype(np.float64), (patterns == -1).astype(np.float64)
    top, bottom = upper.max(axis=0), lower.min(axis=0)  # keeps exponents small
    logits = above @ (upper - top).T + below @ (bottom - lower).T
    return np.asarray(softmax(logits / temperature, axis=1), dtype=np.float64)


def lipschitz_bounds(decoder: Decoder) -> tuple[float, float]:
    """Largest singular values of both maps, rounded up so that they are true bounds."""
    if not isinstance(decoder, CertifiedDecoder):
        raise TypeError("only a certified decoder has a Lipschitz bound")
    hidden, output = decoder.spectral_norms()
    return hidden * (1 + SLIGHT), output * (1 + SLIGHT)


# --- One member --------------------------------------------------------------------------------

_PARTS = ("distance", "beside_error", "kappa", "code_distance", "slack", "slack_at_row", "rounding")
_MEMBER_FLAGS = ("out_of_support", "strict", "strict_envelope")


@dataclass(frozen=True)
class _Margins:
    """One member's part of a certificate; (rows,) each, and pattern (rows, features)."""

    distance: Array
    beside_error: Array
    kappa: Array
    code_distance: Array
    slack: Array
    slack_at_row: Array
    rounding: Array
    pattern: NDArray[np.int8]
    out_of_support: NDArray[np.bool_]
    strict: NDArray[np.bool_]
    strict_envelope: NDArray[np.bool_]


def _model_flags(margins: list[_Margins]) -> dict[str, Any]:
    """Flags of the model: those that all members raise."""
    flags: dict[str, Any] = {
        name: np.all([getattr(m, name) for m in margins], axis=0) for name in _MEMBER_FLAGS
    }
    agreed = common_pattern(np.array([m.pattern for m in margins]))
    flags["n_beyond"] = (agreed != 0).sum(axis=1)
    return flags


def _member_margins(
    member: MemberMargin,
    x: NDArray[Any],
    n_jobs: int,
    active_threshold: float = ACTIVE_THRESHOLD,
    margin: float = MARGIN,
) -> _Margins:
    """One member's margins of rows in original units, block by block. x: (rows, features)"""
    n_rows = len(x)
    empty: dict[str, NDArray[Any]] = {name: np.empty(n_rows) for name in _PARTS}
    empty |= {name: np.empty(n_rows, dtype=bool) for name in _MEMBER_FLAGS}
    result = _Margins(**empty, pattern=np.empty(x.shape, dtype=np.int8))

    def fill_block(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        block = member.of(x[rows], active_threshold, margin)
        for field in fields(_Margins):
            getattr(result, field.name)[rows] = getattr(block, field.name)

    run_blocks(fill_block, range(0, n_rows, _BLOCK_ROWS), n_jobs)
    return result


def _image_distances(
    network: IntervalNetwork, config: Config, x: NDArray[Any], n_jobs: int
) -> Array:
    """Lower bounds on one member's errors, whatever the codes. x: (rows, features) → (rows,)"""
    errors = np.empty(len(x))

    def fill_block(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        target = network.scaler.target(x[rows], config.error)
        count = np.maximum((~np.isnan(target)).sum(axis=1), 1)
        if config.missing == "signal":
            count[:] = network.scaler.n_seen
        errors[rows] = network.least_errors(target) / count

    run_blocks(fill_block, range(0, len(x), _BLOCK_ROWS), n_jobs)
    return errors


class MemberMargin:
    """The clipping margin of one member, in float64 except for the scaled float32 rows."""

    def __init__(self, config: Config, member: Member) -> None:
        self.temperature, self.error = config.temperature, config.error
        self.scaler, self.decoder = member.scaler, member.decoder
        self.member, self.kept = member, KeptDistances(member)
        self.missing_counts = config.missing == "signal"
        self.lower, self.upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
        self.encoder_rounding = encoder_rounding(member, self.temperature)
        rounding = decoder_rounding(member, self.encoder_rounding)
        hidden, output = lipschitz_bounds(member.decoder)
        self.lipschitz = hidden * output
        # Errors of the pre-activations pass through the output map, whose sums are rounded too.
        self.hidden, self.hidden_error = hidden, float(np.linalg.norm(rounding.hidden))
        self.output_error = rounding.output
        self.passed_error = output * self.hidden_error
        self._columns_first = (
            np.ascontiguousarray(self.lower.T),
            np.ascontiguousarray(self.upper.T),
        )
        self.columns = np.linalg.norm(self.decoder.output_weight.astype(np.float64), axis=0)

    def of(self, x: NDArray[Any], active_threshold: float, margin: float) -> _Margins:
        """Margins of rows in original units. x: (rows, features)"""
        constraining = active(self.member, active_threshold)
        clipped, unclipped = self.scaler.transform(x)
        narrow = unclipped if self.error == "unclipped" else clipped
        target = narrow.astype(np.float64)
        n_rows, n_units = len(x), len(self.lower)
        omega, lowest = np.empty((2, n_rows))
        sides, strict = np.empty(x.shape, dtype=np.int8), np.empty(n_rows, dtype=bool)
        log_box = np.empty((n_rows, n_units))
        row_margins(
            clipped,
            *self._columns_first,
            np.ascontiguousarray(constraining.T, dtype=np.float64),
            self.temperature,
            margin,
            omega,
            lowest,
            sides,
            strict,
            log_box,
        )
        patterns, inverse = np.unique(sides, axis=0, return_inverse=True)
        empty = empty_codes(patterns, self.lower, self.upper, self.temperature)
        inverse = inverse.ravel()

        present = ~np.isnan(target)
        n_present = np.maximum(present.sum(axis=1), 1)
        count, beside = n_present.astype(np.float64), self.kept.least(narrow)
        if self.missing_counts:
            count[:] = self.scaler.n_seen
            beside += missing_parts(self.member, ~present).sum(axis=1) * (1.0 - SLIGHT)
        if len(self.member.associations.categories):
            surprise = self.member.associations.parts(x).sum(axis=1) * (1.0 - ALONE)
            beside += surprise * (count / self.scaler.n_seen)
        attractor, sizes = self.decode(empty)
        away = np.abs(np.where(present, target - attractor[inverse], 0.0))
        distance = away.sum(axis=1) / count

        # How much farther from f_0 the computed code may be than the exact one.
        error = self.encoder_rounding.log_box(x.shape[1], lowest) if n_units > 1 else 0.0
        common = self.encoder_rounding.scale
        # No code is farther from f_0 than the farthest single unit.
        farthest = np.sqrt(np.max(1.0 - 2.0 * empty, axis=1) + (empty**2).sum(axis=1))[inverse]
        kappa = np.minimum(_code_distance(omega), farthest)
        reach = np.minimum(_code_distance(omega + 2 * error), farthest) + common
        code_distance = np.linalg.norm(softmax(log_box, axis=1) - empty[inverse], axis=1)
        reach_at_row = code_distance + _code_distance(2 * error) + common
        scale = self.lipschitz * np.sqrt(n_present) / count
        anything = present.any(axis=1)  # a row without values has no error
        # Magnitude of the sums that give the outputs: at f_0, plus the largest change of the
        # activations away from it.
        moved = self.hidden * reach + self.hidden_error
        summed = np.where(present, sizes[inverse] + moved[:, None] * self.columns, 0.0)
        rounding = self.passed_error * np.sqrt(n_present) / count
        rounding += SLIGHT * (1.0 + away.max(axis=1))
        rounding += self.output_error * summed.sum(axis=1) / count

        side = np.sign(sides)
        constrained = constraining.any(axis=0)
        return _Margins(
            distance=distance,
            beside_error=beside / count,
            kappa=kappa,
            code_distance=code_distance,
            slack=np.where(anything, scale * reach, 0.0),
            slack_at_row=np.where(anything, scale * np.minimum(reach_at_row, reach), 0.0),
            rounding=rounding,
            pattern=side,
            out_of_support=log_box.max(axis=1) < log_expit(-margin / self.temperature),
            strict=strict,
            strict_envelope=((side != 0) | ~constrained).all(axis=1) & constrained.any(),
        )

    def decode(self, code: Array) -> tuple[Array, Array]:
        """g of codes, and the same sums of magnitudes. code: (codes, units) → (codes, features)"""
        hidden = self.decoder.activations(code)
        weight = self.decoder.output_weight.astype(np.float64)
        bias = self.decoder.output_bias.astype(np.float64)
        return hidden @ weight + bias, hidden @ np.abs(weight) + np.abs(bias)


def _code_distance(omega: Any) -> Any:
    """κ: bound on the distance of two codes whose logit differences have a spread of omega.

    Their total variation is at most tanh(ω/4), and ‖·‖₂ is at most √2 times that.
    """
    return np.sqrt(2.0) * np.tanh((omega + SLIGHT) / 4.0)
