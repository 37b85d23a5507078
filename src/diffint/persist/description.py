"""The JSON part of a model file: what it says of the model, checked field by field."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from ..core.associations import (
    MOST_VALUES,
    N_EDGES,
    n_counts,
    surprising_columns,
)
from ..core.calibration import MAX_SCORES
from ..core.config import (
    CALIBRATIONS,
    MODEL_SETTINGS,
    Config,
    check_confidence,
    check_false_positive_rate,
)
from ..core.decoder import DECODERS
from ..core.errors import InputError, ModelFileError
from ..core.kinds import CYCLES, TimeColumn
from ..core.model import (
    N_BINS,
    QUANTILE_LEVELS,
    FlagRates,
    TrainingSummary,
    joint_depth,
)
from ..core.scaling import SCALERS
from ..core.scaling.curves import MOST_KNOTS
from .array_file import Shapes
from .model_checks import check_training

MEMBER_SCALARS = {
    "box_scale": ("F64", float),
    "counted_rows": ("I64", int),
    "coverage_rows": ("I64", int),
    "coverage_held_out": ("BOOL", bool),
    "center_movement": ("F64", float),
    "half_width_movement": ("F64", float),
    "distance_weight": ("F64", float),
    "n_rows": ("I64", int),
}
# The shape of what a scaler has for each feature, if it is not one number.
_CELLS = {"knots": (2, MOST_KNOTS)}
_MOST_DAYS = 365.25 * 20_000  # beyond any calendar
_PLAIN_TYPES: dict[str, type] = {"int": int, "float": float, "str": str}


@dataclass(frozen=True)
class Description:
    """The JSON part of a file, checked.

    n_features, n_scores, n_kept_rows, name_bytes: number of features, of calibration scores, of
    training rows that each member keeps, and of bytes that the names of the features have together.
    kept_missing: whether cells of kept rows were missing.
    categories: the features that are categories, each with its number of values; value_bytes:
    number of bytes that the values have together; times: the columns of times, by name. n_segments,
    segment_bytes: number of segments, and of bytes that their names have together; n_sample: of
    calibration rows that are stored; accepted: when each row was called normal; refreshed_from:
    identities of the models before this one.
    """

    config: Config
    n_features: int
    n_scores: int
    n_kept_rows: int
    name_bytes: int
    calibration_kind: str
    training: TrainingSummary
    flag_rates: FlagRates | None
    settings: dict[str, Any]
    categories: tuple[tuple[int, int], ...] = ()
    value_bytes: int = 0
    times: dict[str, TimeColumn] = field(default_factory=dict)
    n_segments: int = 0
    segment_bytes: int = 0
    n_sample: int = 0
    accepted: tuple[str, ...] = ()
    refreshed_from: tuple[str, ...] = ()
    kept_missing: bool = False

    @property
    def n_values(self) -> dict[int, int]:
        """The number of values of each category that has any."""
        return {j: count for j, count in self.categories if count}

    @property
    def shapes(self) -> Shapes:
        """Type and shape of every array that belongs to the description."""
        config, d, n_levels = self.config, self.n_features, len(QUANTILE_LEVELS)
        m, k, h = int(config.n_members), config.n_units, config.hidden_width
        box, per_feature = ("F32", (m, k, d)), ("F64", (d,))
        return {
            "members.center": box,
            "members.half_width": box,
            "members.decoder.hidden_weight": ("F32", (m, k, h)),
            "members.decoder.hidden_bias": ("F32", (m, h)),
            "members.decoder.norm_gain": ("F32", (m, h)),
            "members.decoder.norm_shift": ("F32", (m, h)),
            "members.decoder.output_weight": ("F32", (m, h, d)),
            "members.decoder.output_bias": ("F32", (m, d)),
            "members.support": box,
            "members.mean_membership": box,
            "members.stability": box,
            "members.is_pattern": ("BOOL", (m, k)),
            "members.box_rows": ("I64", (m, k)),
            "members.peers": ("I64", (m, k, d)),
            "members.peers_inside": ("I64", (m, k, d)),
            "members.training_coverage": box,
            "members.coverage": box,
            "members.coverage_counts": ("I64", (m, d)),
            "members.joint_coverage": ("F32", (m, k, joint_depth(d))),
            "members.history": ("F64", (m, self.training.epochs)),
            "members.kept_rows": ("F32", (m, self.n_kept_rows, d)),
            "members.kept_weight": ("F32", (m, d)),
            "members.missing_error": ("F64", (m, d)),
            "members.missing_surprise": ("F64", (m, d)),
            **{
                f"members.scaler.{f.name}": ("F64", (m, d, *_CELLS.get(f.name, ())))
                for f in fields(SCALERS[config.scaling])
            },
            **{f"members.{name}": (kind, (m,)) for name, (kind, _) in MEMBER_SCALARS.items()},
            **self._missing_shapes,
            **self._category_shapes,
            **self._segment_shapes,
            **self._sample_shapes,
            **self._accepted_shapes,
            "features.name_bytes": ("U8", (self.name_bytes,)),
            "features.name_ends": ("I64", (d,)),
            "features.levels": ("F64", (n_levels,)),
            "features.quantiles": ("F64", (d, n_levels)),
            "features.bin_edges": ("F64", (d, N_BINS + 1)),
            "features.bin_counts": ("I64", (d, N_BINS)),
            "features.missing_share": per_feature,
            "features.whole": ("BOOL", (d,)),
            "calibration.scores": ("F64", (self.n_scores,)),
            "calibration.group_sizes": ("I64", (self.n_scores,)),
        }

    @property
    def _missing_shapes(self) -> Shapes:
        """An array that a model of rows without missing cells does not have."""
        shape = int(self.config.n_members), self.n_kept_rows, self.n_features
        return {"members.kept_missing": ("BOOL", shape)} if self.kept_missing else {}

    @property
    def _accepted_shapes(self) -> Shapes:
        """Arrays that a model without accepted rows does not have."""
        if not self.accepted:
            return {}
        shape = len(self.accepted), self.n_features
        return {"accepted.rows": ("F64", shape), "accepted.wrong": ("BOOL", shape)}

    @property
    def _sample_shapes(self) -> Shapes:
        """Arrays that a model without stored calibration rows does not have."""
        if not self.n_sample:
            return {}
        return {
            "calibration.sample": ("F64", (self.n_sample, self.n_features)),
            "calibration.sample_scores": ("F64", (self.n_sample,)),
        }

    @property
    def _segment_shapes(self) -> Shapes:
        """Arrays that a model without segments does not have."""
        if not self.n_segments:
            return {}
        return {
            "calibration.segments": ("I64", (self.n_scores,)),
            "calibration.groups": ("I64", (self.n_scores,)),
            "segments.name_bytes": ("U8", (self.segment_bytes,)),
            "segments.name_ends": ("I64", (self.n_segments,)),
        }

    @property
    def _category_shapes(self) -> Shapes:
        """Arrays that a table without categories does not have."""
        if not self.categories:
            return {}
        m, d = int(self.config.n_members), self.n_features
        n = len(surprising_columns(d, self.n_values))
        return {
            "categories.value_bytes": ("U8", (self.value_bytes,)),
            "categories.value_ends": ("I64", (sum(count for _, count in self.categories),)),
            "members.associations.edges": ("F64", (m, d, N_EDGES)),
            "members.associations.counts": ("I64", (m, n_counts(d, self.n_values))),
            "members.associations.n_rows": ("I64", (m,)),
            "members.associations.prior": ("F64", (m, n, d)),
            "members.associations.weight": ("F64", (m, n)),
            "members.associations.unseen": ("F64", (m, n)),
        }

    @property
    def training_rows(self) -> str:
        """What the file holds of the training table, for whoever may not store or pass on rows."""
        count = int(self.config.n_members) * self.n_kept_rows
        if not count:
            return "no training rows are stored"
        left_out = (
            f", and {self.n_sample:,} that were left out, to tell whether new rows come from "
            "elsewhere"
        )
        return (
            f"{count:,} training rows are stored, scaled, because the score compares rows with "
            f"them{left_out if self.n_sample else ''}; fit with kept_rows=0 to store none, at a "
            "small loss of accuracy"
        )

    def to_json(self) -> str:
        """The text in the file."""
        values = {"training_rows": self.training_rows, **asdict(self)}
        if self.flag_rates is None:
            del values["flag_rates"]
        if not self.categories:
            del values["categories"], values["value_bytes"]
        if not self.times:
            del values["times"]
        if not self.n_segments:
            del values["n_segments"], values["segment_bytes"]
        if not self.n_sample:
            del values["n_sample"]
        if not self.accepted:
            del values["accepted"]
        if not self.refreshed_from:
            del values["refreshed_from"]
        if not self.kept_missing:
            del values["kept_missing"]
        return json.dumps(values)

    @classmethod
    def from_json(cls, text: str, version: int) -> Description:
        """The description in a file of this version, checked field by field."""
        try:
            names = (*fields(cls), "training_rows")
            optional = (
                *("flag_rates", "categories", "value_bytes", "times"),
                *("n_segments", "segment_bytes", "n_sample", "accepted", "refreshed_from"),
                "kept_missing",
            )
            raw = _record(json.loads(text), names, optional)
            settings = _record(raw["settings"], (*_SETTINGS, *_LATER_SETTINGS), _LATER_SETTINGS)
            implied = _implied(version)
            # Every setting must be there: a default would be a guess.
            config = _record(raw["config"], set(Config.names()) - set(implied))
            read = cls(
                config=Config(**implied, **config),
                n_features=_checked(raw["n_features"], int),
                n_scores=_checked(raw["n_scores"], int),
                n_kept_rows=_checked(raw["n_kept_rows"], int),
                name_bytes=_checked(raw["name_bytes"], int),
                calibration_kind=_checked(raw["calibration_kind"], str),
                training=TrainingSummary(**_plain_values(raw["training"], TrainingSummary)),
                flag_rates=_flag_rates(raw.get("flag_rates")),
                categories=_category_counts(raw.get("categories", []), raw["n_features"]),
                value_bytes=_checked(raw.get("value_bytes", 0), int),
                times=_times(raw.get("times", {})),
                n_segments=_checked(raw.get("n_segments", 0), int),
                segment_bytes=_checked(raw.get("segment_bytes", 0), int),
                n_sample=_checked(raw.get("n_sample", 0), int),
                accepted=_texts(raw.get("accepted", [])),
                refreshed_from=_texts(raw.get("refreshed_from", [])),
                kept_missing=_checked(raw.get("kept_missing", False), bool),
                settings={
                    "false_positive_rate": check_false_positive_rate(
                        settings["false_positive_rate"]
                    ),
                    "named": _checked(settings["named"], bool),
                    "id_column": _column(settings["id_column"]),
                    "confidence": check_confidence(settings.get("confidence")),
                    "segment_column": _column(settings.get("segment_column")),
                },
            )
        except Exception as error:  # whatever cannot be done with the text is wrong with the text
            reason = str(error)[:200].encode("ascii", "backslashreplace").decode()
            raise ModelFileError(f"the model's description is damaged ({reason})") from error
        if read.n_features < 1 or min(read.name_bytes, read.value_bytes, read.segment_bytes) < 0:
            raise ModelFileError("the model has no features")
        if not 0 <= read.n_sample <= read.n_scores or not 0 <= read.n_segments <= MAX_SCORES:
            raise ModelFileError("the model has an impossible number of segments or stored rows")
        if (read.n_sample or read.kept_missing) and not read.n_kept_rows:
            raise ModelFileError("the model stores an impossible number of rows")
        if isinstance(read.config.n_members, str) or isinstance(read.config.kept_rows, str):
            raise ModelFileError("the number of members or of kept rows is not a number")
        if not 0 <= read.n_kept_rows <= read.config.kept_rows:
            raise ModelFileError("the model keeps an impossible number of training rows")
        if raw["training_rows"] != read.training_rows:
            raise ModelFileError("the statement about stored training rows is wrong")
        if not 1 <= read.n_scores <= MAX_SCORES or read.calibration_kind not in CALIBRATIONS:
            raise ModelFileError("the model has no usable calibration")
        certified = DECODERS[read.config.decoder].certified
        if read.flag_rates is not None and not certified:
            raise ModelFileError("only a certified decoder has rates of flags")
        check_training(read.training, read.config, bool(read.refreshed_from))
        return read


_SETTINGS = ("false_positive_rate", "named", "id_column")
_LATER_SETTINGS = ("confidence", "segment_column")  # None where a file does not have them


def _implied(version: int) -> dict[str, Any]:
    """The values of settings that files of this version do not have yet."""
    return {s.name: s.before for s in MODEL_SETTINGS.values() if s.since > version}


def _record(raw: Any, wanted: Any, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dictionary with exactly these keys; wanted: their names, or fields of a dataclass."""
    names = {getattr(name, "name", name) for name in wanted}
    present = set(_checked(raw, dict))
    for name in sorted(names - present - set(optional)):
        raise KeyError(f"{name} is missing")
    for name in sorted(present - names):
        raise KeyError(f"{name} is unknown")
    return dict(raw)


