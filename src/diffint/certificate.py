"""The clipping margin: a proven lower bound on a row's score (certified decoder).

For every code f_0, by the reverse triangle inequality,

    score(x) ≥ (1/d)·‖x − g(f_0)‖₁ − (L/√d)·‖f(x) − f_0‖₂,

with L the product of the exact largest singular values of the decoder's two maps. A row beyond
the envelope of all units on some features has a code near the *empty code* f_0 of that pattern,
and how near is known without the code, from one feature at a time. Missing features count neither
in d nor in the sums; leaving outputs out cannot raise L.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, softmax

from .asked import asked_index
from .compiled.margins import row_margins
from .errors import InputError
from .formatting import number, rounded_down, rounded_up
from .frozen import Frozen
from .model import FittedModel, FlagRates, Member
from .rounding import SLIGHT, decoder_rounding, encoder_rounding
from .scoring import anomaly_scores, run_blocks

if TYPE_CHECKING:
    import pandas

ETA = 0.2  # η: how far beyond an interval's end is beyond, in scaled units
ACTIVE_BELOW = 0.9  # θ: an interval whose mean membership is lower constrains inliers
_BLOCK_ROWS = 2_048
_FLAGS = {
    "out_of_support": "outside the soft box of every unit",
    "strict": "beyond every constraining interval of some unit",
    "strict_envelope": "beyond all units on every feature that any of them constrains",
    "beyond_envelope": "beyond all units on some feature",
}

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate(Frozen):
    """Lower bounds on scores, their parts, and flags.

    Per row: score; bound, a priori, from the features one at a time, without the row's code or
    a decoder pass; bound_at_row, a diagnostic with the actual distance of the codes. All are
    means over the members; no bound is below 0.

    Parts, (members, rows): distance, (1/d)·‖x − g(f_0)‖₁; kappa, a bound on ‖f(x) − f_0‖₂ from
    the features one at a time, and code_distance, that distance itself; slack and slack_at_row,
    what is subtracted for them; rounding, what is subtracted for float32 arithmetic.
    lipschitz_bound: (members,) L. pattern: (members, rows, features) +1 above or −1 below the
    intervals of all units by at least 0.2 scaled units, as the encoder sees the row.

    Flags, (rows,), of all members: out_of_support, every unit's box membership below σ(−0.2/τ);
    strict, beyond every active interval of some unit by 0.2 (active: mean membership of inliers
    below 0.9); strict_envelope, beyond the envelope of all units on every active feature;
    n_beyond, number of features beyond the envelope. n_vacuous_units: (members,) units without
    an active interval, which no row can violate; n_units: units of a member.
    inlier_rates: how often training rows raise the flags; None where the model's file does not
    say.
    """

    feature_names: tuple[str, ...]
    score: Array
    bound: Array
    bound_at_row: Array
    distance: Array
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

    def __len__(self) -> int:
        return len(self.score)

    @property
    def beyond_envelope(self) -> NDArray[np.bool_]:
        """(rows,) beyond the envelope of all units on some feature"""
        return self.n_beyond > 0

    def to_frame(self) -> pandas.DataFrame:
        """One line per row: score, bounds, parts (means over members) and flags."""
        import pandas

        columns: dict[str, NDArray[Any]] = {"row": np.arange(len(self))}
        columns |= {n: getattr(self, n) for n in ("score", "bound", "bound_at_row")}
        parts = ("distance", "slack", "slack_at_row", "rounding")
        columns |= {name: getattr(self, name).mean(axis=0) for name in parts}
        flags = ("n_beyond", "out_of_support", "strict", "strict_envelope")
        columns |= {name: getattr(self, name) for name in flags}
        return pandas.DataFrame(columns)

    def rates(self) -> pandas.DataFrame:
        """One line per flag: its share among these rows beside that among training inliers."""
        import pandas

        rates = self.inlier_rates
        return pandas.DataFrame(
            {
                "flag": list(_FLAGS),
                "meaning": list(_FLAGS.values()),
                "share": [float(getattr(self, name).mean()) for name in _FLAGS],
                "inlier_rate": [getattr(rates, name) if rates else np.nan for name in _FLAGS],
            }
        )

    def text(self, row: int | None = None) -> str:
        """The certificate in plain language: of one row (counted from 0), or of all of them.

        Bounds are rounded so that what is said is proven.
        """
        if row is None:
            return "\n\n".join(self.text(i) for i in range(len(self)))
        row = asked_index(row, len(self), "row", "certified")
        lines = [
            f"Row {row}: score {number(self.score[row])}, proven to be at least "
            f"{rounded_down(self.bound[row])} from its features alone"
            f" ({rounded_down(self.bound_at_row[row])} given its code).",
            f"It lies {rounded_down(self.distance[:, row].mean())} from what the model makes of "
            f"rows beyond its intervals; {rounded_up(self.slack[:, row].mean())} of that may be "
            f"lost (Lipschitz bound {rounded_up(self.lipschitz_bound.mean())}).",
        ]
        sides = common_pattern(self.pattern[:, row])
        beyond = [
            f"{self.feature_names[j]} ({'above' if sides[j] > 0 else 'below'})"
            for j in np.flatnonzero(sides)
        ]
        lines.append(
            f"Beyond the intervals of all units: {', '.join(beyond)}."
            if beyond
            else "On no feature is it beyond the intervals of all units."
        )
        for name, meaning in _FLAGS.items():
            if getattr(self, name)[row]:
                lines.append(f"It is {meaning}; {self._inlier_share(name)}.")
        vacuous = int(self.n_vacuous_units.sum())
        if vacuous:
            total = self.n_units * len(self.n_vacuous_units)
            lines.append(f"{vacuous} of {total} units constrain nothing and count for no flag.")
        return "\n".join(lines)

    def _inlier_share(self, name: str) -> str:
        if self.inlier_rates is None:
            return "how many training rows are is not known (the model file is older)"
        return f"so are {100 * getattr(self.inlier_rates, name):.3g} % of the training rows"

    def __repr__(self) -> str:
        return f"Certificate({len(self)} rows, {int((self.bound > 0).sum())} with a positive bound)"


def certify(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> Certificate:
    """The clipping margin of rows in original units. x: (rows, features)"""
    if model.config.decoder != "certified":
        raise InputError(
            "the free decoder has no explicit Lipschitz bound, so there is nothing to certify "
            'with; fit DiffInt(decoder="certified"), or use certify_region, which needs none'
        )
    margins = [_member_margins(model, member, x, n_jobs) for member in model.members]
    parts = {name: np.array([getattr(m, name) for m in margins]) for name in _PARTS}
    certain = parts["distance"] - parts["rounding"]
    return Certificate(
        feature_names=model.feature_names,
        score=anomaly_scores(model, x, n_jobs),
        bound=np.maximum(certain - parts["slack"], 0.0).mean(axis=0),
        bound_at_row=np.maximum(certain - parts["slack_at_row"], 0.0).mean(axis=0),
        **parts,
        lipschitz_bound=np.array([np.prod(lipschitz_bounds(m)) for m in model.members]),
        pattern=np.array([m.pattern for m in margins]),
        **_model_flags(margins),
        n_vacuous_units=np.array([int((~active(m).any(axis=1)).sum()) for m in model.members]),
        n_units=model.config.n_units,
        inlier_rates=model.flag_rates,
    )


def flag_rates(model: FittedModel, x: NDArray[Any], n_jobs: int = 1) -> FlagRates:
    """How often rows in original units raise the flags. x: (rows, features)"""
    flags = _model_flags([_member_margins(model, m, x, n_jobs) for m in model.members])
    flags["beyond_envelope"] = flags["n_beyond"] > 0
    names = (f.name for f in fields(FlagRates) if f.name != "n_rows")
    return FlagRates(n_rows=len(x), **{name: float(flags[name].mean()) for name in names})


def common_pattern(pattern: NDArray[np.int8]) -> NDArray[np.int8]:
    """The side on which all members agree, else 0. (members, …, features) → (…, features)"""
    return np.where((pattern == pattern[0]).all(axis=0), pattern[0], 0).astype(np.int8)


def active(member: Member) -> NDArray[np.bool_]:
    """Whether an interval constrains inliers. → (units, features)"""
    return member.mean_membership < ACTIVE_BELOW


def lipschitz_bounds(member: Member) -> tuple[float, float]:
    """Largest singular values of both maps, not below the exact ones of the final weights."""
    decoder = member.decoder
    hidden, output = (
        float(np.linalg.svd(weight.astype(np.float64), compute_uv=False)[0]) * (1 + SLIGHT)
        for weight in (decoder.hidden_weight, decoder.output_weight)
    )
    return hidden, output


# --- One member --------------------------------------------------------------------------------

_PARTS = ("distance", "kappa", "code_distance", "slack", "slack_at_row", "rounding")
_MEMBER_FLAGS = ("out_of_support", "strict", "strict_envelope")


@dataclass(frozen=True)
class _MemberMargins:
    """One member's part of a certificate; (rows,) each, and pattern (rows, features)."""

    distance: Array
    kappa: Array
    code_distance: Array
    slack: Array
    slack_at_row: Array
    rounding: Array
    pattern: NDArray[np.int8]
    out_of_support: NDArray[np.bool_]
    strict: NDArray[np.bool_]
    strict_envelope: NDArray[np.bool_]


