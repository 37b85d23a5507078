"""The fitted model: the immutable value that training makes and everything else reads."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .accepted import Accepted
from .associations import Associations
from .calibration import Calibration
from .config import Config
from .decoder import Decoder
from .immutable import Immutable
from .kinds import ONLY_NUMBERS, Kinds
from .scaling import Scaler

Array32 = NDArray[np.float32]

# The size of `FeatureSummary`, per column.
QUANTILE_LEVELS = (0.0, 0.01, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.99, 1.0)
N_BINS = 32
# Models that one can have been refreshed from, one after the other; earlier ones are forgotten.
MOST_ANCESTORS = 100
# What a member's score depends on, besides its scaler, decoder and associations.
_SCORED = (
    *("center", "half_width", "kept_rows", "kept_weight", "distance_weight"),
    *("missing_error", "missing_surprise"),
)
_CONSTANT_HALF_WIDTH = np.float32(0.5)  # other values are at least 1 away, scaled
# Settings that change neither scores nor thresholds: certificates hold whatever they are.
_NOT_SCORED = frozenset({"importance", "missing_words"})
_NO_ROWS = np.empty(0)


@dataclass(frozen=True, eq=False)
class Member(Immutable):
    """One trained network, in the units of its own scaler.

    center, half_width: (units, features) the intervals [center − half_width, center + half_width].
    support: (units, features) bias-corrected running mean of memberships during training.
    mean_membership: (units, features) mean over the training rows, after training.
    stability: (units, features) agreement of the matched units of all members, in [0, 1].
    is_pattern: (units,) whether the unit is a pattern, that is, one that rows are matched to;
        `fit.boxes.find_boxes` chooses them.
    box_scale: half-widths of a unit's box, as a multiple of the half-widths of its intervals.
    counted_rows: number of training rows, including those that the member left out, behind the
        next three counts.
    box_rows: (units,) rows entirely inside the box.
    peers: (units, features) rows that have a value of this feature and are inside all other sides
        of the box, so that values can be compared with them; peers_inside: those of them that
        are also inside this side.
    training_coverage: (units, features) share of the member's training rows inside the side of the
        box.
    coverage: (units, features) the same share of the rows used for measuring.
    coverage_counts: (features,) number of rows used for measuring that have a value.
    joint_coverage: (units, n) share of the rows used for measuring inside the unit's 1, 2, …, n
        most important sides, among those that have a value in each.
    coverage_rows: number of rows used for measuring; coverage_held_out: whether the member was
        trained without them.
    kept_rows: (kept, features) training rows, scaled and times `kept_weight`; rows
        are compared with the nearest of them. Empty if the configuration keeps none.
    kept_missing: (kept, features) which of their cells were missing, and have a median instead.
    kept_weight: (features,) of differences from kept rows; all 1 in models that are fitted now.
    distance_weight: how much the distance from the nearest kept row counts beside the error.
    missing_error: (features,) what a missing cell counts as an error; 0 if missing cells are
        ignored.
    missing_surprise: (features,) what it counts besides if everything else is missing too: times
        the cube of the missing share of all surprise. 0 where missing cells are common.
    associations: how often the values of categories occur with those of the other columns.
    history: (epochs,) training loss.
    center_movement, half_width_movement: mean distance from the start, in scaled units.
    n_rows: training rows of this member.
    """

    scaler: Scaler
    center: Array32
    half_width: Array32
    decoder: Decoder
    support: Array32
    mean_membership: Array32
    stability: Array32
    is_pattern: NDArray[np.bool_]
    box_scale: float
    counted_rows: int
    box_rows: NDArray[np.int64]
    peers: NDArray[np.int64]
    peers_inside: NDArray[np.int64]
    training_coverage: Array32
    coverage: Array32
    coverage_counts: NDArray[np.int64]
    joint_coverage: Array32
    coverage_rows: int
    coverage_held_out: bool
    kept_rows: Array32
    kept_missing: NDArray[np.bool_]
    kept_weight: Array32
    distance_weight: float
    missing_error: NDArray[np.float64]
    missing_surprise: NDArray[np.float64]
    associations: Associations
    history: NDArray[np.float64]
    center_movement: float
    half_width_movement: float
    n_rows: int

    @property
    def lower(self) -> Array32:
        """(units, features)"""
        return self.center - self.half_width

    @property
    def upper(self) -> Array32:
        """(units, features)"""
        return self.center + self.half_width

    @property
    def box_half_width(self) -> Array32:
        """(units, features); that of a constant feature contains no other value"""
        half = np.float32(self.box_scale) * self.half_width
        return np.where(self.scaler.is_constant, np.minimum(half, _CONSTANT_HALF_WIDTH), half)

    @property
    def box_center(self) -> Array32:
        """(units, features)"""
        return box_centers(self.scaler, self.center)

    @property
    def box_lower(self) -> Array32:
        """(units, features)"""
        return self.box_center - self.box_half_width

    @property
    def box_upper(self) -> Array32:
        """(units, features)"""
        return self.box_center + self.box_half_width


def box_centers(scaler: Scaler, center: Array32) -> Array32:
    """Centers of the boxes of units with these centers. center: (units, features) → the same

    Every box contains the value of a constant feature: training does not see where its interval is.
    """
    return np.where(scaler.is_constant, scaler.lower, center).astype(np.float32)


@dataclass(frozen=True, eq=False)
class FeatureSummary(Immutable):
    """Quantiles, histograms and types of the training columns, in original units.

    levels: (levels,) quantile levels; quantiles: (features, levels).
    bin_edges: (features, bins + 1); bin_counts: (features, bins).
    missing_share: (features,); whole: (features,) whether all values were whole numbers.
    """

    levels: NDArray[np.float64]
    quantiles: NDArray[np.float64]
    bin_edges: NDArray[np.float64]
    bin_counts: NDArray[np.int64]
    missing_share: NDArray[np.float64]
    whole: NDArray[np.bool_]


@dataclass(frozen=True)
class TrainingSummary:
    """How the model was trained.

    n_rows: rows trained on; n_known_anomalies, n_suspects, n_blank_rows: rows left out.
    fingerprint: of the whole table, to recognise it (`tables.fingerprint`).
    """

    n_rows: int
    n_known_anomalies: int
    n_suspects: int
    n_blank_rows: int
    batch_size: int
    epochs: int
    seconds: float
    device: str
    created: str
    version: str
    fingerprint: str


@dataclass(frozen=True)
class FlagRates:
    """How often the training rows themselves raise a certificate's flags.

    n_rows: number of rows used for measuring; the other values are shares of these rows.
    `diffint.certify.rows.Certificate` defines the flags.
    """

    n_rows: int
    out_of_support: float
    strict: float
    strict_envelope: float
    beyond_envelope: float


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A fitted detector: plain arrays and a small config, immutable.

    flag_rates: with a certified decoder only; None if the model file has none.
    kinds: the columns that are not numbers; called_normal: rows that a person has called normal.
    refreshed_from: the identities of the models that it was refreshed from, the last one first.
    """

    config: Config
    feature_names: tuple[str, ...]
    members: tuple[Member, ...]
    features: FeatureSummary
    calibration: Calibration
    training: TrainingSummary
    flag_rates: FlagRates | None = None
    kinds: Kinds = ONLY_NUMBERS
    called_normal: Accepted | None = None
    refreshed_from: tuple[str, ...] = ()

    @cached_property
    def identity(self) -> str:
        """A SHA-256 of all that scores and thresholds depend on, and of when it was learned.

        Rows that are accepted later do not change it: they change no score and no threshold.
        """
        config = {n: v for n, v in self.config.to_dict().items() if n not in _NOT_SCORED}
        described = [config, self.feature_names, self.training.created]
        digest = hashlib.sha256(json.dumps([*described, asdict(self.kinds)]).encode())
        for member in self.members:
            _add_to(digest, member.scaler.name, member.scaler)
            _add_to(digest, member.decoder.name, member.decoder)
            if len(member.associations.categories):  # else they count nothing, and are not stored
                _add_to(digest, "associations", member.associations)
            for name in _SCORED:
                _add_to(digest, name, getattr(member, name))
        calibration = replace(self.calibration, sample=_NO_ROWS, sample_scores=_NO_ROWS)
        _add_to(digest, "calibration", calibration)
        return digest.hexdigest()

    @property
    def lineage(self) -> tuple[str, ...]:
        """Its own identity, and those of the models that it was refreshed from."""
        return (self.identity, *self.refreshed_from)[:MOST_ANCESTORS]

    def shares_units_with(self, other: FittedModel) -> bool:
        """Whether unit k of a member is unit k of the same member of the other model.

        So it is if one was refreshed from the other, or both from the same one.
        """
        return not set(self.lineage).isdisjoint(other.lineage)

    @property
    def accepted(self) -> Accepted:
        """Rows that a person has called normal."""
        return self.called_normal or Accepted.none(self.n_features)

    @property
    def categories(self) -> Mapping[int, tuple[str, ...]]:
        """The features that are categories, with their values."""
        return self.kinds.categories

    @cached_property
    def starts(self) -> Mapping[int, str]:
        """The features that are days of times, with the day from which they are counted."""
        return self.kinds.starts(self.feature_names)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of a table; those of times become several features."""
        return self.kinds.columns(self.feature_names)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.feature_names)

    @property
    def n_kept_rows(self) -> int:
        """Number of training rows that the members keep together."""
        return sum(len(member.kept_rows) for member in self.members)

    def __repr__(self) -> str:
        return (
            f"FittedModel({self.n_features} features, {len(self.members)} members of "
            f"{self.config.n_units} units, trained on {self.training.n_rows} rows)"
        )


def joint_depth(n_features: int) -> int:
    """The number of a unit's ranges whose joint coverage is measured."""
    return min(n_features, 10)


def _add_to(digest: Any, name: str, value: Any) -> None:
    """Add a named value, or all fields of a dataclass, to a digest, so that no two are alike."""
    if is_dataclass(value):
        for field in fields(value):
            _add_to(digest, f"{name}.{field.name}", getattr(value, field.name))
        return
    if isinstance(value, np.generic):
        value = value.item()
    array = value if isinstance(value, np.ndarray) else None
    text = repr(value) if array is None else f"{array.dtype.str}{array.shape}"
    digest.update(f"{name}: {text}\n".encode())
    if array is not None:
        digest.update(np.ascontiguousarray(array).tobytes())
