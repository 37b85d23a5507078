"""How the compact set of patterns of a model is found, and which ranges it shows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from ..core.calibration import conformal_quantile
from ..core.checks import check_whole
from ..core.model import FittedModel
from ..score.prepared import PreparedModel
from ..score.scoring import anomaly_scores
from .compact import Box, Usual, description_lengths, excess_lengths
from .constraints import training_range
from .distillation import MOST_TARGET, NORMAL_SHARE, distilled, evenly_chosen, target_of
from .mining import FEW, MANY, Rows, box_of_all, mine
from .pattern_set import WANTED_COVERAGE, PatternSet, inside, scaled_rows
from .stored_rows import artificial_rows, stored_rows, unit_centers
from .varied_rows import varied_rows

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_CHOOSING_SHARE, _MOST_CHOOSING = 2 / 3, 2_000  # rows that patterns are chosen by
_FEWEST_MINED, _MOST_MINED = 30, 800  # of them that few patterns, and all, are mined from
_VARIED_ROWS, _VARIED_CELLS = 30_000, 2_400_000  # that the model is asked about
_TRAINED_SHARE = 0.4  # of them that patterns are trained on
_LEAST_SHARE, _LEAST_ROWS = 0.02, 3  # of the choosing rows that each pattern has inside
_LEAST_WORTH = 0.5  # nats, of a pattern whose box can still be widened
_MINED_SHARE = 1 / 3  # of the patterns start as mined ones
_MOST_ANOMALIES = 0.3  # share of anomalies inside a mined pattern
_MOST_OF_SHARE = 0.9  # share of anomalies inside a pattern, relative to that of the rows
_FEW_SHARE = 1 / 3  # of the allowed patterns, that a set of few may have
_AGREES = 0.06  # difference of rank correlations that does not count
_FEWEST_CHOOSING, _FEWEST_MEASURING = 30, 12  # the coverage cannot be set by fewer
_ARTIFICIAL_ROWS = 1_500
_USUAL_SHARE = 0.95  # of normal rows whose distance is at most 1
_NO_DISTANCE = 1e-6  # excess length that is rounding only
_FLAGGED_RATE = 0.05  # artificial rows that score above this share of normal rows are anomalies
_ROUNDING = 4e-6  # float32 error of a scaled value, twice
_FINEST = 0.02  # a range is rounded as one of this share of the training range if it is narrower
_STEPS_PER_WIDTH = 50  # ranges are rounded to at least so many steps


def find_patterns(
    prepared: PreparedModel, max_patterns: int = 20, max_conditions: int = 5, n_jobs: int = 1
) -> PatternSet:
    """The compact set of patterns of a fitted model. The same model gives the same set.

    The rows that the model keeps are divided. Two thirds (at most 2,000) choose the patterns; the
    others set the width of all ranges together, so that 92 % of new normal rows are inside at
    least one pattern, and measure. The anomalies are artificial: rows made from kept ones
    (`artificial_rows`), from those that measure, that score above 95 % of the calibration rows.
    The pattern with most rows comes first.
    """
    max_patterns = check_whole("max_patterns", max_patterns, at_most=1_000)
    max_conditions = check_whole("max_conditions", max_conditions, at_most=1_000)
    model = prepared.model
    scaler = model.members[0].scaler
    rows, kept = stored_rows(model)
    n_choosing = min(max(int(len(rows) * _CHOOSING_SHARE), _FEWEST_CHOOSING), _MOST_CHOOSING)
    n_choosing = min(n_choosing, max(len(rows) - _FEWEST_MEASURING, len(rows) // 2))
    # A single row, of which all others are copies, does both.
    choosing, measuring = rows[:n_choosing] if n_choosing else rows, rows[n_choosing:]
    boxes = _choose_boxes(prepared, choosing, max_patterns, max_conditions, n_jobs)
    boxes = _worth_showing(boxes, choosing, _anomalies_made(prepared, choosing, 2, n_jobs), model)
    measured = scaled_rows(scaler, measuring)
    widened = _widened_boxes(boxes, scaled_rows(scaler, choosing), measured)
    has_condition, lower, upper = _readable_ranges(model, widened)
    order = np.argsort(-_means(inside(measuring, has_condition, lower, upper)), kind="stable")
    boxes = [boxes[k] for k in order]
    ranges = has_condition[order], lower[order], upper[order]
    usual = Usual.of(measured, boxes)
    usual_distance = conformal_quantile(excess_lengths(measured, boxes, usual), _USUAL_SHARE)
    anomalies = _anomalies_made(prepared, measuring, 1, n_jobs)
    within, anomalies_within = inside(measuring, *ranges), inside(anomalies, *ranges)
    return PatternSet(
        columns=tuple(model.columns),
        feature_names=model.feature_names,
        has_condition=ranges[0],
        lower=ranges[1],
        upper=ranges[2],
        coverage=_means(within),
        anomalies_outside=1.0 - _means(anomalies_within),
        set_coverage=float(_means(np.asarray(within.any(axis=1)))),
        set_anomalies_outside=float(1.0 - _means(np.asarray(anomalies_within.any(axis=1)))),
        n_measured=len(measuring),
        n_anomalies=len(anomalies),
        kept=kept,
        boxes=tuple(boxes),
        scaler=scaler,
        usual=usual,
        usual_distance=usual_distance if usual_distance > _NO_DISTANCE else 1.0,
        features=model.features,
        kinds=model.kinds,
    )


def _choose_boxes(
    prepared: PreparedModel,
    choosing: Array,
    max_patterns: int,
    max_conditions: int,
    n_jobs: int,
) -> list[Box]:
    """The boxes of the few patterns that describe the rows, or of more that say more.

    choosing: (rows, features) in original units. Patterns are mined from these rows alone, then
    trained to order varied rows as the model does, and as the mined patterns do: the more the two
    agree, the more the mined ones count, as they have seen nothing but real rows. A set of few
    patterns is chosen instead if it has at most a third of the patterns that there may be and
    agrees with the model nearly as well.
    """
    model = prepared.model
    scaler = model.members[0].scaler
    scaled = np.nan_to_num(scaled_rows(scaler, choosing))
    mining = Rows.of(scaled[:_MOST_MINED], model.members[0].kept_weight.astype(np.float64))
    if not mining.varies.any():
        return [box_of_all(mining, max_conditions)]
    centers = np.clip(np.nan_to_num(unit_centers(model)), scaler.lower, scaler.upper)
    limits = max_patterns, max_conditions
    few, many = (mine(mining, centers, *limits, way) for way in (FEW, MANY))
    n_varied = min(_VARIED_ROWS, max(_VARIED_CELLS // model.n_features, 1_000))
    made = varied_rows(model, scaled, n_varied)
    target = target_of(anomaly_scores(prepared, made, n_jobs), model.calibration)
    chosen = evenly_chosen(target, int(n_varied * _TRAINED_SHARE))
    made = np.nan_to_num(scaled_rows(scaler, made[chosen]))
    target = np.minimum(target[chosen], MOST_TARGET)
    trained_to = _with_second_opinion(target, description_lengths(made, many))
    anomalies = made[target > NORMAL_SHARE]
    few, many = _telling(few, anomalies), _telling(many, anomalies)
    start = many[: max(1, round(max_patterns * _MINED_SHARE))]
    trained = distilled(mining, start, made, trained_to, *limits)
    if few and len(few) <= max_patterns * _FEW_SHARE and len(choosing) >= _FEWEST_MINED:
        agreement = [
            _agreement(description_lengths(made, boxes), target) for boxes in (few, trained)
        ]
        if agreement[0] >= agreement[1] - _AGREES:
            return few
    return trained


def _anomalies_made(prepared: PreparedModel, rows: Array, seed: int, n_jobs: int) -> Array:
    """Rows made from others that score above 95 % of the calibration rows. → (some, features)"""
    made = artificial_rows(prepared.model, rows, _ARTIFICIAL_ROWS, seed)
    threshold = prepared.model.calibration.threshold(_FLAGGED_RATE)
    return made[anomaly_scores(prepared, made, n_jobs) > threshold]


def _worth_showing(
    boxes: list[Box], choosing: Array, anomalies: Array, model: FittedModel
) -> list[Box]:
    """The boxes that tell normal rows from anomalies, each once; all if none does.

    As widened, a box must have a smaller share of the anomalies inside than of the rows. A few
    boxes that do not, such as one for every value of a column, would together cover everything.
    The others are widened more without them, so they are looked at again. To leave out more boxes
    would let the set order rows worse, as all are trained together.
    """
    scaled = scaled_rows(model.members[0].scaler, choosing)
    while True:
        ranges = _readable_ranges(model, _widened_boxes(boxes, scaled, scaled))
        as_shown = np.nan_to_num(np.concatenate(ranges, axis=1))
        chosen = np.isin(np.arange(len(boxes)), np.unique(as_shown, axis=0, return_index=True)[1])
        if len(anomalies):
            rows_inside, anomalies_inside = (inside(x, *ranges) for x in (choosing, anomalies))
            chosen &= _means(anomalies_inside) <= _MOST_OF_SHARE * _means(rows_inside)
        if chosen.all() or not chosen.any():
            return boxes
        boxes = [box for box, one in zip(boxes, chosen, strict=True) if one]


def _telling(boxes: list[Box], anomalies: Array) -> list[Box]:
    """The boxes that many anomalies (rows, features) are outside of.

    A box with half of all rows in it, as one value of a category, would cover them all, and leave
    nothing for the others.
    """
    if not len(anomalies):
        return boxes
    cells = ((anomalies[:, box.features], box) for box in boxes)
    within = [((c >= box.lower) & (c <= box.upper)).all(axis=1).mean() for c, box in cells]
    return [box for box, share in zip(boxes, within, strict=True) if share <= _MOST_ANOMALIES]


def _agreement(lengths: Array, target: Array) -> float:
    """Rank correlation; 0 if there is none."""
    if np.ptp(lengths) == 0 or np.ptp(target) == 0:
        return 0.0
    return float(spearmanr(lengths, target)[0])


def _with_second_opinion(target: Array, lengths: Array) -> Array:
    """The target, mixed with description lengths as far as the two agree."""
    share = max(_agreement(lengths, target), 0.0) ** 2
    middle, high = np.quantile(lengths, [0.5, 0.9])
    if high <= middle:
        return target
    other = np.clip((lengths - middle) / (high - middle), -2.0, 3.0) * target.std()
    return np.asarray((1.0 - share) * target + share * other)


def _means(within: Mask) -> NDArray[np.float64]:
    return np.asarray(within.mean(axis=0) if len(within) else np.full(within.shape[1:], np.nan))


def _readable_ranges(model: FittedModel, boxes: list[Box]) -> tuple[Mask, Array, Array]:
    """The ranges of boxes in original units, as (has_condition, lower, upper).

    They lie within the training range, rounded outwards. A condition that all training rows meet is
    left out, unless it is all that a pattern has.
    """
    n_features = model.n_features
    has_condition = np.zeros((len(boxes), n_features), dtype=bool)
    lower, upper = np.full((2, len(boxes), n_features), np.nan)
    smallest, largest = (ends.copy() for ends in training_range(model.features))
    span = largest - smallest
    scaler = model.members[0].scaler
    for k, box in enumerate(boxes):
        has_condition[k, box.features] = True
        for ends, scaled_ends in ((lower, box.lower - _ROUNDING), (upper, box.upper + _ROUNDING)):
            scaled = np.zeros(n_features)
            scaled[box.features] = scaled_ends
            ends[k, box.features] = scaler.to_original(scaled)[box.features]
        for j in box.features:
            if model.features.whole[j] or j in model.categories:
                lower[k, j], upper[k, j] = _whole_ends(lower[k, j], upper[k, j])
                continue
            lowest, highest = _round_ends(smallest[j], largest[j], span[j])
            # A feature without negative values has no negative range.
            lowest = max(lowest, 0.0) if smallest[j] >= 0 else lowest
            low, up = _round_ends(lower[k, j], upper[k, j], span[j])
            lower[k, j], upper[k, j] = np.clip([low, up], lowest, highest)
    for j, count in model.kinds.n_values.items():
        lower[:, j] = np.clip(lower[:, j], 0, count - 1)
        upper[:, j] = np.clip(upper[:, j], 0, count - 1)
        smallest[j], largest[j] = 0, count - 1
    whole = model.features.whole
    for ends in (lower, upper):
        ends[:, whole] = np.clip(ends[:, whole], smallest[whole], largest[whole])
    binds = has_condition & ~((lower <= smallest) & (upper >= largest))
    has_condition = np.where(binds.any(axis=1, keepdims=True), binds, has_condition)
    lower, upper = (np.where(has_condition, ends, np.nan) for ends in (lower, upper))
    return has_condition, lower, upper


def _widened_boxes(boxes: list[Box], choosing: Array, measured: Array) -> list[Box]:
    """The boxes, so wide that the wanted share of new normal rows is inside at least one.

    All are widened (or narrowed) by the same share of their reach. Each stays so wide that a few of
    the rows that chose the patterns are inside. choosing, measured: (rows, features) scaled
    """
    n_inside = min(max(int(len(choosing) * _LEAST_SHARE), _LEAST_ROWS), len(choosing))
    least = [np.sort(_shares_of_reach(box, choosing))[n_inside - 1] for box in boxes]
    needed = np.full(len(measured), np.inf)
    for box, already in zip(boxes, least, strict=True):
        share = _shares_of_reach(box, measured)
        needed = np.minimum(needed, np.where(share <= already, -np.inf, share))
    common = conformal_quantile(needed, WANTED_COVERAGE)
    widened = []
    for box, already in zip(boxes, least, strict=True):
        middle, half = (box.lower + box.upper) / 2, (box.upper - box.lower) / 2
        half = np.maximum(half + max(common, already) * _reach(box), 0.0)
        widened.append(box._replace(lower=middle - half, upper=middle + half))
    return widened


def _shares_of_reach(box: Box, scaled: Array) -> Array:
    """By how much of its reach a box must be widened for each row to be inside. → (rows,)"""
    cells = scaled[:, box.features]
    outside = np.maximum(box.lower - cells, cells - box.upper) / _reach(box)
    narrowest = -(box.upper - box.lower) / 2 / _reach(box)  # its middle only
    return np.asarray(np.where(np.isnan(outside), narrowest, outside).max(axis=1))


def _reach(box: Box) -> Array:
    """How far outside the ranges of a box a row saves nothing any more, by each condition alone."""
    return box.tail * max(box.worth, _LEAST_WORTH)


def _whole_ends(lower: float, upper: float) -> tuple[float, float]:
    """The first and the last whole number of a range, or the nearest one if it has none."""
    first, last = np.ceil(lower), np.floor(upper)
    if first > last:
        first = last = np.round((lower + upper) / 2)
    return float(first) + 0.0, float(last) + 0.0  # turns −0.0 into 0.0


def _round_ends(lower: float, upper: float, span: float) -> tuple[float, float]:
    """Round numbers just outside a range. span: width of the training range"""
    width = max(upper - lower, _FINEST * span)
    if not (width > 0 and np.isfinite(width)):
        return lower, upper  # a constant, or a range without end
    places = int(-np.floor(np.log10(width / _STEPS_PER_WIDTH)))
    step = 10.0**-places
    low, up = np.floor(lower / step), np.ceil(upper / step)
    if not max(abs(low), abs(up)) < 1e15:  # the ends have no digit at this place
        return lower, upper
    # Written and read again, as 3 · 0.1 is not 0.3.
    return tuple(float(f"{end * step:.{max(places, 0)}f}") + 0.0 for end in (low, up))  # type: ignore[return-value]
