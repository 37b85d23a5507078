"""Save and load: one safetensors file, arrays plus JSON, never pickle.

Format version 2. A file says its version in the header; a newer version is refused, an older one
stays readable for good: what it lacks is filled in with what it meant. Every array's type and
shape is checked against the configuration before any of it is read, so a hostile file can at
worst fail to load.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import MAX_SCORES, Calibration
from ..core.config import Config, check_false_positive_rate
from ..core.errors import ModelFileError
from ..core.model import (
    Decoder,
    FeatureSummary,
    FittedModel,
    FlagRates,
    Member,
    TrainingSummary,
    joint_depth,
)
from ..core.scaling import Scaler
from ..fit.boxes import BINS, QUANTILE_LEVELS
from ..tables.atomic_write import write_whole

FORMAT_VERSION = 2
_FORMAT_KEY, _MODEL_KEY = "diffint_format", "diffint_model"
_LONGEST_DESCRIPTION = 32 * 2**20  # characters of JSON
_LARGEST_VALUE = 1e18  # of a weight; an honest one is far below
_MAY_HOLD_NAN = ("joint_coverage", "scaler.constant", "quantiles", "bin_edges")
# What version 1 did not have: settings that had no effect, and boxes that were the intervals, with
# no rows counted in them.
_CONFIG_OF_V1 = {"interval_rate": 1.0, "coverage_weight": 0.0, "box_coverage": 0.0}
_MEMBER_OF_V1 = {"box_scale": 1.0, "counted_rows": 0}
_ARRAYS_SINCE_V2 = (
    *("is_pattern", "box_rows", "peers", "peers_inside", "training_coverage"),
    "coverage_counts",
)

Shapes = dict[str, tuple[str, tuple[int, ...]]]


def save_model(model: FittedModel, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
    """Write a model; the file appears whole or not at all, and an old one stays until then."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    described = []
    for i, member in enumerate(model.members):
        for owner, value in (
            ("", member),
            ("decoder.", member.decoder),
            ("scaler.", member.scaler),
        ):
            arrays.update(_arrays_of(f"members.{i}.{owner}", value))
        described.append({name: getattr(member, name) for name in _MEMBER_SCALARS})
    arrays.update(_arrays_of("features.", model.features))
    arrays.update(_arrays_of("calibration.", model.calibration))
    metadata = {
        "config": model.config.to_dict(),
        "feature_names": list(model.feature_names),
        "members": described,
        "calibration": {"kind": model.calibration.kind, "n_scores": len(model.calibration.scores)},
        "training": {f.name: getattr(model.training, f.name) for f in fields(TrainingSummary)},
        "settings": settings,
    }
    if model.flag_rates is not None:
        metadata["flag_rates"] = asdict(model.flag_rates)
    content = save(
        {name: np.ascontiguousarray(a) for name, a in arrays.items()},
        {_FORMAT_KEY: str(FORMAT_VERSION), _MODEL_KEY: json.dumps(metadata)},
    )
    write_whole(path, content)