def _plain_values(raw: Any, kind: type) -> dict[str, Any]:
    """The values of a dataclass whose fields are numbers and texts."""
    raw = _record(raw, fields(kind))
    return {f.name: _checked(raw[f.name], _PLAIN_TYPES[str(f.type)]) for f in fields(kind)}


def _texts(raw: Any) -> tuple[str, ...]:
    return tuple(_checked(text, str) for text in _checked(raw, list))


def _flag_rates(raw: Any) -> FlagRates | None:
    """The flag rates; None for a free decoder."""
    if raw is None:
        return None
    values = _plain_values(raw, FlagRates)
    rates = FlagRates(**values)
    if rates.n_rows < 1 or not all(0 <= v <= 1 for n, v in values.items() if n != "n_rows"):
        raise ValueError(f"{values} are not rates")
    return rates


def _times(raw: Any) -> dict[str, TimeColumn]:
    """The columns of times, by name."""
    found = {}
    for name, values in _checked(raw, dict).items():
        encoded(name)
        values = _record(values, fields(TimeColumn))
        parts = tuple(_checked(values["parts"], list))
        zone = values["zone"]
        start = _checked(values["start"], str)
        days = _checked(values["days"], float)
        if str(np.datetime64(start, "D")) != start or not 0 <= days < _MOST_DAYS:
            raise ValueError("impossible times")
        if parts != tuple(part for part in CYCLES if part in parts):
            raise ValueError("unknown parts of times")
        found[name] = TimeColumn(zone and _checked(zone, str), start, days, parts)
    return found