def _model_flags(margins: list[_MemberMargins]) -> dict[str, Any]:
    """A flag of the model is one that all members raise."""
    flags: dict[str, Any] = {
        name: np.all([getattr(m, name) for m in margins], axis=0) for name in _MEMBER_FLAGS
    }
    agreed = common_pattern(np.array([m.pattern for m in margins]))
    flags["n_beyond"] = (agreed != 0).sum(axis=1)
    return flags


def _member_margins(
    model: FittedModel, member: Member, x: NDArray[Any], n_jobs: int
) -> _MemberMargins:
    """One member on rows in original units, block by block. x: (rows, features)"""
    n_rows = len(x)
    empty: dict[str, NDArray[Any]] = {name: np.empty(n_rows) for name in _PARTS}
    empty |= {name: np.empty(n_rows, dtype=bool) for name in _MEMBER_FLAGS}
    result = _MemberMargins(**empty, pattern=np.empty(x.shape, dtype=np.int8))
    margin = _Margin(model, member)

    def fill_block(start: int) -> None:
        rows = slice(start, start + _BLOCK_ROWS)
        block = margin.of(x[rows])
        for field in fields(_MemberMargins):
            getattr(result, field.name)[rows] = getattr(block, field.name)

    run_blocks(fill_block, range(0, n_rows, _BLOCK_ROWS), n_jobs)
    return result


