"""Save and load a model: one safetensors file of arrays plus JSON, never pickle.

`array_file` describes the file and its checksum. The description, a short JSON text, has the
configuration and the sizes of all arrays; values of which there are many (names of features,
numbers of every member) are arrays. The arrays of the members are stacked, so that their number
does not depend on the model. `model_checks` refuses values that no fit produces.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.accepted import Accepted
from ..core.associations import (
    Associations,
)
from ..core.calibration import Calibration
from ..core.decoder import DECODERS, Decoder
from ..core.errors import ModelFileError
from ..core.kinds import Kinds
from ..core.model import (
    FeatureSummary,
    FittedModel,
    Member,
)
from ..core.scaling import SCALERS
from .array_file import Shapes, read_arrays, write_arrays
from .description import MEMBER_SCALARS, Description, encoded
from .model_checks import check_model


def save_model(model: FittedModel, path: str | os.PathLike[str], settings: dict[str, Any]) -> None:
    """Write a model; an existing file is replaced only when the new one is complete."""
    check_model(model)  # a file that cannot be read is not written
    names = [encoded(name) for name in model.feature_names]
    categories = dict(sorted(model.categories.items()))
    texts = [
        encoded(text, "value", "change it") for values in categories.values() for text in values
    ]
    segments = [encoded(name, "segment") for name in model.calibration.segment_names]
    description = Description(
        config=model.config,
        n_features=model.n_features,
        n_scores=len(model.calibration.scores),
        n_kept_rows=len(model.members[0].kept_rows),
        name_bytes=sum(map(len, names)),
        calibration_kind=model.calibration.kind,
        training=model.training,
        flag_rates=model.flag_rates,
        settings=settings,
        categories=tuple((j, len(values)) for j, values in categories.items()),
        value_bytes=sum(map(len, texts)),
        times=dict(model.kinds.times),
        n_segments=len(segments),
        segment_bytes=sum(map(len, segments)),
        n_sample=len(model.calibration.sample),
        accepted=model.accepted.when,
        refreshed_from=model.refreshed_from,
        kept_missing=any(member.kept_missing.any() for member in model.members),
    )
    for column in (settings["id_column"], settings["segment_column"]):
        if column is not None:
            encoded(column)
    parts: dict[str, list[NDArray[Any]]] = {
        "features.name_bytes": [np.frombuffer(b"".join(names), dtype=np.uint8)],
        "features.name_ends": [np.cumsum([len(name) for name in names], dtype=np.int64)],
        "calibration.scores": [model.calibration.scores],
        "calibration.group_sizes": [model.calibration.group_sizes],
        "calibration.sample": [model.calibration.sample],
        "calibration.sample_scores": [model.calibration.sample_scores],
        "accepted.rows": [model.accepted.rows],
        "accepted.wrong": [model.accepted.wrong],
        "calibration.segments": [model.calibration.segments],
        "calibration.groups": [model.calibration.groups],
        "segments.name_bytes": [np.frombuffer(b"".join(segments), dtype=np.uint8)],
        "segments.name_ends": [np.cumsum([len(name) for name in segments], dtype=np.int64)],
    }
    for f in fields(FeatureSummary):
        parts[f"features.{f.name}"] = [getattr(model.features, f.name)]
    if categories:
        parts["categories.value_bytes"] = [np.frombuffer(b"".join(texts), dtype=np.uint8)]
        parts["categories.value_ends"] = [np.cumsum([len(text) for text in texts], dtype=np.int64)]
    for owner in ("scaler", "decoder", "associations"):
        values = [getattr(member, owner) for member in model.members]
        for f in fields(values[0]):
            parts[f"members.{owner}.{f.name}"] = [
                np.asarray(getattr(value, f.name)) for value in values
            ]
    for name in description.shapes:
        if name not in parts:
            stacked = [np.asarray(getattr(m, name.partition(".")[2])) for m in model.members]
            parts[name] = stacked
    shapes = description.shapes
    write_arrays(path, description.to_json(), shapes, {name: parts[name] for name in shapes})


def load_model(path: str | os.PathLike[str]) -> tuple[FittedModel, dict[str, Any]]:
    """The model in a file, and the settings saved with it."""

    def expected(text: str, version: int) -> tuple[Description, Shapes]:
        description = Description.from_json(text, version)
        return description, description.shapes

    path = Path(path)
    try:
        description, arrays = read_arrays(path, expected)
        model = _assemble(description, arrays)
        check_model(model)
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r}: {error}") from None
    return model, description.settings


# --- Reading -----------------------------------------------------------------------------------


def _texts(content: bytes, ends: NDArray[np.int64], what: str) -> tuple[str, ...]:
    """Texts that stand one after the other, and end there."""
    starts = np.concatenate([[0], ends])
    if (ends < starts[:-1]).any() or starts[-1] != len(content):
        raise ModelFileError(f"the {what} are damaged")
    try:
        names = tuple(
            content[start:end].decode() for start, end in itertools.pairwise(starts.tolist())
        )
    except UnicodeDecodeError:
        raise ModelFileError(f"one of the {what} is not valid UTF-8") from None
    return names


def _categories(
    description: Description, arrays: dict[str, NDArray[Any]]
) -> dict[int, tuple[str, ...]]:
    if not description.categories:
        return {}
    content = arrays["categories.value_bytes"].tobytes()
    texts = iter(_texts(content, arrays["categories.value_ends"], "values of categories"))
    found = {j: tuple(next(texts) for _ in range(count)) for j, count in description.categories}
    if any(len(set(values)) < len(values) for values in found.values()):
        raise ModelFileError("a category has the same value twice")
    return found


def _segment_names(arrays: dict[str, NDArray[Any]]) -> tuple[str, ...]:
    if "segments.name_bytes" not in arrays:
        return ()
    content = arrays["segments.name_bytes"].tobytes()
    return _texts(content, arrays["segments.name_ends"], "names of segments")


def _assemble(description: Description, arrays: dict[str, NDArray[Any]]) -> FittedModel:
    """The model, from arrays of the right types and shapes."""
    config = description.config

    def part(prefix: str, kind: type, index: Any = ()) -> dict[str, Any]:
        names = [f.name for f in fields(kind) if prefix + f.name in arrays]
        return {name: arrays[prefix + name][index] for name in names}

    n_values = description.n_values

    def associations(i: int) -> Associations:
        none = Associations.none(description.n_features)
        if not description.categories:
            return none
        values = part("members.associations.", Associations, i)
        values["n_rows"] = int(values["n_rows"])
        return Associations(
            categories=np.array(list(n_values), dtype=np.int64),
            n_values=np.array(list(n_values.values()), dtype=np.int64),
            **values,
        )

    members = []
    for i in range(int(config.n_members)):
        values = part("members.", Member, i)
        values |= {name: kind(values[name]) for name, (_, kind) in MEMBER_SCALARS.items()}
        values.setdefault("kept_missing", np.zeros(values["kept_rows"].shape, dtype=bool))
        members.append(
            Member(
                scaler=SCALERS[config.scaling](
                    **part("members.scaler.", SCALERS[config.scaling], i)
                ),
                decoder=DECODERS[config.decoder](**part("members.decoder.", Decoder, i)),
                associations=associations(i),
                **values,
            )
        )
    content, ends = arrays["features.name_bytes"].tobytes(), arrays["features.name_ends"]
    names = _texts(content, ends, "names of the features")
    arrays.setdefault("calibration.sample", np.empty((0, len(names))))
    kinds = Kinds(description.times, _categories(description, arrays))
    if kinds.features(kinds.columns(names)) != list(names):
        raise ModelFileError("the features of the columns of times are not those of the model")
    return FittedModel(
        config=config,
        feature_names=names,
        members=tuple(members),
        features=FeatureSummary(**part("features.", FeatureSummary)),
        calibration=Calibration(
            description.calibration_kind,
            segment_names=_segment_names(arrays),
            cleaned=description.training.n_suspects > 0,
            **part("calibration.", Calibration),
        ),
        training=description.training,
        flag_rates=description.flag_rates,
        kinds=kinds,
        called_normal=_accepted(description, arrays),
        refreshed_from=description.refreshed_from,
    )


def _accepted(description: Description, arrays: dict[str, NDArray[Any]]) -> Accepted | None:
    if not description.accepted:
        return None
    return Accepted(arrays["accepted.rows"], arrays["accepted.wrong"], description.accepted)
