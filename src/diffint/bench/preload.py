"""Imported by the fork server: loads and compiles what the runs need before they start.

So imports and just-in-time compilation do not count in a method's time. An environment variable
lists the methods to prepare.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import warnings

import numpy as np
import scipy.stats  # noqa: F401
import sklearn.metrics  # noqa: F401

from .baselines import METHODS
from .worker import METHODS_VARIABLE

# These start threads, which do not survive a fork, so they are only imported. Others fit once.
_THREADED = {
    "QMCD": "pyod.models.qmcd",
    "AutoEncoder": "pyod.models.auto_encoder",
    "VAE": "pyod.models.vae",
    "DIF": "pyod.models.dif",
    "LUNAR": "pyod.models.lunar",
    "SO_GAAL": "pyod.models.so_gaal",
    "MO_GAAL": "pyod.models.mo_gaal",
    "LUNAR-standard": "pyod.models.lunar",
    "TCCM": "diffint.bench.rivals.tccm",
    "DTE-C": "diffint.bench.rivals.dte",
    "MCM": "diffint.bench.rivals.mcm",
    "ICL": "diffint.bench.rivals.icl",
    **dict.fromkeys(("SLAD", "NeuTraL", "GOAD"), "deepod.models.tabular"),
}


def _prepare(name: str) -> None:
    if name not in _THREADED:
        rows = np.random.default_rng(0).random((100, 3))
        METHODS[name].make(0, len(rows)).fit(rows)
        return
    import torch

    importlib.import_module(_THREADED[name])
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # its first use imports much of torch


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name in os.environ.get(METHODS_VARIABLE, "").split(","):
        if _name in METHODS:
            with contextlib.suppress(Exception):  # a run that needs it reports the error
                _prepare(_name)
    with contextlib.suppress(ImportError):  # imported by each run's process as its main module
        importlib.import_module("diffint.cli")
