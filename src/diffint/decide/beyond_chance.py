"""Which scores are higher than chance explains, judged by the scores of the same table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from .selection import step_up

_CAUTION, _LEAST_SPREAD = 1.25, 0.2
_UPPER_QUARTILE = 0.6744897501960817  # of the normal distribution


def stand_out(
    scores: NDArray[Any],
    caution: float = 1.0,
    false_discovery_rate: float = 0.1,
    least_spread: float = 0.0,
) -> NDArray[np.bool_]:
    """The rows whose scores stand out from all others. scores: (rows,) → (rows,)

    Above their median, the scores of ordinary rows are assumed to fall off at least as fast as
    those of a normal distribution, whose scale is read from the median and the upper quartile and
    multiplied by `caution`: a minority of anomalies hardly changes these two. This gives the
    probability of so high a score, and the procedure of Benjamini and Hochberg chooses the rows:
    of those chosen, the expected share of ordinary rows is `false_discovery_rate`. least_spread: of
    ordinary scores, from their median to their upper quartile.

    Empirical p-values would not do: with n rows none is below 1 / n, so that a few anomalies could
    never be told from the highest scores of ordinary rows, however high they are.
    """
    p = _tail_probabilities(np.asarray(scores, dtype=np.float64), caution, least_spread)
    return step_up(p, false_discovery_rate)


def scores_beyond_chance(
    scores: NDArray[Any], false_discovery_rate: float = 0.1
) -> NDArray[np.bool_]:
    """The rows whose anomaly scores stand out on a logarithmic scale. scores: (rows,) → (rows,)

    Anomaly scores of ordinary rows spread over several powers of two, and a little more widely than
    their median and upper quartile say. Scores of equal rows differ as the members do that give
    them, which must not stand out.
    """
    logarithms = np.log(np.maximum(scores, np.finfo(np.float64).tiny))
    return stand_out(logarithms, _CAUTION, false_discovery_rate, _LEAST_SPREAD)


def _tail_probabilities(
    scores: NDArray[np.float64], caution: float, least_spread: float
) -> NDArray[np.float64]:
    if not len(scores):
        return scores
    median, upper = np.quantile(scores, [0.5, 0.75])
    above = np.maximum(scores - median, 0.0)
    spread = max(upper - median, least_spread)
    if spread <= 0:  # most rows are equal: the scale of the others
        spread = np.median(above[above > 0]) if (above > 0).any() else 0.0
    if spread <= 0:
        return np.ones(len(scores))
    return np.asarray(ndtr(-above / (caution * spread) * _UPPER_QUARTILE))
