"""Save and load a model: one safetensors file of arrays plus JSON, never pickle.

The header has the format version; an unknown version raises an error. The type and shape of every
array are compared with the configuration before it is read, so a malicious file can at worst fail
to load.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import MAX_SCORES, Calibration
from ..core.config import CALIBRATIONS, MODEL_SETTINGS, Config, check_false_positive_rate
from ..core.decoder import DECODERS, Decoder
from ..core.errors import ModelFileError
from ..core.model import (
    N_BINS,
    QUANTILE_LEVELS,
    FeatureSummary,
    FittedModel,
    FlagRates,
    Member,
    TrainingSummary,
    joint_depth,
)
from ..core.scaling import SCALERS, Scaler
from ..tables.atomic_write import atomic_write

OLDEST_VERSION, FORMAT_VERSION = 2, 2
_FORMAT_KEY, _MODEL_KEY = "diffint_format", "diffint_model"
_LONGEST_DESCRIPTION = 32 * 2**20  # characters of JSON
_LARGEST_VALUE = 1e18  # of a weight; trained ones are far below
_MAY_HOLD_NAN = ("joint_coverage", "scaler.constant", "quantiles", "bin_edges")
Shapes = dict[str, tuple[str, tuple[int, ...]]]


def save_model(model: FittedModel, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
    """Write a model; an existing file is replaced only when the new one is complete."""
    from safetensors.numpy import save

    arrays: dict[str, NDArray[Any]] = {}
    scalars = []
    for i, member in enumerate(model.members):
        for owner, value in (
            ("", member),
            ("decoder.", member.decoder),
            ("scaler.", member.scaler),
        ):
            arrays.update(_arrays_of(f"members.{i}.{owner}", value))
        scalars.append({name: getattr(member, name) for name in _MEMBER_SCALARS})
    arrays.update(_arrays_of("features.", model.features))
    arrays.update(_arrays_of("calibration.", model.calibration))
    metadata = {
        "config": model.config.to_dict(),
        "feature_names": list(model.feature_names),
        "members": scalars,
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
    atomic_write(path, content)


def load_model(path: str | os.PathLike[str]) -> tuple[FittedModel, dict[str, Any]]:
    """The model in a file, and the settings saved with it."""
    from safetensors import SafetensorError, safe_open

    path = Path(path)
    with open(path, "rb"):  # a missing or unreadable file raises the usual OSError
        pass
    try:
        with safe_open(path, framework="np") as file:
            header = file.metadata() or {}
            model = _read_metadata(header)
            arrays = _read_arrays(file, _expected_arrays(model))
        fitted = _assemble(model, arrays)
    except SafetensorError as error:
        raise ModelFileError(
            f"{str(path)!r} is not a model file, or is damaged; model files are written by "
            "`diffint fit` and `DiffInt.save`"
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
        raise ModelFileError(
            f"the model's description is longer than {_LONGEST_DESCRIPTION:,} characters"
        )
    try:
        version = int(header[_FORMAT_KEY])
        raw = json.loads(header[_MODEL_KEY])
    except (KeyError, ValueError, RecursionError) as error:
        raise ModelFileError(f"the model's description is damaged ({error})") from error
    if not OLDEST_VERSION <= version <= FORMAT_VERSION:
        newer = version > FORMAT_VERSION
        remedy = "upgrade diffint to read it" if newer else "fit the model again"
        raise ModelFileError(
            f"the file has format version {version}, which this diffint does not read (it reads "
            f"{_versions()}); {remedy}"
        )
    try:
        names = raw["feature_names"]
        settings = raw["settings"]
        model = {
            "config": Config(**_implied(version), **raw["config"]),
            "feature_names": tuple(_checked(name, str) for name in _checked(names, list)),
            "members": [
                {key: _checked(member[key], kind) for key, kind in _MEMBER_SCALARS.items()}
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
        raise ModelFileError("the model's description has a wrong number of members or no features")
    if not 1 <= model["n_scores"] <= MAX_SCORES or model["calibration_kind"] not in (CALIBRATIONS):
        raise ModelFileError("the model has no usable calibration")
    return model


def _implied(version: int) -> dict[str, Any]:
    """The values of settings that files of this version do not have yet."""
    return {s.name: s.before for s in MODEL_SETTINGS.values() if s.since > version}


def _versions() -> str:
    if OLDEST_VERSION == FORMAT_VERSION:
        return f"version {FORMAT_VERSION}"
    return f"versions {OLDEST_VERSION} to {FORMAT_VERSION}"


_PLAIN_TYPES: dict[str, type] = {"int": int, "float": float, "str": str}


def _flag_rates(raw: Any) -> FlagRates | None:
    """The flag rates; None for a free decoder and in older files."""
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
    """Type and shape of every array that belongs to the description."""
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
        **{f"scaler.{f.name}": per_feature for f in fields(Scaler)},
    }
    levels = len(QUANTILE_LEVELS)
    shapes: Shapes = {
        f"members.{i}.{name}": expected
        for i in range(config.n_members)
        for name, expected in member.items()
    }
    shapes["features.levels"] = ("F64", (levels,))
    shapes["features.quantiles"] = ("F64", (d, levels))
    shapes["features.bin_edges"] = ("F64", (d, N_BINS + 1))
    shapes["features.bin_counts"] = ("I64", (d, N_BINS))
    shapes["features.missing_share"] = per_feature
    shapes["features.whole"] = ("BOOL", (d,))
    shapes["calibration.scores"] = ("F64", (model["n_scores"],))
    shapes["calibration.group_sizes"] = ("I64", (model["n_scores"],))
    return shapes


def _read_arrays(file: Any, expected: Shapes) -> dict[str, NDArray[Any]]:
    """Compare the type and shape of every array with the expected ones, then read it."""
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
            raise ModelFileError(f"the array {name!r} has values that are not finite")
        if kind == "F32" and (np.abs(array) > _LARGEST_VALUE).any():
            raise ModelFileError(f"the array {name!r} has values that are too large for weights")
    return arrays


def _assemble(model: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> FittedModel:
    """The model, from its checked parts."""
    config: Config = model["config"]

    def part(prefix: str, kind: type) -> dict[str, Any]:
        names = [f.name for f in fields(kind) if prefix + f.name in arrays]
        return {name: arrays[prefix + name] for name in names}

    members = []
    for i, scalars in enumerate(model["members"]):
        prefix = f"members.{i}."
        member = Member(
            scaler=SCALERS[config.scaling](**part(prefix + "scaler.", Scaler)),
            decoder=DECODERS[config.decoder](**part(prefix + "decoder.", Decoder)),
            **part(prefix, Member),
            **scalars,
        )
        boxes = np.isfinite(member.box_scale) and 0 < member.box_scale < _LARGEST_VALUE
        if (member.half_width < 0).any() or not boxes or not member.scaler.is_possible():
            raise ModelFileError("the model has invalid intervals or an invalid scaling")
        members.append(member)
    return FittedModel(
        config=config,
        feature_names=model["feature_names"],
        members=tuple(members),
        features=FeatureSummary(**part("features.", FeatureSummary)),
        calibration=_calibration(model["calibration_kind"], part("calibration.", Calibration)),
        training=model["training"],
        flag_rates=model["flag_rates"],
    )


def _calibration(kind: str, arrays: dict[str, NDArray[Any]]) -> Calibration:
    scores, sizes = arrays["scores"], arrays["group_sizes"]
    if (np.diff(scores) < 0).any() or (sizes < 1).any() or (sizes > len(sizes)).any():
        raise ModelFileError("the model has no usable calibration")
    return Calibration(kind, scores, sizes)