def load_model(path: str | os.PathLike[str]) -> tuple[FittedModel, dict[str, Any]]:
    """The model in a file, and the settings saved with it."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    with open(path, "rb"):  # a missing or unreadable file is the usual OSError
        pass
    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
            model = _read_metadata(header)
            arrays = _read_arrays(file, _expected_arrays(model))
        fitted = _assemble(model, arrays)
    except SafetensorError as error:
        raise ModelFileError(
            f"{str(path)!r} is not a diffint model, or is damaged ({error})"
        ) from error
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from None
    return fitted, model["settings"]


_MEMBER_SCALARS = {
    "box_scale": float,
    "counted_rows": int,
    "coverage_rows": int,
    "coverage_held_out": bool,
    "center_movement": float,
    "half_width_movement": float,
    "n_rows": int,
}


def _arrays_of(prefix: str, value: Any) -> dict[str, NDArray[Any]]:
    named = ((f.name, getattr(value, f.name)) for f in fields(value))
    return {prefix + name: array for name, array in named if isinstance(array, np.ndarray)}


# --- Reading -----------------------------------------------------------------------------------


def _read_metadata(header: dict[str, str]) -> dict[str, Any]:
    """The JSON part, checked field by field."""
    if _FORMAT_KEY not in header:
        raise ModelFileError("a safetensors file, but not a diffint model")
    if len(header.get(_MODEL_KEY, "")) > _LONGEST_DESCRIPTION:
        raise ModelFileError("the model's description is too long to be one")
    try:
        version = int(header[_FORMAT_KEY])
        raw = json.loads(header[_MODEL_KEY])
    except (KeyError, ValueError, RecursionError) as error:
        raise ModelFileError(f"the model's description is damaged ({error})") from error
    if not 1 <= version <= FORMAT_VERSION:
        remedy = "upgrade diffint to read it" if version > FORMAT_VERSION else "it is damaged"
        raise ModelFileError(
            f"the file has format version {version}, this diffint reads versions up to "
            f"{FORMAT_VERSION}; {remedy}"
        )
    of_v1 = (_CONFIG_OF_V1, _MEMBER_OF_V1) if version == 1 else ({}, {})
    try:
        names = raw["feature_names"]
        settings = raw["settings"]
        model = {
            "version": version,
            "config": Config(**{**of_v1[0], **raw["config"]}),
            "feature_names": tuple(_checked(name, str) for name in _checked(names, list)),
            "members": [
                {
                    key: _checked({**of_v1[1], **member}[key], kind)
                    for key, kind in _MEMBER_SCALARS.items()
                }
                for member in _checked(raw["members"], list)
            ],
            "calibration_kind": _checked(raw["calibration"]["kind"], str),
            "n_scores": _checked(raw["calibration"]["n_scores"], int),
            "training": TrainingSummary(
                **{
                    f.name: _checked(raw["training"][f.name], _PLAIN_TYPES[str(f.type)])
                    for f in fields(TrainingSummary)
                }
            ),
            "flag_rates": _flag_rates(raw.get("flag_rates")),
            "settings": {
                "false_positive_rate": check_false_positive_rate(settings["false_positive_rate"]),
                "named": _checked(settings["named"], bool),
                "id_column": _id_column(settings.get("id_column")),
            },
        }
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"the model's description is damaged ({str(error)[:200]})") from error
    if len(model["members"]) != model["config"].n_members or not model["feature_names"]:
        raise ModelFileError("the model's description contradicts itself")
    if not 1 <= model["n_scores"] <= MAX_SCORES or model["calibration_kind"] not in (
        "members",
        "holdout",
        "training",
    ):
        raise ModelFileError("the model has no usable calibration")
    return model


_PLAIN_TYPES: dict[str, type] = {"int": int, "float": float, "str": str}


def _flag_rates(raw: Any) -> FlagRates | None:
    """Optional: files without a certified decoder, or from before there were any, have none."""
    if raw is None:
        return None
    values = {f.name: _checked(raw[f.name], _PLAIN_TYPES[str(f.type)]) for f in fields(FlagRates)}
    rates = FlagRates(**values)
    if rates.n_rows < 1 or not all(0 <= v <= 1 for n, v in values.items() if n != "n_rows"):
        raise ValueError(f"{values} are not rates")
    return rates


def _id_column(value: Any) -> str | None:
    return None if value is None else str(_checked(value, str))


def _checked(value: Any, kind: type) -> Any:
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise TypeError(f"{value!r} where {kind.__name__} was expected")
    return value


def _expected_arrays(model: dict[str, Any]) -> Shapes:
    """Type and shape of every array the description promises."""
    config: Config = model["config"]
    d, k, h = len(model["feature_names"]), config.n_units, config.hidden_width
    box, per_feature = ("F32", (k, d)), ("F64", (d,))
    member: Shapes = {
        "center": box,
        "half_width": box,
        "decoder.hidden_weight": ("F32", (k, h)),
        "decoder.hidden_bias": ("F32", (h,)),
        "decoder.norm_gain": ("F32", (h,)),
        "decoder.norm_shift": ("F32", (h,)),
        "decoder.output_weight": ("F32", (h, d)),
        "decoder.output_bias": ("F32", (d,)),
        "support": box,
        "mean_membership": box,
        "stability": box,
        "is_pattern": ("BOOL", (k,)),
        "box_rows": ("I64", (k,)),
        "peers": ("I64", (k, d)),
        "peers_inside": ("I64", (k, d)),
        "training_coverage": box,
        "coverage": box,
        "coverage_counts": ("I64", (d,)),
        "joint_coverage": ("F32", (k, joint_depth(d))),
        "history": ("F64", (model["training"].epochs,)),
        **{f"scaler.{f.name}": per_feature for f in fields(Scaler) if f.name != "kind"},
    }
    if model["version"] == 1:
        member = {name: shape for name, shape in member.items() if name not in _ARRAYS_SINCE_V2}
        member["pattern_rows"] = ("I64", (k,))
    levels = len(QUANTILE_LEVELS)
    shapes: Shapes = {
        f"members.{i}.{name}": expected
        for i in range(config.n_members)
        for name, expected in member.items()
    }
    shapes["features.levels"] = ("F64", (levels,))
    shapes["features.quantiles"] = ("F64", (d, levels))
    shapes["features.bin_edges"] = ("F64", (d, BINS + 1))
    shapes["features.bin_counts"] = ("I64", (d, BINS))
    shapes["features.missing_share"] = per_feature
    shapes["features.whole"] = ("BOOL", (d,))
    shapes["calibration.scores"] = ("F64", (model["n_scores"],))
    return shapes


def _read_arrays(file: Any, expected: Shapes) -> dict[str, NDArray[Any]]:
    """Check every array's header against what is expected, then read."""
    present = set(file.keys())
    arrays = {}
    for name, (kind, shape) in expected.items():
        if name not in present:
            raise ModelFileError(f"the array {name!r} is missing")
        part = file.get_slice(name)
        if part.get_dtype() != kind or tuple(part.get_shape()) != shape:
            raise ModelFileError(
                f"the array {name!r} has type {part.get_dtype()} and shape "
                f"{tuple(part.get_shape())} instead of {kind} and {shape}"
            )
        array = arrays[name] = file.get_tensor(name)
        may_be_nan = kind not in ("F32", "F64") or name.endswith(_MAY_HOLD_NAN)
        if not may_be_nan and not np.isfinite(array).all():
            raise ModelFileError(f"the array {name!r} holds values that are not finite")
        if kind == "F32" and (np.abs(array) > _LARGEST_VALUE).any():
            raise ModelFileError(f"the array {name!r} holds values that cannot be weights")
    return arrays


