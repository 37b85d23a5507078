"""Watch batches of rows, and raise an alarm when the population has moved."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import check_real
from ..core.errors import InputError
from ..core.formatting import counted
from ..core.kinds import value_text
from ..core.model import FittedModel
from ..engine.reference.drift_evidence import BETS, FIRST_SHARE, HORIZON
from ..tables.file_lock import locked
from ..tables.fingerprint import fingerprint
from .drift_file import STATE_FILE, Evidence, decoded, encoded
from .drift_state import Change, DriftState
from .drift_statistics import Bins, DriftStatistics, Statistic
from .streams import check_not_fitted_again, is_empty, model_of

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
DEFAULT_RATE = 0.01  # of false alarms
_BLOCK_ROWS = 8_192  # whose bins are held in memory together
_FEWEST_ROWS = 20  # stored calibration rows; a quarter of them choose the bins
_LARGEST_LOG = 700.0  # of a number that a float can hold


class DriftMonitor:
    """Raises an alarm when rows that arrive in batches are not like before any more.

    Of all streams without drift, at most the share `false_alarm_rate` ever have an alarm, however
    long they are and however often they are looked at. Where rows are cut into batches makes no
    difference.

    For every property that is watched (the anomaly score; of each number its location and spread;
    of each category the shares of its common and of new values; the share of missing values; the
    correlations of pairs of numbers, all pairs up to 20 features), a row has a conformal p-value:
    its rank among the stored calibration rows and all rows of the stream before it, ties broken at
    random. If all these rows are exchangeable, the p-values of a property are independent and
    uniform. Against that, bets are placed that begin anew at every row. What a bet of 1 becomes is
    a martingale, which ever reaches 1/α with a probability of at most α (conformal test
    martingales: Vovk, Nouretdinov and Gammerman 2003; Ville 1939). The rate is split over the
    properties.

    This needs rows that are exchangeable when nothing moves. Copies of rows, rows of one subject
    or machine in sequence, and rows that depend on the ones before them or on the time of day are
    not, and raise alarms. Features made from times are not watched, and with them neither is the
    score. It is proven with ``calibration="holdout"``, which "auto" is from 5,000 rows on. With
    ``"members"``, scores and new values are not comparable with the calibration rows; for these two
    the monitor watches for changes within the stream. So it does for all properties if suspects
    were left out of the training rows or if rows are in groups.

    Anomalies are drift too if they become more common than among the training rows. Rows without
    any value are passed over if the training rows had some. Rows like accepted ones count like all
    others: the monitor watches the population, and accepting rows does not change it.

    Rows that have moved join those that later rows are compared with. So a change is best found
    when many rows came before it, and one that has not raised an alarm for long rarely will. After
    an alarm, find out what has happened, fit again if it stays, and begin a new monitor.

    Parameters
    ----------
    detector : DiffInt
        Fitted, with calibration rows that were left out of training, and stored ones
        (``kept_rows`` is not 0).
    false_alarm_rate : float, default=0.01
        Largest share of streams without drift that ever have an alarm.

    Attributes
    ----------
    drifted : bool
        Whether there has been an alarm.
    n_rows : int
        Rows so far.
    alarm_row : int or None
        The row of the stream, counted from 0, at which the alarm came.
    state : DriftState
        All of this with the features that have moved; `update` returns it.

    Examples
    --------
    >>> import numpy as np
    >>> from diffint import DiffInt, DriftMonitor
    >>> rng = np.random.default_rng(0)
    >>> normal = rng.normal(size=(2000, 3))
    >>> detector = DiffInt(calibration="holdout", epochs=20, random_state=0).fit(normal)
    >>> monitor = DriftMonitor(detector)
    >>> monitor.update(rng.normal(size=(1000, 3))).drifted
    False
    >>> monitor.update(rng.normal(size=(1000, 3)) + [0.0, 0.5, 0.0]).features
    ('x1',)
    """

    def __init__(self, detector: Any, false_alarm_rate: float = DEFAULT_RATE) -> None:
        self._model = _model_of(detector)
        self._detector = detector
        self.false_alarm_rate = check_real(
            "false_alarm_rate", false_alarm_rate, above=0.0, below=1.0
        )
        self._statistics = DriftStatistics(self._model)
        self._fingerprint = _fingerprint_of(self._model)
        self._evidence, self.n_rows = Evidence.before(self._statistics), 0

    # --- Watching --------------------------------------------------------------------------

    def update(self, X: Any) -> DriftState:
        """Watch the next rows, in their order. X: table of shape (rows, features)

        After an error the monitor is as before.
        """
        self._add(self._bins_of(X))
        return self.state

    def _bins_of(self, X: Any) -> list[Bins]:
        """What of a batch counts, in blocks of rows; it does not depend on earlier rows."""
        check_not_fitted_again(self._detector, self._model, "drift monitor")
        if is_empty(X):
            return []
        table = self._detector._read(X)
        return self.bins(table, self._detector._scores(table))

    def bins(self, table: NDArray[np.floating], scores: Array) -> list[Bins]:
        """What of rows counts, in blocks. table: (rows, features), checked; scores: (rows,)"""
        return [
            self._statistics.bins(
                table[start : start + _BLOCK_ROWS], scores[start : start + _BLOCK_ROWS]
            )
            for start in range(0, len(table), _BLOCK_ROWS)
        ]

    def _add(self, blocks: list[Bins]) -> None:
        from ..engine.cpu.drift_evidence import add_rows

        evidence, n_rows = self._evidence.copy(), self.n_rows
        is_binary = np.array([s.is_binary for s in self._statistics.statistics])
        totals = evidence.counts.sum(axis=1)
        log_alarm = -math.log(self.false_alarm_rate) - self._log_weights
        for bins in blocks:
            add_rows(
                *(bins, np.uint64(int(self._fingerprint[:16], 16)), n_rows, is_binary),
                *(*BETS, FIRST_SHARE, HORIZON, evidence.counts, totals, evidence.seen),
                *(evidence.money, evidence.units, evidence.log_money, evidence.growth),
                *(evidence.begun, evidence.log_most, evidence.since, log_alarm),
                evidence.alarm_row,
            )
            n_rows += len(bins)
        self._evidence, self.n_rows = evidence, n_rows

    # --- What was found --------------------------------------------------------------------

    @property
    def drifted(self) -> bool:
        """Whether there has been an alarm."""
        return self.alarm_row is not None

    @property
    def alarm_row(self) -> int | None:
        """The row of the stream, counted from 0, at which the alarm came; None without one."""
        row = int(self._evidence.alarm_row[0])
        return row if row >= 0 else None

    @property
    def state(self) -> DriftState:
        """Where the monitor stands."""
        needed = -math.log(self.false_alarm_rate)
        found = [
            s for s in np.argsort(-self._log_most, kind="stable") if self._log_most[s] >= needed
        ]
        names = self._model.feature_names
        by_feature = self._by_feature()
        moved = [j for j in by_feature if by_feature[j][0] >= needed] if self.drifted else []
        return DriftState(
            drifted=self.drifted,
            alarm_row=self.alarm_row,
            n_rows=self.n_rows,
            e_value=_exp(float((self._evidence.log_money + self._log_weights).max())),
            p_value=_p_value(float(self._log_most.max())),
            features=tuple(names[j] for j in moved),
            changes=tuple(self._change(int(s)) for s in found) if self.drifted else (),
            false_alarm_rate=self.false_alarm_rate,
        )

    def to_frame(self) -> pandas.DataFrame:
        """One line per feature: feature, evidence, p_value, what and since.

        The strongest evidence comes first: the natural logarithm of the most that a bet on the
        feature has become. An alarm needs −log(false_alarm_rate). what: its property with this
        evidence; since: the row from which on it is largest, if the feature has moved.
        """
        import pandas

        lines = []
        for j, (evidence, s) in self._by_feature().items():
            moved = evidence >= -math.log(self.false_alarm_rate)
            lines.append(
                {
                    "feature": self._model.feature_names[j],
                    "evidence": evidence,
                    "p_value": _p_value(evidence),
                    "what": self._statistics.statistics[s].what,
                    "since": int(self._evidence.since[s]) if moved else None,
                }
            )
        columns = ["feature", "evidence", "p_value", "what", "since"]
        return pandas.DataFrame(lines, columns=columns).astype({"since": "Int64"})

    @property
    def _log_weights(self) -> Array:
        return np.log([statistic.weight for statistic in self._statistics.statistics])

    @property
    def _log_most(self) -> Array:
        """The largest evidence of every statistic so far, weighted."""
        return np.asarray(self._evidence.log_most + self._log_weights)

    def _by_feature(self) -> dict[int, tuple[float, int]]:
        """The evidence of each feature and its statistic, the strongest first.

        A correlation counts for its two features if neither of them has moved more by itself. Of
        these two, the first is the one with more evidence in all that is watched of it: a feature
        that comes from elsewhere changes its correlations with all others.
        """
        log_most, statistics = self._log_most, self._statistics.statistics
        total = np.zeros(len(self._model.feature_names))
        for s, statistic in enumerate(statistics):
            total[list(statistic.features)] += self._evidence.log_most[s]
        own: dict[int, tuple[float, int]] = {}
        for s, statistic in enumerate(statistics):
            if len(statistic.features) == 1:
                j = statistic.features[0]
                own[j] = max(own.get(j, (-math.inf, 0)), (float(log_most[s]), s))
        found = dict(own)
        for s, statistic in enumerate(statistics):
            if len(statistic.features) == 2:
                evidence = float(log_most[s])
                if all(own[j][0] < evidence for j in statistic.features):
                    for j in statistic.features:
                        found[j] = max(found[j], (evidence, s))
        order = sorted(found, key=lambda j: (-found[j][0], -total[j]))
        return {j: found[j] for j in order}

    def _change(self, s: int) -> Change:
        statistic: Statistic = self._statistics.statistics[s]
        names = self._model.feature_names
        value = None
        if statistic.what == "value":
            value = value_text(self._model.categories[statistic.features[0]], statistic.value)
        return Change(
            what=statistic.what,
            features=tuple(names[j] for j in statistic.features),
            value=value,
            p_value=_p_value(float(self._log_most[s])),
            since=int(self._evidence.since[s]),
        )

    def __repr__(self) -> str:
        found = f"alarm at row {self.alarm_row:,}" if self.drifted else "no alarm"
        return f"DriftMonitor({counted(self.n_rows, 'row')}, {found})"

    # --- Saving ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write where the monitor stands to a file, completely or not at all."""
        STATE_FILE.write(
            path,
            {
                "model": self._fingerprint,
                "false_alarm_rate": self.false_alarm_rate,
                "n_rows": self.n_rows,
                **{f.name: encoded(getattr(self._evidence, f.name)) for f in fields(Evidence)},
            },
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], detector: Any) -> DriftMonitor:
        """Continue the monitor in a file of `save`, with the detector that it began with."""
        _model_of(detector)  # an error about the detector is not one about the file
        with STATE_FILE.errors_that_name(path):
            state = STATE_FILE.read(path)
            monitor = cls(detector, state["false_alarm_rate"])
            monitor._continue(state)
        return monitor

    def _continue(self, state: dict[str, Any]) -> None:
        if state["model"] != self._fingerprint:
            raise STATE_FILE.of_another_model()
        fresh = Evidence.before(self._statistics)
        arrays = {f.name: decoded(state[f.name], getattr(fresh, f.name)) for f in fields(Evidence)}
        evidence = Evidence(**arrays)
        added = (evidence.counts - fresh.counts).sum(axis=1)
        if (evidence.counts < fresh.counts).any() or (added != evidence.seen).any():
            raise STATE_FILE.damaged()
        self._evidence, self.n_rows = evidence, state["n_rows"]

    @classmethod
    def update_file(
        cls,
        path: str | os.PathLike[str],
        detector: Any,
        X: Any,
        false_alarm_rate: float | None = None,
    ) -> DriftState:
        """Watch the next rows of the monitor in a file, which begins with the first of them.

        Several processes may do so at the same time: each waits for its turn, and none reads or
        leaves half a file. After an error the file is as before.

        Parameters
        ----------
        path : path
            A file of `save`; if there is none, a new monitor begins.
        detector : DiffInt
            The detector that the monitor began with.
        X : table of shape (rows, features)
        false_alarm_rate : float, default=None
            That of a new monitor, 0.01 if it is None; another one than that of the file is refused.
        """
        rate = DEFAULT_RATE if false_alarm_rate is None else false_alarm_rate
        blocks = cls(detector, rate)._bins_of(X)  # outside of the lock, as scoring takes long
        return cls.add_to_file(path, detector, blocks, false_alarm_rate)

    @classmethod
    def for_file(
        cls, path: str | os.PathLike[str], detector: Any, false_alarm_rate: float | None = None
    ) -> DriftMonitor:
        """The monitor in a file, or a new one if there is none; see `update_file`."""
        monitor = cls(detector, DEFAULT_RATE if false_alarm_rate is None else false_alarm_rate)
        if not Path(path).exists():
            return monitor
        monitor = cls.load(path, detector)
        if false_alarm_rate not in (None, monitor.false_alarm_rate):
            raise InputError(
                f"{str(path)!r}: the drift monitor has a false alarm rate of "
                f"{monitor.false_alarm_rate:g}, not {false_alarm_rate:g}; leave it out, or begin a "
                "new monitor"
            )
        return monitor

    @classmethod
    def add_to_file(
        cls,
        path: str | os.PathLike[str],
        detector: Any,
        blocks: list[Bins],
        false_alarm_rate: float | None = None,
    ) -> DriftState:
        """Add blocks of `bins` to the monitor in a file; see `update_file`."""
        with locked(path):
            monitor = cls.for_file(path, detector, false_alarm_rate)
            monitor._add(blocks)
            monitor.save(path)
        return monitor.state


def _model_of(detector: Any) -> FittedModel:
    """The model of a detector that a drift monitor can use."""
    model = model_of(detector, "a drift monitor", "which new rows cannot be compared with")
    calibration = model.calibration
    if not len(calibration.sample):
        raise InputError(
            "the model stores no rows to compare new rows with; fit it without kept_rows=0"
        )
    if len(calibration.sample) < _FEWEST_ROWS:
        raise InputError(
            f"the model has {counted(len(calibration.sample), 'calibration row')}, but a drift "
            f"monitor needs at least {_FEWEST_ROWS}; fit on more rows"
        )
    return model


def _fingerprint_of(model: FittedModel) -> str:
    """A digest of the rows that new rows are compared with."""
    calibration = model.calibration
    parts = fingerprint(calibration.scores[:, np.newaxis]), fingerprint(calibration.sample)
    return hashlib.sha256("".join(parts).encode("ascii")).hexdigest()


def _exp(value: float) -> float:
    return math.exp(min(value, _LARGEST_LOG))


def _p_value(log_evidence: float) -> float:
    return math.exp(-max(log_evidence, 0.0))
