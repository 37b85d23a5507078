"""Data of the flagged rows, in a compact form for the report's script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.formatting import number, shown_name
from ...explain.local_explanation import LocalExplanation
from ...explain.nearest_normal import NearestNormal
from ..plots.rows import range_label
from ..wording.values import name_of, texts_beside

N_REASONS, N_BARS = 3, 8
LEVEL = 4  # place of the level in a row's list


def row_data(
    ids: Sequence[str],
    levels: Sequence[int],
    why: LocalExplanation,
    nearest: NearestNormal,
    kept: Sequence[Sequence[str]] = (),
) -> list[list[Any]]:
    """One list per row; features are given by their number.

    levels: the slider's strictest position that shows a row. kept: (columns, rows) their cells.

    Its items: id, score, p-value, p-value as text, level, headline, first reason in brief, reasons
    as `_reasons` has them, bars [[feature, share, value, range of the nearest pattern], …], share
    of the other features, threshold / score, text of the nearest normal row, and the kept cells.
    """
    order = why.order
    cells = list(zip(*kept, strict=True)) if kept else [()] * len(ids)
    return [
        [
            row_id,
            number(why.score[i]),
            float(why.p_value[i]),
            number(why.p_value[i], 2),
            levels[i],
            _headline(why, i),
            why.brief(i, 1),
            _reasons(why, i),
            [_bar(why, i, int(j)) for j in order[i, :N_BARS]],
            _share(why.share[i, order[i, N_BARS:]].sum()),
            _share(why.threshold_of(i) / why.score[i] if why.score[i] > 0 else 1.0),
            nearest.text(i).removeprefix(f"Row {i}"),
            list(cells[i]),
        ]
        for i, row_id in enumerate(ids)
    ]


def _headline(why: LocalExplanation, row: int) -> str:
    """``Score 1.29, above the threshold of …``"""
    text = why.headline(row).removeprefix(f"Row {row}: ")
    return text[:1].upper() + text[1:]


def _reasons(why: LocalExplanation, row: int) -> list[list[Any]]:
    """[feature, text after its name] of each reason.

    Of a row without any, [−1, text] of what its score comes from.
    """
    found: list[list[Any]] = []
    for feature in why.doubted(row, N_REASONS):
        name = name_of(why, feature)
        found.append([feature, why.reason(row, feature).removeprefix(name)])
    return found or [[-1, text] for text in why.reasons(row, N_REASONS)]


def _bar(why: LocalExplanation, row: int, feature: int) -> list[Any]:
    value = why.value[row, feature]
    if np.isnan(value):
        text = why.beyond_text(row, feature) or "missing"
    elif feature in why.categories:
        text = shown_name(str(why.value_text(row, feature)), 24)
    else:
        ends = why.lower[row, feature], why.upper[row, feature]
        text = texts_beside(why, feature, *ends, value)[2]
    share = _share(why.share[row, feature])
    return [feature, share, text, range_label(why, row, feature)]


def _share(value: float) -> float:
    return round(float(value), 4)
