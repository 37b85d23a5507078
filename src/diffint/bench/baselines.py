"""The methods of the benchmark: names, constructors, and the rows they train on.

A new method is one entry of `METHODS`; users add their own as plugins (`plugin_method`).
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_outlier_detector

from ..core.errors import InputError
from .protocol import Regime, Scaling, TrainsOn


@dataclass(frozen=True)
class Method:
    """A method of the benchmark.

    name: used in every table and on the command line.
    make: returns a new detector for a seed and the number of rows of the whole table.
    trains_on: the rows it trains on in the paper regime; in the fair regime all methods train
        on inliers.
    in_paper: whether it is one of the 23 methods that the paper ranks.
    scaling: how its rows are scaled; "none" for DiffInt, which scales them itself as the protocol
        does.
    on_gpu: whether its seeds are trained together on a GPU if there is one (DiffInt only).
    plugin: the source of a plugin, 'module:factory'; None for others.
    package: a package that it needs and that is not installed with the benchmark.
    description: what it is and where it is from, as in docs/benchmark.md.
    """

    name: str
    make: Callable[[int, int], Any]
    trains_on: TrainsOn = "everything"
    in_paper: bool = True
    scaling: Scaling = "minmax"
    on_gpu: bool = False
    plugin: str | None = None
    package: str | None = None
    description: str = ""

    def rows_for(self, regime: Regime) -> TrainsOn:
        """The rows it trains on in a regime."""
        return "inliers" if regime == "fair" else self.trains_on

    @property
    def installed(self) -> bool:
        """Whether the package that it needs is installed."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def _pyod(
    name: str,
    description: str,
    trains_on: TrainsOn = "everything",
    in_paper: bool = True,
) -> Method:
    """PyOD's detector with its defaults, and the seed if it has a parameter for it."""
    return Method(name, _pyod_maker(name), trains_on, in_paper, description=f"PyOD: {description}")


def _pyod_standard(name: str, description: str, **settings: Any) -> Method:
    """PyOD's detector on standardised rows."""
    make = _pyod_maker(name, **settings)
    return Method(
        f"{name}-standard", make, in_paper=False, scaling="standard", description=description
    )


def _pyod_maker(name: str, **settings: Any) -> Callable[[int, int], Any]:
    def make(seed: int, n_rows: int) -> Any:
        module = "auto_encoder" if name == "AutoEncoder" else name.lower()
        detector = getattr(importlib.import_module(f"pyod.models.{module}"), name)
        parameters = inspect.signature(detector).parameters
        values = {"random_state": seed, "verbose": 0}
        known = {name: value for name, value in values.items() if name in parameters}
        return detector(**known, **settings)

    return make


def _rival(module: str, cls: str) -> Callable[[int, int], Any]:
    """A detector of `rivals/`."""

    def make(seed: int, n_rows: int) -> Any:
        rival = importlib.import_module(f"diffint.bench.rivals.{module}")
        return getattr(rival, cls)(random_state=seed)

    return make


def _deepod(name: str, **settings: Any) -> Callable[[int, int], Any]:
    """DeepOD's detector with its defaults, except for these settings.

    `epoch_steps` limits the steps of each of the 100 epochs, so that fits on larger tables end in
    the time of the benchmark.
    """

    def make(seed: int, n_rows: int) -> Any:
        detector = getattr(importlib.import_module("deepod.models.tabular"), name)
        return detector(device="cpu", verbose=0, random_state=seed, **settings)

    return make


def _newer(
    name: str,
    make: Callable[[int, int], Any],
    scaling: Scaling,
    description: str,
    package: str | None = None,
) -> Method:
    """A method that the paper does not rank, trained on inliers in both regimes."""
    return Method(name, make, "inliers", False, scaling, package=package, description=description)


def _diffint(preset: str) -> Callable[[int, int], Any]:
    def make(seed: int, n_rows: int) -> Any:
        from ..core.config import PRESETS, paper_batch_size
        from ..estimator import DiffInt

        settings = PRESETS[preset].to_dict()
        if settings["batch_size"] == "paper":  # depends on the whole table's rows
            settings["batch_size"] = paper_batch_size(n_rows)
        return DiffInt(**settings, random_state=seed, device="cpu", n_jobs=1)

    return make


