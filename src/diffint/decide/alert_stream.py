"""Alerts in a stream of batches, with control of the share of false ones."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.calibration import Calibration
from ..core.checks import check_real
from ..core.errors import (
    CalibrationWarning,
    InputError,
    warn,
)
from ..core.formatting import counted
from ..tables.fingerprint import fingerprint
from .conditional_p_values import LARGEST_CONFIDENCE, p_value_band
from .state_file import StateFile
from .streams import check_not_fitted_again, is_empty, model_of

# Savings are spent over this many times the rows that one alert pays for. With 1 the alerts of
# sparse streams end early, with 10 the level rises late; 2 to 4 find about as many anomalies.
_PATIENCE = 3


def _possible(state: dict[str, Any]) -> bool:
    """Whether a stream can have this state."""
    counts = [state.get(name) for name in ("n_rows", "n_alerts", "left")]
    values = [state.get(name) for name in ("false_discovery_rate", "confidence", "unit")]
    return (
        all(type(count) is int and count >= 0 for count in counts)
        and state["n_alerts"] <= state["n_rows"]
        and all(type(value) is float and 0 < value < 1 for value in values)
    )


STATE_FILE = StateFile(
    key="diffint_alert_stream",
    version=1,
    thing="an alert stream",
    fresh="a new stream",
    longest=10_000,  # a file has about 400 bytes
    is_possible=_possible,
)


class AlertStream:
    """Alerts among rows that arrive in batches, of which few are false, however long it lasts.

    Of the alerts among the first t rows of the stream, for any t fixed beforehand, the expected
    share of normal rows is at most `false_discovery_rate`, with probability `confidence` over the
    calibration rows. Where rows are cut into batches makes no difference.

    Two theorems give this. Given the calibration rows, the p-values of `p_value_band` are
    independent, and valid with probability `confidence` (Bates, Candès, Lei, Romano and Sesia
    2023). For independent valid p-values, the false discovery rate is controlled if each row's
    level depends on earlier alerts only, another earlier alert never lowers it, and the levels
    sum to at most the rate times the number of alerts, or times 1 before the first (monotone
    GAI++ rules: Ramdas, Yang, Wainwright and Jordan 2017). They need normal rows of the stream
    that are independent of each other and of all others, and distributed like the calibration
    rows, and ``calibration="holdout"``. With ``"members"``, each calibration row is scored by the
    members that left it out only, and no theorem applies: in simulations p-values were as valid
    up to a rate of 0.1, and no level is above the rate, but not beyond. Calibration rows in groups
    count by groups, and rows of the stream have to come from different groups.

    The smallest p-value b is about 3.5 / n with n calibration rows. Levels are whole multiples of
    b, as other levels would cost more and find nothing more. So at most rate / b rows, about
    n / 35 with a rate of 0.1, can be tested before the first alert, and each further alert pays
    for as many again: if anomalies are found less often, the alerts end, with a warning. This
    is not particular to the procedure: with b a normal row is an alert in 1 of n cases or so, and
    if anomalies were rarer than that, most alerts would be false.

    Rows like accepted ones are never alerts, as their p-value is 1; rows may be accepted or
    withdrawn while the stream goes on.

    Parameters
    ----------
    detector : DiffInt
        Fitted, with calibration rows that were left out of training.
    false_discovery_rate : float, default=0.1
        Largest expected share of false alerts among all alerts.
    confidence : float, default=0.95
        Probability, over the calibration rows, that the rate holds.

    Attributes
    ----------
    n_rows, n_alerts : int
        Rows and alerts of the stream so far.
    level : float
        The next row is an alert if its p-value is at most this; 0 if there can be no more alerts.

    Examples
    --------
    >>> import numpy as np
    >>> from diffint import AlertStream, DiffInt
    >>> rng = np.random.default_rng(0)
    >>> normal = rng.normal(size=(2000, 3))
    >>> detector = DiffInt(calibration="holdout", epochs=20, random_state=0).fit(normal)
    >>> stream = AlertStream(detector)
    >>> stream.select([[0.0, 0.0, 0.0], [9.0, -9.0, 9.0]])
    array([False,  True])
    >>> stream.n_rows, stream.n_alerts
    (2, 1)
    """

    def __init__(
        self, detector: Any, false_discovery_rate: float = 0.1, confidence: float = 0.95
    ) -> None:
        self._calibration = _calibration_of(detector)
        self._detector, self._model = detector, detector.model_
        self.false_discovery_rate = check_real(
            "false_discovery_rate", false_discovery_rate, above=0.0, below=1.0
        )
        self.confidence = check_real("confidence", confidence, above=0.0, below=LARGEST_CONFIDENCE)
        self._band = p_value_band(self._calibration.n_groups, self.confidence)
        # Levels, and the sum of them that is left, are counted in units of the smallest p-value.
        # In whole units, a row's level rises by at most 1 with each unit that is left before it, so
        # that what is left after it does not fall either: another alert never lowers a level.
        self._unit = float(self._band[0])
        self._units_per_alert = int(self.false_discovery_rate / self._unit)
        self.n_rows, self.n_alerts = 0, 0
        self._left = self._units_per_alert  # what the first alert pays for is there from the start
        self._warned = False
        if not self._units_per_alert:
            self._warn_of_too_few_rows()

    @property
    def level(self) -> float:
        """The largest p-value with which the next row is an alert; 0 if there is none."""
        return self._level_with(self._left) * self._unit

    def _level_with(self, left: int) -> int:
        """The level of a row, in units, if so many are left."""
        return -(-left // (_PATIENCE * self._units_per_alert)) if left else 0

    def select(self, X: Any) -> NDArray[np.bool_]:
        """Which rows of the next batch are alerts. X: table of shape (rows, features) → (rows,)

        After an error the stream is as before.
        """
        check_not_fitted_again(self._detector, self._model, "alert stream")
        if is_empty(X):
            return np.zeros(0, dtype=bool)
        ranks = self._ranks_of(X)
        needed = np.ceil(self._band / self._unit).astype(np.int64)[ranks - 1]
        alerts = np.zeros(len(ranks), dtype=bool)
        left, n_alerts = self._left, self.n_alerts
        for row, level_needed in enumerate(needed.tolist()):
            if not left:
                break
            level = self._level_with(left)
            left -= level
            if level_needed <= level:
                alerts[row] = True
                n_alerts += 1
                if n_alerts > 1:
                    left += self._units_per_alert
        self.n_rows += len(alerts)
        self.n_alerts, self._left = n_alerts, left
        if not left and not self._warned:
            self._warn_of_the_end()
        return alerts

    def _ranks_of(self, X: Any) -> NDArray[np.int64]:
        """1 + the number of calibration scores at least as high as those of the rows. (rows,)

        Rows like accepted ones have the last rank, a p-value of 1. They take their level all the
        same: to skip rows because of their values would make others too likely to be alerts.
        """
        detector = self._detector
        scores = detector.anomaly_score(X)
        ranks = _ranks(self._calibration, scores)
        if len(detector.model_.accepted):
            accepted = detector._rule_for(X, warn=False, scores=scores).accepted
            if accepted is not None:
                ranks[accepted] = self._calibration.n_groups + 1
        return ranks

    def _warn_of_too_few_rows(self) -> None:
        self._warned = True
        n_groups, unit = self._calibration.n_groups, _unit_of(self._calibration)
        needed = n_groups * math.log1p(-self._unit) / math.log1p(-self.false_discovery_rate)
        warn(
            f"{counted(n_groups, unit)} cannot give any alert at a false discovery rate of "
            f"{self.false_discovery_rate:g}, which needs at least about {math.ceil(needed):,}, and "
            "many more unless most rows are anomalies; fit on more rows or raise "
            "false_discovery_rate",
            CalibrationWarning,
        )

    def _warn_of_the_end(self) -> None:
        self._warned = True
        n_groups, unit = self._calibration.n_groups, _unit_of(self._calibration)
        warn(
            f"after {counted(self.n_rows, 'row')} and {counted(self.n_alerts, 'alert')} no later "
            f"row can be an alert: with {counted(n_groups, unit)}, alerts go on "
            f"only if one in about {counted(self._units_per_alert, 'row')} or more is found; fit "
            "on more rows, raise false_discovery_rate, or begin a new stream, which has its own "
            "share of false alerts",
            CalibrationWarning,
        )

    # --- Saving ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write where the stream stands to a JSON file, completely or not at all."""
        STATE_FILE.write(path, self._state())

    def _state(self) -> dict[str, Any]:
        return {
            "model": fingerprint(self._calibration.scores[:, np.newaxis]),
            "false_discovery_rate": self.false_discovery_rate,
            "confidence": self.confidence,
            "n_rows": self.n_rows,
            "n_alerts": self.n_alerts,
            "left": self._left,
            "unit": self._unit,
        }

    @classmethod
    def load(cls, path: str | os.PathLike[str], detector: Any) -> AlertStream:
        """Continue the stream in a file written by `save`, with the detector that it began with."""
        _calibration_of(detector)  # an error about the detector is not one about the file
        with STATE_FILE.errors_that_name(path):
            return cls._from_state(STATE_FILE.read(path), detector)

    @classmethod
    def _from_state(cls, state: dict[str, Any], detector: Any) -> AlertStream:
        stream = cls(detector, state["false_discovery_rate"], state["confidence"])
        expected = stream._state()
        if state["model"] != expected["model"]:
            raise STATE_FILE.of_another_model()
        stream.n_rows, stream.n_alerts = state["n_rows"], state["n_alerts"]
        # Other versions of NumPy may draw other numbers and so have a slightly different unit.
        stream._left = int(state["left"] * (state["unit"] / stream._unit) + 1e-9)
        return stream


def _calibration_of(detector: Any) -> Calibration:
    """The calibration of a detector that an alert stream can use."""
    why = "whose scores are too low to judge alerts"
    calibration = model_of(detector, "an alert stream", why).calibration
    if calibration.segment_names:
        raise InputError(
            "an alert stream has one level for all rows, but the detector has a threshold for each "
            "segment; fit it without segments, or one detector for each"
        )
    return calibration


def _ranks(calibration: Calibration, scores: NDArray[Any]) -> NDArray[np.int64]:
    """1 + the number of calibration scores, or groups of them, at least as high. (rows,)"""
    n_groups = calibration.n_groups
    if n_groups == len(calibration.scores):
        return np.asarray(n_groups + 1 - np.searchsorted(calibration.scores, scores, side="left"))
    # Shares of groups are rounded up.
    counts = (n_groups + 1) * calibration.p_values(scores)
    return np.asarray(np.ceil(counts - 1e-9), dtype=np.int64)


def _unit_of(calibration: Calibration) -> str:
    grouped = calibration.n_groups < len(calibration.scores)
    return "calibration group" if grouped else "calibration row"
