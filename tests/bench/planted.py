"""Detectors for the runner to cope with: good, bad, and worse. Used as plugins."""

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
    """Distance from the training mean; writes a line for every fit where it is told to."""

    def fit(self, X: Any) -> Distance:
        """Remember the mean."""
        self.mean_ = X.mean(axis=0)
        if os.environ.get("PLANTED_LOG"):
            with open(os.environ["PLANTED_LOG"], "a") as log:
                log.write("fitted\n")
        return self

    def decision_function(self, X: Any) -> Any:
        """High = far."""
        return np.abs(X - self.mean_).sum(axis=1)


class Slowish(Distance):
    """Long enough for a kill or a second run to come in between."""

    def fit(self, X: Any) -> Distance:
        """Wait, then the same."""
        time.sleep(0.1)
        return super().fit(X)


class Slow(Distance):
    """Long enough for a limit."""

    def fit(self, X: Any) -> Distance:
        """Wait, then the same."""
        time.sleep(1.0)
        return super().fit(X)


class OnInliers(Distance):
    """The same in both regimes."""

    trains_on = "inliers"


class Seeded:
    """Scores that are nothing but the seed's random numbers."""

    def __init__(self, *, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def fit(self, X: Any) -> None:
        """Nothing to learn."""

    def anomaly_score(self, X: Any) -> Any:
        """Random."""
        return self.rng.random(len(X))


def forest(seed: int) -> IsolationForest:
    """One of scikit-learn's, whose scores are high for normal rows."""
    return IsolationForest(random_state=seed, n_estimators=20)


class Hangs(Distance):
    """Never comes back from its fit."""

    def fit(self, X: Any) -> Distance:
        """Busy for ever."""
        while True:
            pass


class HangsScoring(Distance):
    """Never comes back from its scores, and has started a process of its own."""

    def decision_function(self, X: Any) -> Any:
        """Waits for a child that waits."""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
        with open(os.environ["PLANTED_LOG"], "a") as log:
            log.write(f"{child.pid}\n")
        child.wait()


class Crashes(Distance):
    """Takes the interpreter with it."""

    def fit(self, X: Any) -> Distance:
        """Reads where nothing is."""
        ctypes.string_at(0)
        raise AssertionError("not reached")


class Exits(Distance):
    """Leaves without a word."""

    def fit(self, X: Any) -> Distance:
        """Gone."""
        os._exit(3)


class EatsMemory(Distance):
    """Takes all the memory it can get."""

    def fit(self, X: Any) -> Distance:
        """More and more of it, and uses it."""
        self.hoard = []
        while True:
            self.hoard.append(np.ones(2**22))
            time.sleep(0.002)


class LacksMemory(Distance):
    """Is told by the system that there is no more memory."""

    def fit(self, X: Any) -> Distance:
        """Asks for far too much."""
        np.ones(2**50)
        return self


class ReturnsNaN(Distance):
    """Cannot say for some rows."""

    def decision_function(self, X: Any) -> Any:
        """NaN first."""
        scores = super().decision_function(X)
        scores[:3] = np.nan
        return scores


class WrongLength(Distance):
    """Loses a row."""

    def decision_function(self, X: Any) -> Any:
        """One short."""
        return super().decision_function(X)[1:]


class Raises(Distance):
    """Fails with a message of two lines, and prints before it does."""

    def fit(self, X: Any) -> Distance:
        """No."""
        print("noise" * 1000)
        os.write(2, b"more noise\n")
        raise RuntimeError("this table,\nhere, is not to my taste")


class Unspeakable(Distance):
    """Has a message that no encoding can write."""

    def fit(self, X: Any) -> Distance:
        """As a file name would be that is not text."""
        raise RuntimeError("\udc80 in the file\x00")


class Garbles(Distance):
    """Writes to every file it can reach, the runner's among them."""

    def fit(self, X: Any) -> Distance:
        """Nonsense, of a length that the other side believes in."""
        for file in range(3, 64):
            try:
                os.write(file, b"\x00\x00\x00\x04what")
            except OSError:
                continue
        return self


class Killed(Distance):
    """Is killed from outside, as the system does when memory is short."""

    def fit(self, X: Any) -> Distance:
        """Not by the runner."""
        os.kill(os.getpid(), signal.SIGKILL)
        return self


class KillsServer(Distance):
    """Takes the process with it from which all are forked."""

    def fit(self, X: Any) -> Distance:
        """The parent."""
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
        return self


class Deserts(Distance):
    """Starts a process that leaves for a session of its own."""

    def fit(self, X: Any) -> Distance:
        """Long enough to be seen."""
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        with open(os.environ["PLANTED_LOG"], "a") as log:
            log.write(f"{child.pid}\n")
        return super().fit(X)


class Column(Distance):
    """Returns a column instead of a vector."""

    def decision_function(self, X: Any) -> Any:
        """(rows, 1)"""
        return super().decision_function(X)[:, None]


class Scoreless:
    """Has nothing to say it with."""

    def fit(self, X: Any) -> None:
        """Nothing."""
