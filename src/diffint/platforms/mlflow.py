"""Detectors in MLflow: a model of two flavors, ``diffint`` and ``python_function``.

The only artifact is the file of the model, which has no code in it; MLflow's files beside it name
the columns, the packages and this module, which reads the file.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import InputError
from ..core.formatting import listed
from ..core.version import __version__
from ..estimator import DiffInt
from ..tables.inputs import input_columns
from .model_bytes import detector_of, model_bytes
from .score_frame import N_REASONS, FrameScorer, ScoringOptions

try:
    import mlflow
    import mlflow.pyfunc
    from mlflow.models import Model, ModelSignature
    from mlflow.types import ColSpec, DataType, ParamSchema, ParamSpec, Schema
    from mlflow.types.schema import AnyType
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"diffint.mlflow needs the package {error.name or 'mlflow'}; install it with: pip install "
        "'diffint-ad[mlflow]'",
        name=error.name,
    ) from None

if TYPE_CHECKING:
    import pandas
    from mlflow.models.model import ModelInfo

FLAVOR = "diffint"
_LOADER = "diffint.mlflow"
_PACKAGE = "diffint-ad"
_FILE = "model.diffint"


def save_model(
    detector: DiffInt | str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    signature: ModelSignature | None = None,
    input_example: Any = None,
    pip_requirements: Any = None,
    mlflow_model: Model | None = None,
    **others: Any,
) -> None:
    """Write an MLflow model to a new folder.

    Parameters
    ----------
    detector : DiffInt or path
        A fitted detector, or a file written by `DiffInt.save`.
    path : path
        The folder to write; it must not exist.
    signature : ModelSignature, default=None
        None for `signature_of` the detector.
    input_example : DataFrame, default=None
        Rows to show in the registry; None for a row that is made up of the medians.
    pip_requirements : list of str or path, default=None
        What to install to load the model; None for this version of diffint and of the packages
        that it needs.
    mlflow_model : mlflow.models.Model, default=None
        The model to which the flavors are added.
    **others
        Further parameters of `mlflow.pyfunc.save_model`, such as ``code_paths`` or ``metadata``.
    """
    content = model_bytes(detector)
    detector = detector_of(content)
    if pip_requirements is None and others.get("conda_env") is None:
        more = others.pop("extra_pip_requirements", None) or []
        pip_requirements = [*_requirements(), *([f"-r {more}"] if isinstance(more, str) else more)]
    mlflow_model = mlflow_model or Model()
    mlflow_model.add_flavor(FLAVOR, data=f"data/{_FILE}", diffint_version=__version__)
    with TemporaryDirectory() as folder:
        (Path(folder) / _FILE).write_bytes(content)
        mlflow.pyfunc.save_model(
            path=os.fspath(path),
            loader_module=_LOADER,
            data_path=os.path.join(folder, _FILE),
            mlflow_model=mlflow_model,
            signature=signature or signature_of(detector),
            input_example=_example(detector) if input_example is None else input_example,
            pip_requirements=pip_requirements,
            **others,
        )


def log_model(
    detector: DiffInt | str | os.PathLike[str], name: str = "model", **others: Any
) -> ModelInfo:
    """Log a detector as a model of the current run.

    Parameters
    ----------
    detector : DiffInt or path
        A fitted detector, or a file written by `DiffInt.save`.
    name : str, default="model"
        The name of the model.
    **others
        Parameters of `save_model` and of `mlflow.models.Model.log`, such as
        ``registered_model_name``.

    Returns
    -------
    info : mlflow.models.model.ModelInfo
        Its ``model_uri`` is what `load_model` and `mlflow.pyfunc.load_model` take.
    """
    flavor = sys.modules[__name__]
    return Model.log(artifact_path=None, name=name, flavor=flavor, detector=detector, **others)


def load_model(model_uri: str, dst_path: str | None = None) -> DiffInt:
    """The detector of an MLflow model.

    Parameters
    ----------
    model_uri : str
        For example ``models:/payments/3``, ``runs:/<id>/model`` or a folder.
    dst_path : str, default=None
        Where to put downloaded files.
    """
    folder = Path(mlflow.artifacts.download_artifacts(artifact_uri=model_uri, dst_path=dst_path))
    flavors = Model.load(folder).flavors
    if FLAVOR not in flavors:
        found = listed([repr(name) for name in flavors])
        raise InputError(f"{model_uri!r} is not a model of diffint; its flavors are {found}")
    return DiffInt.load(folder / flavors[FLAVOR]["data"])


def _load_pyfunc(path: str) -> _PythonFunction:
    """What MLflow calls to load the model as a Python function; path: of the data."""
    return _PythonFunction(DiffInt.load(path))


class _PythonFunction:
    """What MLflow calls a model implementation."""

    def __init__(self, detector: DiffInt) -> None:
        self._detector = detector
        self._last: tuple[ScoringOptions, FrameScorer] | None = None

    def predict(
        self, model_input: pandas.DataFrame, params: dict[str, Any] | None = None
    ) -> pandas.DataFrame:
        """score, p_value, flagged and reasons of n rows, with their index.

        params: reasons, n_reasons and false_positive_rate, as in `ScoringOptions`
        """
        options = ScoringOptions(**(params or {}), keep=())
        if self._last is None or self._last[0] != options:
            self._last = options, FrameScorer(self._detector, options)
        scorer = self._last[1]
        scorer.warn()
        scored: pandas.DataFrame = scorer(model_input)
        return scored

    def get_raw_model(self) -> DiffInt:
        """The detector."""
        return self._detector


# --- What MLflow's files say ---------------------------------------------------------------------


def signature_of(detector: DiffInt) -> ModelSignature:
    """The columns that a detector needs, the columns of the result, and the parameters.

    Columns of numbers have MLflow's type *any*: it refuses whole numbers where it expects fractions
    and the reverse, while the detector accepts both, and says what is wrong with other cells.
    """
    inputs = Schema([ColSpec(*column) for column in _columns(detector)])
    outputs = [
        ColSpec(DataType.double, "score"),
        ColSpec(DataType.double, "p_value"),
        ColSpec(DataType.boolean, "flagged"),
        ColSpec(DataType.string, "reasons", required=False),
    ]
    params = [
        ParamSpec("reasons", DataType.boolean, True),
        ParamSpec("n_reasons", DataType.long, N_REASONS),
        ParamSpec("false_positive_rate", DataType.double, float(detector.false_positive_rate)),
    ]
    return ModelSignature(inputs, Schema(outputs), ParamSchema(params))


def _columns(detector: DiffInt) -> list[tuple[Any, str | None, bool]]:
    """Of each column that the detector knows: MLflow's type, name, and whether it is needed."""
    model, needed = detector.model_, FrameScorer(detector).needed
    if not hasattr(detector, "feature_names_in_"):  # fitted on an array
        return [(AnyType(), None, True) for _ in model.columns]
    text = {
        model.feature_names[j]
        for j, values in model.categories.items()
        if not all(_is_number(value) for value in values)
    }
    times = {name for name, time in model.kinds.times.items() if time.zone is None}
    kinds = dict.fromkeys(times, DataType.datetime) | dict.fromkeys(text, DataType.string)
    names = dict.fromkeys([*needed, *input_columns(model)])
    return [(kinds.get(name, AnyType()), name, name in needed) for name in names]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _example(detector: DiffInt) -> pandas.DataFrame:
    """A row of medians: a training row might be confidential."""
    import pandas

    model, named = detector.model_, hasattr(detector, "feature_names_in_")
    summary = model.features
    middle = summary.quantiles[:, int(np.abs(summary.levels - 0.5).argmin())]
    typical: dict[str, Any] = dict(zip(model.feature_names, middle.tolist(), strict=True))
    for j, values in model.categories.items():
        at = middle[j]
        typical[model.feature_names[j]] = values[int(at)] if 0 <= at < len(values) else None
    for name, time in model.kinds.times.items():
        day = pandas.Timestamp(time.start, tz=time.zone)
        typical[name] = day + pandas.Timedelta(days=int(time.days / 2))
    if detector.segment_column_ is not None and model.calibration.segment_names:
        typical[detector.segment_column_] = model.calibration.segment_names[0]
    needed = FrameScorer(detector).needed
    row = pandas.DataFrame([[typical[name] for name in needed]], columns=needed)
    return row if named else row.set_axis(range(row.shape[1]), axis=1)


def _requirements() -> list[str]:
    """This version of diffint, of the packages that it needs, and of MLflow."""
    try:
        declared = metadata.requires(_PACKAGE) or []
    except metadata.PackageNotFoundError:  # not installed, but on the path
        declared = []
    needs = sorted({_package_of(line) for line in declared if "extra ==" not in line})
    # With all of MLflow installed, the lean package is there too.
    wanted = ["mlflow" if _is_installed("mlflow") else "mlflow-skinny", *needs]
    return [f"{_PACKAGE}=={__version__}", *(f"{name}=={metadata.version(name)}" for name in wanted)]


def _package_of(requirement: str) -> str:
    """The name in a requirement such as ``numpy>=1.26``."""
    from packaging.requirements import Requirement

    return Requirement(requirement).name


def _is_installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