def _assemble(model: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FittedModel:
    """The checked parts as one value."""
    config: Config = model["config"]

    def part(prefix: str, kind: type) -> dict[str, Any]:
        names = [f.name for f in fields(kind) if prefix + f.name in arrays]
        return {name: arrays[prefix + name] for name in names}

    members = []
    for i, scalars in enumerate(model["members"]):
        own = f"members.{i}."
        if model["version"] == 1:
            arrays.update({own + name: value for name, value in _filled_in(arrays, own, scalars)})
        member = Member(
            scaler=Scaler(kind=config.scaling, **part(own + "scaler.", Scaler)),
            decoder=Decoder(**part(own + "decoder.", Decoder)),
            **part(own, Member),
            **scalars,
        )
        boxes = np.isfinite(member.box_scale) and 0 < member.box_scale < _LARGEST_VALUE
        if (member.half_width < 0).any() or not boxes or not _possible(member.scaler):
            raise ModelFileError("the model has intervals or a scaling that cannot be")
        members.append(member)
    return FittedModel(
        config=config,
        feature_names=model["feature_names"],
        members=tuple(members),
        features=FeatureSummary(**part("features.", FeatureSummary)),
        calibration=Calibration(model["calibration_kind"], np.sort(arrays["calibration.scores"])),
        training=model["training"],
        flag_rates=model["flag_rates"],
    )


def _filled_in(
    arrays: dict[str, NDArray[Any]], own: str, scalars: dict[str, Any]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """What a version 1 file lacks, from what it has."""
    coverage = arrays[own + "coverage"]
    yield "is_pattern", arrays.pop(own + "pattern_rows") > 0
    yield "box_rows", np.zeros(len(coverage), dtype=np.int64)
    yield "peers", np.zeros(coverage.shape, dtype=np.int64)
    yield "peers_inside", np.zeros(coverage.shape, dtype=np.int64)
    yield "training_coverage", coverage
    yield "coverage_counts", np.full(coverage.shape[1], scalars["coverage_rows"])
    # Measured in the order of another importance: of no use any more.
    yield "joint_coverage", np.full_like(arrays[own + "joint_coverage"], np.nan)


def _possible(scaler: Scaler) -> bool:
    """Whether a scaler can have come from `fit_scaler`."""
    if (scaler.divisor < 0).any() or (scaler.lower > scaler.upper).any():
        return False
    low, high = {"minmax": (-1.0, 1.0), "unit": (0.0, 1.0)}.get(scaler.kind, (None, None))
    return low is None or bool((scaler.lower == low).all() and (scaler.upper == high).all())
