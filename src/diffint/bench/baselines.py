"""The methods of the benchmark: names, constructors, and the rows they train on.

A new method is one entry of `METHODS`; users add their own as plugins (`plugin_method`).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_outlier_detector

from ..core.errors import InputError
from .protocol import Regime, TrainsOn


@dataclass(frozen=True)
class Method:
    """A method of the benchmark.

    name: used in every table and on the command line.
    make: returns a new detector for a seed and the number of rows of the whole table.
    trains_on: the rows it trains on in the paper regime; in the fair regime all methods train
        on inliers.
    in_paper: whether it is one of the 23 methods that the paper ranks.
    scales_itself: gets unscaled rows, since it scales them itself as the protocol does.
    on_gpu: whether its seeds are trained together on a GPU if there is one (DiffInt only).
    plugin: the source of a plugin, 'module:factory'; None for others.
    """

    name: str
    make: Callable[[int, int], Any]
    trains_on: TrainsOn = "everything"
    in_paper: bool = True
    scales_itself: bool = False
    on_gpu: bool = False
    plugin: str | None = None

    def rows_for(self, regime: Regime) -> TrainsOn:
        """The rows it trains on in a regime."""
        return "inliers" if regime == "fair" else self.trains_on


def _pyod(name: str, trains_on: TrainsOn = "everything", in_paper: bool = True) -> Method:
    """PyOD's detector with its defaults, and the seed if it has a parameter for it."""

    def make(seed: int, n_rows: int) -> Any:
        module = "auto_encoder" if name == "AutoEncoder" else name.lower()
        detector = getattr(importlib.import_module(f"pyod.models.{module}"), name)
        parameters = inspect.signature(detector).parameters
        values = {"random_state": seed, "verbose": 0}
        return detector(**{name: v for name, v in values.items() if name in parameters})

    return Method(name, make, trains_on, in_paper)


def _diffint(preset: str) -> Callable[[int, int], Any]:
    def make(seed: int, n_rows: int) -> Any:
        from ..core.config import PRESETS, paper_batch_size
        from ..estimator import DiffInt

        settings = PRESETS[preset].to_dict()
        if settings["batch_size"] == "paper":  # depends on the whole table's rows
            settings["batch_size"] = paper_batch_size(n_rows)
        return DiffInt(**settings, random_state=seed, device="cpu", n_jobs=1)

    return make


def _tccm(seed: int, n_rows: int) -> Any:
    from .tccm import TCCM

    return TCCM(random_state=seed)


_ALL = (
    Method("DiffInt", _diffint("recommended"), "inliers", False, True, True),
    Method("DiffInt-paper", _diffint("paper"), "inliers", True, True, True),
    _pyod("KNN", in_paper=False),
    _pyod("ABOD"),
    _pyod("LOF"),
    _pyod("PCA"),
    _pyod("KPCA"),
    _pyod("OCSVM"),
    _pyod("ECOD"),
    _pyod("CBLOF"),
    _pyod("KDE"),
    _pyod("GMM"),
    _pyod("MCD"),
    _pyod("HBOS"),
    _pyod("IForest"),
    _pyod("LMDD"),
    _pyod("QMCD"),
    _pyod("Sampling"),
    _pyod("AutoEncoder", "inliers"),
    _pyod("VAE", "inliers"),
    _pyod("DIF"),
    _pyod("LUNAR"),
    _pyod("SO_GAAL"),
    _pyod("MO_GAAL"),
    Method("TCCM", _tccm, "inliers"),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
DIFFINT_METHODS = ("DiffInt", "DiffInt-paper")


def plugin_method(text: str) -> Method:
    """A user's detector, from 'module:factory' or 'NAME=module:factory'.

    The factory is a class or function; `factory(seed=…)` or `factory()` returns a new object with
    `fit(X)` and a score (see `anomaly_scores`). In the paper regime it trains on all rows, unless
    the factory has an attribute ``trains_on = "inliers"``.
    """
    name, equals, source = text.rpartition("=")
    module_name, colon, attribute = source.partition(":")
    name = name.strip()
    valid_name = name.isprintable() and (name or not equals)
    if not (module_name and colon and attribute and valid_name):
        raise InputError(f"--plugin {text!r} must look like module:factory or NAME=module:factory")
    if "" not in sys.path:  # find modules in the current folder, as `python -m` does
        sys.path.insert(0, "")
    try:
        factory: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            factory = getattr(factory, part)
    except (Exception, SystemExit) as error:  # user code can raise anything
        raise InputError(
            f"--plugin {text!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise InputError(f"--plugin {text!r} is not a class or function that makes a detector")
    trains_on: Any = getattr(factory, "trains_on", "everything")
    if trains_on not in ("inliers", "everything"):
        raise InputError(
            f"--plugin {text!r}: trains_on is {trains_on!r}; it must be 'inliers' or 'everything'"
        )

    def make(seed: int, n_rows: int) -> Any:
        return factory(seed=seed) if _takes_a_seed(factory) else factory()

    return Method(name or attribute, make, trains_on, in_paper=False, plugin=text)


def _takes_a_seed(factory: Callable[..., Any]) -> bool:
    try:
        return "seed" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False


def anomaly_scores(detector: Any, rows: NDArray[np.float64]) -> NDArray[Any]:
    """The detector's scores of rows (rows, features). → (rows,) high = anomalous

    From `anomaly_score` if there is one; from `score_samples`, negated, for scikit-learn's outlier
    detectors (high = normal); else from `decision_function`, as in PyOD.
    """
    if hasattr(detector, "anomaly_score"):
        return np.asarray(detector.anomaly_score(rows))
    if _is_sklearn_detector(detector) and hasattr(detector, "score_samples"):
        return -np.asarray(detector.score_samples(rows))
    if hasattr(detector, "decision_function"):
        return np.asarray(detector.decision_function(rows))
    raise InputError(
        f"{type(detector).__name__} has no score; add anomaly_score(X) or "
        "decision_function(X), high for anomalies"
    )


def _is_sklearn_detector(detector: Any) -> bool:
    """Whether it is one of scikit-learn's outlier detectors, or a pipeline that ends in one."""
    try:
        return bool(is_outlier_detector(detector))
    except (AttributeError, TypeError):  # not a scikit-learn estimator
        return False


def chosen_methods(names: Iterable[str], plugins: Iterable[str] = ()) -> dict[str, Method]:
    """The methods of these names, in the order of `METHODS`, and the plugins.

    Without names: the plugins only, or all methods if there are no plugins.
    """
    extra = [plugin_method(one) for one in plugins]
    by_lower = {name.lower(): name for name in METHODS}
    chosen: set[str] = set()
    for one in names:
        if one.lower() not in by_lower:
            raise InputError(f"no method is called {one!r}; the methods are {', '.join(METHODS)}")
        chosen.add(by_lower[one.lower()])
    if not chosen and not extra:
        chosen.update(METHODS)
    result = {name: method for name, method in METHODS.items() if name in chosen}
    for method in extra:
        if method.name.lower() in {name.lower() for name in (*result, *METHODS)}:
            raise InputError(
                f"--plugin {method.name!r} has the name of another method; choose another with "
                "NAME=module:factory"
            )
        result[method.name] = method
    return result
