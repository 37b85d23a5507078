"""The methods that are compared: what they are called, how they are made, what they train on.

A new detector is one entry of `METHODS`; one from outside comes as a plugin (`plugin_method`).
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
    """A detector under comparison.

    name: in every table and on the command line.
    make: gives a fresh detector, from the seed and the number of rows of the whole table.
    trains_on: which rows it trains on in the paper's regime; in the fair one, all train on
        inliers.
    in_paper: one of the 23 that the paper ranks.
    scales_itself: gets the rows in their own units, since it fits the protocol's map itself.
    on_gpu: a DiffInt, whose seeds train side by side on a GPU where there is one.
    plugin: where one from outside comes from, 'module:factory'.
    """

    name: str
    make: Callable[[int, int], Any]
    trains_on: TrainsOn = "everything"
    in_paper: bool = True
    scales_itself: bool = False
    on_gpu: bool = False
    plugin: str | None = None

    def rows_for(self, regime: Regime) -> TrainsOn:
        """Which rows it trains on in a regime."""
        return "inliers" if regime == "fair" else self.trains_on


def _pyod(name: str, trains_on: TrainsOn = "everything", in_paper: bool = True) -> Method:
    """PyOD's detector at its defaults; the seed where it takes one."""

    def make(seed: int, n_rows: int) -> Any:
        module = "auto_encoder" if name == "AutoEncoder" else name.lower()
        detector = getattr(importlib.import_module(f"pyod.models.{module}"), name)
        takes = inspect.signature(detector).parameters
        given: dict[str, Any] = {"random_state": seed} if "random_state" in takes else {}
        return detector(**given, **({"verbose": 0} if "verbose" in takes else {}))

    return Method(name, make, trains_on, in_paper)


def _diffint(preset: str) -> Callable[[int, int], Any]:
    def make(seed: int, n_rows: int) -> Any:
        from ..core.config import PRESETS, paper_batch_size
        from ..estimator import DiffInt

        settings = PRESETS[preset].to_dict()
        if settings["batch_size"] == "paper":  # counted on the whole table in the evaluation
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
OURS = ("DiffInt", "DiffInt-paper")


def plugin_method(asked: str) -> Method:
    """A detector from outside, 'module:factory' or 'NAME=module:factory'.

    `factory(seed=…)` or `factory()` gives a fresh object with `fit(X)` and a score (see
    `anomaly_scores`); a class will do. It trains on what the paper's unsupervised rivals train
    on unless the factory has an attribute ``trains_on = "inliers"``.
    """
    name, equals, place = asked.rpartition("=")
    module_name, colon, attribute = place.partition(":")
    name = name.strip()
    well_named = name.isprintable() and (name or not equals)
    if not (module_name and colon and attribute and well_named):
        raise InputError(f"--plugin {asked!r} must look like module:factory or NAME=module:factory")
    if "" not in sys.path:  # as `python -m` does: a module in the current folder is found
        sys.path.insert(0, "")
    try:
        factory: Any = importlib.import_module(module_name)
        for part in attribute.split("."):
            factory = getattr(factory, part)
    except (Exception, SystemExit) as error:  # whatever stands in that module
        raise InputError(
            f"--plugin {asked!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(factory):
        raise InputError(f"--plugin {asked!r} is not a class or function that makes a detector")
    trains_on: Any = getattr(factory, "trains_on", "everything")
    if trains_on not in ("inliers", "everything"):
        raise InputError(
            f"--plugin {asked!r}: trains_on is {trains_on!r}, neither 'inliers' nor 'everything'"
        )

    def make(seed: int, n_rows: int) -> Any:
        return factory(seed=seed) if _takes_a_seed(factory) else factory()

    return Method(name or attribute, make, trains_on, in_paper=False, plugin=asked)


def _takes_a_seed(factory: Callable[..., Any]) -> bool:
    try:
        return "seed" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # some built-in callables have no signature
        return False


def anomaly_scores(detector: Any, rows: NDArray[np.float64]) -> NDArray[Any]:
    """(rows,) high = anomalous, by what the detector has to say it.

    `anomaly_score` is taken as it is; scikit-learn's outlier detectors say it with
    `score_samples` (high = normal, so negated); PyOD's and others with `decision_function`.
    """
    if hasattr(detector, "anomaly_score"):
        return np.asarray(detector.anomaly_score(rows))
    if _is_of_sklearn(detector) and hasattr(detector, "score_samples"):
        return -np.asarray(detector.score_samples(rows))
    if hasattr(detector, "decision_function"):
        return np.asarray(detector.decision_function(rows))
    raise InputError(
        f"{type(detector).__name__} has no score: give it anomaly_score(X) or "
        "decision_function(X), high for anomalies"
    )


def _is_of_sklearn(detector: Any) -> bool:
    """Whether it is one of scikit-learn's outlier detectors, or a pipeline that ends in one."""
    try:
        return bool(is_outlier_detector(detector))
    except (AttributeError, TypeError):  # not one of scikit-learn's kind at all
        return False


def chosen_methods(asked: Iterable[str], plugins: Iterable[str] = ()) -> dict[str, Method]:
    """The asked methods by name, in the registry's order; all of them if none is asked for.

    Plugins are always among them; alone if nothing else is asked for by name.
    """
    extra = [plugin_method(one) for one in plugins]
    by_lower = {name.lower(): name for name in METHODS}
    chosen: set[str] = set()
    for one in asked:
        if one.lower() not in by_lower:
            raise InputError(f"no method is called {one!r}; there are {', '.join(METHODS)}")
        chosen.add(by_lower[one.lower()])
    if not chosen and not extra:
        chosen.update(METHODS)
    result = {name: method for name, method in METHODS.items() if name in chosen}
    for method in extra:
        if method.name.lower() in {name.lower() for name in (*result, *METHODS)}:
            raise InputError(
                f"--plugin {method.name!r} has the name of another method; give it its own with "
                "NAME=module:factory"
            )
        result[method.name] = method
    return result
