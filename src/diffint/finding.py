"""`find_anomalies`: the odd rows of a table that is all there is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .core.checks import check_count, resolve_jobs
from .core.errors import InputError
from .core.formatting import counted
from .core.row_labels import index_for, index_of
from .decide.beyond_chance import scores_beyond_chance
from .estimator import DiffInt
from .tables.fingerprint import full_fingerprint
from .tables.frames import new_texts_of

if TYPE_CHECKING:
    import pandas

    from .explain.local_explanation import LocalExplanation

_FEWEST_ROWS = 10
_FALSE_DISCOVERY_RATE = 0.1


@dataclass(frozen=True, eq=False)
class AnomaliesFound:
    """The rows of a table with scores by members that were not trained on them.

    scores : ndarray of shape (rows,)
        Anomaly scores; higher is more anomalous.
    p_values : ndarray of shape (rows,)
        The share of the rows that are not suspects that score at least as high.
    suspects : ndarray of shape (rows,)
        Whether a row was left out of training because it may be an anomaly.
    detector : DiffInt
        Fitted on the rows that are not suspects; for new rows, explanations and reports. Its scores
        of the rows of this table are too low: use `scores`.
    index : pandas Index or None
        The index of the table, if it has one.
    fingerprint : str
        Of the whole table, to tell whether it is given again.
    """

    scores: NDArray[np.float64]
    p_values: NDArray[np.float64]
    suspects: NDArray[np.bool_]
    detector: DiffInt
    index: Any = None
    fingerprint: str = ""

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """(rows,) positions of the rows, highest score first."""
        return np.argsort(-self.scores, kind="stable")

    @cached_property
    def beyond_chance(self) -> NDArray[np.bool_]:
        """(rows,) whether a row's score is higher than chance explains.

        Above their median, the logarithms of ordinary rows' scores are assumed to fall off at least
        as fast as a normal distribution, with a scale a quarter larger than their median and upper
        quartile say. The procedure of Benjamini and Hochberg on the resulting probabilities
        chooses the rows, such that about one in ten of them is expected to be an ordinary row.
        `p_values` would not do: none of n rows has one below 1 / n, so that a handful of anomalies
        could not be told from the highest scores of ordinary rows. In a table with heavy tails the
        number is too large, and anomalies that score like ordinary rows are not counted.
        """
        return scores_beyond_chance(self.scores, _FALSE_DISCOVERY_RATE)

    @property
    def n_beyond_chance(self) -> int:
        """How many rows stand out beyond chance; about one in ten of them may be ordinary."""
        return int(self.beyond_chance.sum())

    def to_frame(self) -> pandas.DataFrame:
        """All rows, ranked: score, p_value, suspect, beyond_chance; with the index of the table."""
        import pandas

        frame = pandas.DataFrame(
            {
                "score": self.scores,
                "p_value": self.p_values,
                "suspect": self.suspects,
                "beyond_chance": self.beyond_chance,
            },
            index=self.index,
        )
        return frame.iloc[self.order]

    def explain(self, X: Any, n_rows: int = 10) -> LocalExplanation:
        """Why the rows with the highest scores have them, highest first.

        Parameters
        ----------
        X : table of shape (rows, features)
            The table that was searched.
        n_rows : int, default=10
            How many rows to explain at most.
        """
        from .explain.explain_rows import explain_rows

        detector = self.detector
        table, top = detector._read(X), self.order[: check_count(n_rows, "rows")]
        if len(table) != len(self.scores):
            raise InputError(
                f"X has {counted(len(table), 'row')}, but {len(self.scores):,} were searched; pass "
                "the same table"
            )
        if self.fingerprint and full_fingerprint(table) != self.fingerprint:
            raise InputError(
                "X is not the table that was searched, or its rows stand in another order; pass "
                "the same table"
            )
        jobs, index = resolve_jobs(detector.n_jobs), index_for(top, self.index, len(table))
        new = new_texts_of(X, table, detector.model_.kinds, top)
        why = explain_rows(detector.prepared, table[top], detector.rule, jobs, index, new)
        # Most of these rows are known to some members; their scores are those without them.
        return replace(why, score=self.scores[top], p_value=self.p_values[top])

    def text(self) -> str:
        """What was found, in one sentence."""
        n_rows, n_found, n_left = len(self.scores), self.n_beyond_chance, int(self.suspects.sum())
        suspects = "no suspects were" if n_left == 0 else f"{counted(n_left, 'suspect')} were"
        suspects = suspects.replace("1 suspect were", "1 suspect was")
        if n_found == 0:
            found = f"None of {counted(n_rows, 'row')} stands out beyond chance"
        else:
            verb = "stands" if n_found == 1 else "stand"
            chance = "" if n_found < 5 else " (about one in ten of these may be ordinary)"
            found = f"{n_found:,} of {counted(n_rows, 'row')} {verb} out beyond chance{chance}"
        return f"{found}; {suspects} left out of training."

    def __repr__(self) -> str:
        return f"<AnomaliesFound: {self.text()}>"

    def _repr_html_(self) -> str:
        from .show.notebook import found_html

        return found_html(self)


def find_anomalies(
    X: Any, *, groups: Any = None, suspected_share: float | str = "auto", **settings: Any
) -> AnomaliesFound:
    """Rank the rows of one table by how odd they are.

    For a table that is all there is: no clean rows to train on, no labels. Suspects are found and
    left out of training, and every row is scored by members that were not trained on it.

    Parameters
    ----------
    X : table of shape (rows, features)
        At least 10 rows. NaN marks a missing value.
    groups : array-like of shape (rows,), default=None
        As in `DiffInt.fit`: rows of one group are never trained on and scored by one member.
    suspected_share : float or 'auto', default='auto'
        As in `DiffInt`; 0 trains on all rows.
    **settings
        Further parameters of `DiffInt`, such as ``random_state=0``.

    Returns
    -------
    found : AnomaliesFound

    Examples
    --------
    >>> import numpy as np
    >>> from diffint import find_anomalies
    >>> table = np.random.default_rng(0).normal(size=(200, 3))
    >>> table[7] = 9.0
    >>> found = find_anomalies(table, epochs=20, random_state=0)
    >>> int(found.order[0])
    7
    """
    detector = DiffInt(**settings, suspected_share=suspected_share)
    config = detector.config
    if config.calibration not in ("auto", "members") or config.n_members == 1:
        raise InputError(
            "find_anomalies needs members that leave out different rows: "
            "calibration='members' and n_members of at least 2"
        )
    return found_by(detector, X, groups)


def found_by(detector: DiffInt, X: Any, groups: Any = None) -> AnomaliesFound:
    """Fit the detector on a table, and score each row by members that were not trained on it."""
    from .fit.calibrate import unseen_scores

    n_rows = getattr(X, "shape", (None,))[0] if hasattr(X, "shape") else len(X)
    if n_rows is not None and n_rows < _FEWEST_ROWS:
        raise InputError(
            f"the table has {counted(n_rows, 'row')}; finding anomalies takes at least "
            f"{_FEWEST_ROWS}"
        )
    split = detector._fit(X, None, groups, every_row=True)
    if split.kind != "members":
        raise InputError(
            "the table has fewer than 5 rows or groups that can be left out in turn; give each "
            "independent row a group of its own"
        )
    table = detector._read(X)
    scores = unseen_scores(detector.prepared, table, split, resolve_jobs(detector.n_jobs))
    return AnomaliesFound(
        scores=scores,
        p_values=detector.model_.calibration.p_values(scores),
        suspects=detector.suspects_,
        detector=detector,
        index=index_of(X),
        fingerprint=full_fingerprint(table),
    )