_ALL = (
    Method(
        "DiffInt",
        _diffint("recommended"),
        "inliers",
        False,
        "none",
        True,
        description="this package, its recommended configuration",
    ),
    Method(
        "DiffInt-paper",
        _diffint("paper"),
        "inliers",
        True,
        "none",
        True,
        description="this package, the configuration of the paper",
    ),
    _pyod("KNN", "distance to the 5th nearest training row", in_paper=False),
    _pyod("ABOD", "variance of the angles to pairs of neighbours"),
    _pyod("LOF", "density relative to that of 20 neighbours"),
    _pyod("PCA", "distance along principal components, weighted by their variance"),
    _pyod("KPCA", "reconstruction error of principal components of an RBF kernel"),
    _pyod("OCSVM", "one-class support vector machine, RBF kernel"),
    _pyod("ECOD", "tail probabilities of each feature"),
    _pyod("CBLOF", "distance to the nearest large cluster of k-means"),
    _pyod("KDE", "kernel density estimate"),
    _pyod("GMM", "density of a Gaussian (a mixture with one component)"),
    _pyod("MCD", "Mahalanobis distance with a robust covariance"),
    _pyod("HBOS", "histograms of each feature"),
    _pyod("IForest", "isolation forest"),
    _pyod("LMDD", "deviation: how much a row adds to the dissimilarity of a set"),
    _pyod("QMCD", "quasi-Monte-Carlo discrepancy"),
    _pyod("Sampling", "distance to the nearest of 20 sampled rows"),
    _pyod("AutoEncoder", "reconstruction error of an autoencoder", "inliers"),
    _pyod("VAE", "reconstruction error of a variational autoencoder", "inliers"),
    _pyod("DIF", "isolation forests on random representations"),
    _pyod("LUNAR", "graph network on the distances to 5 neighbours"),
    _pyod("SO_GAAL", "a generator of anomalies against a discriminator"),
    _pyod("MO_GAAL", "the same with several generators"),
    Method(
        "TCCM",
        _rival("tccm", "TCCM"),
        "inliers",
        description="one-step flow matching, from its description",
    ),
    _pyod_standard(
        "KNN",
        "mean distance to the 5 nearest standardised rows, which stands for the non-parametric "
        "variant of DTE (whose score grows with the mean squared distance to 5 rows)",
        method="mean",
    ),
    _pyod_standard("LOF", "LOF on standardised rows"),
    _pyod_standard("CBLOF", "CBLOF on standardised rows"),
    _pyod_standard("ABOD", "ABOD on standardised rows"),
    _pyod_standard("KDE", "KDE on standardised rows"),
    _pyod_standard("KPCA", "KPCA on standardised rows"),
    _pyod_standard("OCSVM", "OCSVM on standardised rows"),
    _pyod_standard("Sampling", "Sampling on standardised rows"),
    _pyod_standard("LUNAR", "LUNAR on standardised rows, which it scales to [0, 1] itself"),
    _newer(
        "DTE-C",
        _rival("dte", "DTECategorical"),
        "standard",
        "diffusion time estimation by classification, from Livernoche et al., ICLR 2024",
    ),
    _newer(
        "MCM", _rival("mcm", "MCM"), "standard", "masked cell modelling, from Yin et al., ICLR 2024"
    ),
    _newer(
        "ICL",
        _rival("icl", "ICL"),
        "minmax",
        "DeepOD, corrected: internal contrastive learning (Shenkar and Wolf, ICLR 2022)",
        "deepod",
    ),
    _newer(
        "SLAD",
        _deepod("SLAD", epoch_steps=50),
        "standard",
        "DeepOD: scale learning (Xu et al., ICML 2023)",
        "deepod",
    ),
    _newer(
        "NeuTraL",
        _deepod("NeuTraL", epoch_steps=80),
        "minmax",
        "DeepOD: learned transformations (Qiu et al., ICML 2021)",
        "deepod",
    ),
    _newer(
        "GOAD",
        # Its defaults, 256 and 100, take minutes on the smallest tables.
        _deepod("GOAD", n_trans=64, epochs=5),
        "minmax",
        "DeepOD: classification of transformations (Bergman and Hoshen, ICLR 2020)",
        "deepod",
    ),
)
METHODS: dict[str, Method] = {method.name: method for method in _ALL}
DIFFINT_METHODS = ("DiffInt", "DiffInt-paper")
# Its requirements name an old torch, but it runs with the present one.
DEEPOD_INSTALL = "pip install --no-deps deepod==0.4.1"


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

    Without names: the plugins only, or all methods whose packages are installed if there are no
    plugins.
    """
    extra = [plugin_method(one) for one in plugins]
    by_lower = {name.lower(): name for name in METHODS}
    chosen: set[str] = set()
    for one in names:
        if one.lower() not in by_lower:
            raise InputError(f"no method is called {one!r}; the methods are {', '.join(METHODS)}")
        chosen.add(by_lower[one.lower()])
    missing = [name for name in chosen if not METHODS[name].installed]
    if missing:
        raise InputError(not_installed(missing))
    if not chosen and not extra:
        chosen.update(name for name, method in METHODS.items() if method.installed)
    result = {name: method for name, method in METHODS.items() if name in chosen}
    for method in extra:
        if method.name.lower() in {name.lower() for name in (*result, *METHODS)}:
            raise InputError(
                f"--plugin {method.name!r} has the name of another method; choose another with "
                "NAME=module:factory"
            )
        result[method.name] = method
    return result


def absent_methods() -> list[str]:
    """The methods whose packages are not installed."""
    return [name for name, method in METHODS.items() if not method.installed]


def not_installed(names: Iterable[str]) -> str:
    """A message that says which package these methods need, and how to install it."""
    wanted = set(names)
    shown = ", ".join(name for name in METHODS if name in wanted)
    verb = "need" if len(wanted) > 1 else "needs"
    return f"{shown} {verb} DeepOD; install it with {DEEPOD_INSTALL}"
