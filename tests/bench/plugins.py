"""Plugins for the tests: detectors that work, fail, hang or crash."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
from sklearn.ensemble import IsolationForest


class Distance:
    """Distance from the training mean; writes a line for every fit if PLUGIN_LOG is set."""

    def fit(self, X: Any) -> Distance:
        """Store the mean."""
        self.mean_ = X.mean(axis=0)
        if os.environ.get("PLUGIN_LOG"):
            with open(os.environ["PLUGIN_LOG"], "a") as log:
                log.write("fitted\n")
        return self

    def decision_function(self, X: Any) -> Any:
        """High = far."""
        return np.abs(X - self.mean_).sum(axis=1)


class Slowish(Distance):
    """Slow enough for the progress to be shown."""

    def fit(self, X: Any) -> Distance:
        """Wait, then fit."""
        time.sleep(0.1)
        return super().fit(X)


class Slow(Distance):
    """Slow enough to be killed with the server by a run that does only that."""

    def fit(self, X: Any) -> Distance:
        """Wait, then fit."""
        time.sleep(1.0)
        return super().fit(X)


class LooksSlow(Distance):
    """Its fit takes a thousand seconds by the clock of its process."""

    def fit(self, X: Any) -> Distance:
        """Fit, and put the clock forward."""
        real = time.perf_counter
        time.perf_counter = lambda: real() + 1000.0
        return super().fit(X)


class Gated(Distance):
    """Ends its fits once the file PLUGIN_GATE is there."""

    def fit(self, X: Any) -> Distance:
        """Fit, then wait."""
        super().fit(X)
        while not os.path.exists(os.environ["PLUGIN_GATE"]):
            time.sleep(0.01)
        return self


class Together(Distance):
    """Fits once another command does so too, whose log is PLUGIN_OTHER_LOG."""

    def fit(self, X: Any) -> Distance:
        """Fit, then wait."""
        super().fit(X)
        while not os.path.exists(os.environ.get("PLUGIN_OTHER_LOG", os.devnull)):
            time.sleep(0.01)
        return self


class OnInliers(Distance):
    """Trains on the same rows in both regimes."""

    trains_on = "inliers"


class Seeded:
    """Random scores from the seed."""

    def __init__(self, *, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def fit(self, X: Any) -> None:
        """Do nothing."""

    def anomaly_score(self, X: Any) -> Any:
        """Random scores."""
        return self.rng.random(len(X))


def forest(seed: int) -> IsolationForest:
    """A scikit-learn detector, whose scores are high for normal rows."""
    return IsolationForest(random_state=seed, n_estimators=20)


class Hangs(Distance):
    """Never ends its fit."""

    def fit(self, X: Any) -> Distance:
        """Loop forever."""
        while True:
            pass


class HangsScoring(Distance):
    """Never ends its scoring, and starts a child process."""

    def decision_function(self, X: Any) -> Any:
        """Wait for a child that sleeps."""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        with open(os.environ["PLUGIN_LOG"], "a") as log:
            log.write(f"{child.pid}\n")
        child.wait()


class Crashes(Distance):
    """Crashes the interpreter."""

    def fit(self, X: Any) -> Distance:
        """Read an invalid address."""
        ctypes.string_at(0)
        raise AssertionError("not reached")


class Exits(Distance):
    """Ends the process without a message."""

    def fit(self, X: Any) -> Distance:
        """Exit."""
        os._exit(3)


class UsesMuchMemory(Distance):
    """Uses 1.5 GB, and keeps them."""

    def fit(self, X: Any) -> Distance:
        """Allocate and use memory, then wait for the end."""
        self.blocks = [np.ones(2**22) for _ in range(48)]
        while True:
            time.sleep(1.0)


class RaisesMemoryError(Distance):
    """Gets a MemoryError."""

    def fit(self, X: Any) -> Distance:
        """Allocate too much at once."""
        np.ones(2**50)
        return self


class ReturnsNaN(Distance):
    """Returns NaN for some rows."""

    def decision_function(self, X: Any) -> Any:
        """NaN for the first rows."""
        scores = super().decision_function(X)
        scores[:3] = np.nan
        return scores


class WrongLength(Distance):
    """Returns one score too few."""

    def decision_function(self, X: Any) -> Any:
        """All but one score."""
        return super().decision_function(X)[1:]


class Raises(Distance):
    """Prints, and raises an error with a message of two lines."""

    def fit(self, X: Any) -> Distance:
        """Raise an error."""
        print("noise" * 1000)
        os.write(2, b"more noise\n")
        raise RuntimeError("this table,\nhere, is not supported")


class UnencodableMessage(Distance):
    """Raises an error whose message cannot be encoded."""

    def fit(self, X: Any) -> Distance:
        """Raise an error with a surrogate and a NUL."""
        raise RuntimeError("\udc80 in the file\x00")


class WritesToPipe(Distance):
    """Writes to every open file, including the runner's pipe."""

    def fit(self, X: Any) -> Distance:
        """Write invalid data with a valid length."""
        for file in range(3, 64):
            try:
                os.write(file, b"\x00\x00\x00\x04what")
            except OSError:
                continue
        return self


class Killed(Distance):
    """Is killed, as by the system when memory is short."""

    def fit(self, X: Any) -> Distance:
        """Kill this process."""
        os.kill(os.getpid(), signal.SIGKILL)
        return self


class KillsServer(Distance):
    """Kills the fork server."""

    def fit(self, X: Any) -> Distance:
        """Kill the parent process."""
        os.kill(os.getppid(), signal.SIGKILL)
        while True:
            time.sleep(1.0)  # until the system ends this process too


class StartsSession(Distance):
    """Starts a child in a new session."""

    def fit(self, X: Any) -> Distance:
        """Start the child, then fit."""
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(os.environ["PLUGIN_LOG"], "a") as log:
            log.write(f"{child.pid}\n")
        return super().fit(X)


class Column(Distance):
    """Returns a column instead of a vector."""

    def decision_function(self, X: Any) -> Any:
        """(rows, 1)"""
        return super().decision_function(X)[:, None]


class WithoutScore:
    """Has no scoring method."""

    def fit(self, X: Any) -> None:
        """Do nothing."""
