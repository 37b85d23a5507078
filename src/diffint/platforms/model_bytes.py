"""A model as the bytes of its file, in which form it travels to the workers of an engine."""

from __future__ import annotations

import os
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import InputError, InputTypeError, PlatformError
from ..core.version import __version__
from .score_frame import FrameScorer, ScoringOptions

if TYPE_CHECKING:
    from ..estimator import DiffInt

_MODELS_PER_WORKER = 8


def model_bytes(model: str | os.PathLike[str] | DiffInt) -> bytes:
    """The bytes of a model file, or of the one that a fitted detector would write."""
    from ..estimator import DiffInt

    if isinstance(model, DiffInt):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.diffint"
            model.save(path)
            return path.read_bytes()
    if not isinstance(model, (str, os.PathLike)):
        raise InputTypeError(
            f"the model is a {type(model).__name__}; pass a fitted DiffInt, or the path of a model "
            "file"
        )
    try:
        DiffInt.load(model)  # raises an error that names the file
    except FileNotFoundError:
        raise InputError(
            f"there is no model file {os.fspath(model)!r}; give the path of a file on this machine"
        ) from None
    return Path(model).read_bytes()


def detector_of(content: bytes, n_jobs: int = 1) -> DiffInt:
    """The detector in the bytes of a model file. Raises a `ModelFileError` if they are not one."""
    from ..estimator import DiffInt

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.diffint"
        path.write_bytes(content)
        detector = DiffInt.load(path)
    detector._model_file, detector.n_jobs = None, n_jobs
    return detector


@lru_cache(maxsize=_MODELS_PER_WORKER)
def worker_scorer(content: bytes, options: ScoringOptions, n_jobs: int = 1) -> FrameScorer:
    """The scorer of a model file's bytes, prepared once in each process of an engine."""
    return FrameScorer(detector_of(content, n_jobs), options)


def check_worker_version(expected: str) -> None:
    """Raise an error if this process has another version of the package than the driver.

    expected: the driver's version. Another version may score differently.
    """
    if __version__ != expected:
        raise PlatformError(
            f"a worker has diffint {__version__}, but the driver has {expected}; install the same "
            "version on both"
        )