def _column(value: Any) -> str | None:
    if value is None:
        return None
    encoded(_checked(value, str))
    return str(value)


def _category_counts(raw: Any, n_features: Any) -> tuple[tuple[int, int], ...]:
    """The features that are categories, increasing, each with its number of values."""
    pairs = [_checked(pair, list) for pair in _checked(raw, list)]
    counts = tuple((_checked(j, int), _checked(count, int)) for j, count in pairs)
    features = [j for j, _ in counts]
    if (
        not all(0 <= count <= MOST_VALUES for _, count in counts)
        or features != sorted(set(features))
        or (features and not 0 <= features[0] <= features[-1] < _checked(n_features, int))
    ):
        raise ValueError("impossible categories")
    return counts


def encoded(name: str, kind: str = "column name", remedy: str = "rename the column") -> bytes:
    """A text in UTF-8; half of a surrogate pair, which has no encoding, raises an error."""
    try:
        return name.encode()
    except UnicodeEncodeError:
        shown = name[:60].encode("ascii", "backslashreplace").decode()
        raise InputError(
            f"the {kind} '{shown}' is not valid Unicode and cannot be saved; {remedy}"
        ) from None


def _checked(value: Any, kind: type) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise TypeError(f"{str(value)[:60]!r} where {kind.__name__} was expected")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{str(value)[:60]} is too large")
    return value