class _Margin:
    """The clipping margin of one member, in float64 but for the float32 rows it is given."""

    def __init__(self, model: FittedModel, member: Member) -> None:
        self.temperature = model.config.temperature
        self.unclipped_error = model.config.error == "unclipped"
        self.scaler, self.decoder = member.scaler, member.decoder
        self.lower, self.upper = member.lower.astype(np.float64), member.upper.astype(np.float64)
        self.active = active(member)
        self.encoder_rounding = encoder_rounding(member, self.temperature)
        rounding = decoder_rounding(member, self.encoder_rounding)
        hidden, output = lipschitz_bounds(member)
        self.lipschitz = hidden * output
        # Errors of the pre-activations pass the output map; its own sums round once more.
        self.hidden, self.hidden_error = hidden, float(np.linalg.norm(rounding.hidden))
        self.output_error = rounding.output
        self.passed_error = output * self.hidden_error
        self.columns = np.linalg.norm(self.decoder.output_weight.astype(np.float64), axis=0)

    def of(self, x: NDArray[Any]) -> _MemberMargins:
        """x: (rows, features) in original units"""
        clipped, unclipped = self.scaler.transform(x)
        target = (unclipped if self.unclipped_error else clipped).astype(np.float64)
        n_rows, n_units = len(x), len(self.lower)
        omega, lowest = np.empty((2, n_rows))
        sides, strict = np.empty(x.shape, dtype=np.int8), np.empty(n_rows, dtype=bool)
        log_box = np.empty((n_rows, n_units))
        row_margins(
            clipped,
            np.ascontiguousarray(self.lower.T),
            np.ascontiguousarray(self.upper.T),
            np.ascontiguousarray(self.active.T, dtype=np.float64),
            self.temperature,
            ETA,
            omega,
            lowest,
            sides,
            strict,
            log_box,
        )
        patterns, inverse = np.unique(sides, axis=0, return_inverse=True)
        empty = self.empty_codes(patterns)
        inverse = inverse.ravel()

        present = ~np.isnan(target)
        count = np.maximum(present.sum(axis=1), 1)
        attractor, sizes = self.decode(empty)
        away = np.abs(np.where(present, target - attractor[inverse], 0.0))
        distance = away.sum(axis=1) / count

        # The computed code may be this much farther from f_0 than the exact one.
        error = self.encoder_rounding.log_box(x.shape[1], lowest) if n_units > 1 else 0.0
        common = self.encoder_rounding.scale
        # No code is farther from f_0 than the farthest single unit.
        farthest = np.sqrt(np.max(1.0 - 2.0 * empty, axis=1) + (empty**2).sum(axis=1))[inverse]
        kappa = np.minimum(_code_distance(omega), farthest)
        reach = np.minimum(_code_distance(omega + 2 * error), farthest) + common
        code_distance = np.linalg.norm(softmax(log_box, axis=1) - empty[inverse], axis=1)
        reach_at_row = code_distance + _code_distance(2 * error) + common
        scale = self.lipschitz / np.sqrt(count)
        anything = present.any(axis=1)  # a row without any value scores 0
        # The sums behind the outputs are of these magnitudes: at f_0, and what the activations
        # can be away from there.
        moved = self.hidden * reach + self.hidden_error
        summed = np.where(present, sizes[inverse] + moved[:, None] * self.columns, 0.0)
        rounding = self.passed_error / np.sqrt(count) + SLIGHT * (1.0 + away.max(axis=1))
        rounding += self.output_error * summed.sum(axis=1) / count

        side = np.sign(sides)
        constrained = self.active.any(axis=0)
        return _MemberMargins(
            distance=distance,
            kappa=kappa,
            code_distance=code_distance,
            slack=np.where(anything, scale * reach, 0.0),
            slack_at_row=np.where(anything, scale * np.minimum(reach_at_row, reach), 0.0),
            rounding=rounding,
            pattern=side,
            out_of_support=log_box.max(axis=1) < log_expit(-ETA / self.temperature),
            strict=strict,
            strict_envelope=((side != 0) | ~constrained).all(axis=1) & constrained.any(),
        )

    def empty_codes(self, patterns: NDArray[np.int8]) -> Array:
        """f_0 of patterns (patterns, features) → (patterns, units)

        Beyond the clamp, where nothing more can be lost, a feature tells units apart no longer.
        """
        above, below = (patterns == 1).astype(np.float64), (patterns == -1).astype(np.float64)
        top, bottom = self.upper.max(axis=0), self.lower.min(axis=0)  # keeps exponents small
        logits = above @ (self.upper - top).T + below @ (bottom - self.lower).T
        return np.asarray(softmax(logits / self.temperature, axis=1), dtype=np.float64)

    def decode(self, code: Array) -> tuple[Array, Array]:
        """g of codes (codes, units), and the same of magnitudes; → (codes, features) each"""
        d = self.decoder
        weight, bias = d.output_weight.astype(np.float64), d.output_bias.astype(np.float64)
        hidden = np.maximum(code @ d.hidden_weight.astype(np.float64) + d.hidden_bias, 0.0)
        return hidden @ weight + bias, hidden @ np.abs(weight) + np.abs(bias)


def _code_distance(omega: Any) -> Any:
    """κ: how far apart two codes are whose logits differ by a spread of omega.

    Their total variation is at most tanh(ω/4), and ‖·‖₂ ≤ √2 · that.
    """
    return np.sqrt(2.0) * np.tanh((omega + SLIGHT) / 4.0)
