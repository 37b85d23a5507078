"""Data of the flagged rows, in a compact form for the report's script."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.formatting import distinct_numbers, number, shown_name
from ...explain.local_explanation import LocalExplanation
from ...explain.nearest_normal import NearestNormal
from ..plots.rows import range_label

N_REASONS, N_BARS = 3, 8


def row_data(
    ids: tuple[str, ...],
    why: LocalExplanation,
    nearest: NearestNormal,
    notes: tuple[str, ...] = (),
) -> list[list[Any]]:
    """One list per row; features are given by their number.

    Its items: id, score, p-value, p-value as text, headline, reasons [[feature, text after its
    name], …], bars [[feature, side, share, value, range], …], share of the other features,
    threshold / score, text of the nearest normal row, and the note if there
    are notes.
    """
    order = why.order
    return [
        [
            row_id,
            number(why.score[i]),
            float(why.p_value[i]),
            number(why.p_value[i], 2),
            _headline(why, i),
            [_reason(why, i, j) for j in order[i, :N_REASONS] if why.responsibility[i, j] > 0],
            [_bar(why, i, j) for j in order[i, :N_BARS]],
            _share(why.share[i, order[i, N_BARS:]].sum()),
            _share(why.threshold / why.score[i] if why.score[i] > 0 else 1.0),
            nearest.text(i).removeprefix(f"Row {i}"),
            *notes[i : i + 1],
        ]
        for i, row_id in enumerate(ids)
    ]


def _headline(why: LocalExplanation, row: int) -> str:
    """``Score 1.29, above the threshold of …``"""
    text = why.headline(row).removeprefix(f"Row {row}: ")
    return text[:1].upper() + text[1:]


def _reason(why: LocalExplanation, row: int, j: NDArray[np.intp]) -> list[Any]:
    feature = int(j)
    name = shown_name(why.feature_names[feature])
    return [feature, why.reason(row, feature).removeprefix(name)]


def _bar(why: LocalExplanation, row: int, j: NDArray[np.intp]) -> list[Any]:
    feature = int(j)
    value = why.value[row, feature]
    known = (value, why.lower[row, feature], why.upper[row, feature])
    if np.isnan(value):
        text = "missing"
    elif feature in why.categories:
        text = shown_name(str(why.value_text(row, feature)), 24)
    else:
        text = why.new_texts.get((row, feature)) or distinct_numbers(*known)[0]
    side, share = int(why.side[row, feature]), _share(why.share[row, feature])
    return [feature, side, share, text, range_label(why, row, feature)]


def _share(value: float) -> float:
    return round(float(value), 4)
