"""What the server that runs are forked from has loaded, so that none of them waits for it.

Imports and just-in-time compilation are no part of a method's time. The methods to make ready
are named by an environment variable.
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
from .worker import ASKED

# Their threads would not survive the fork: they are imported only. The rest fit once.
_THREADED = {
    "QMCD": "pyod.models.qmcd",
    "AutoEncoder": "pyod.models.auto_encoder",
    "VAE": "pyod.models.vae",
    "DIF": "pyod.models.dif",
    "LUNAR": "pyod.models.lunar",
    "SO_GAAL": "pyod.models.so_gaal",
    "MO_GAAL": "pyod.models.mo_gaal",
    "TCCM": "diffint.bench.tccm",
}


def _make_ready(name: str) -> None:
    if name not in _THREADED:
        rows = np.random.default_rng(0).random((100, 3))
        METHODS[name].make(0, len(rows)).fit(rows)
        return
    import torch

    importlib.import_module(_THREADED[name])
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # imports much of torch when made


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for _name in os.environ.get(ASKED, "").split(","):
        if _name in METHODS:
            with contextlib.suppress(Exception):  # a run that needs it will say what is wrong
                _make_ready(_name)
    with contextlib.suppress(ImportError):  # what a run's process imports as its main module
        importlib.import_module("diffint.cli")
