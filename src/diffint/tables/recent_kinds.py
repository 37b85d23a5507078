"""The columns of a recent table that are not numbers, for a model that has seen an earlier one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..core.kinds import Kinds
from .categories import check_like_training, find_categories
from .frames import as_pandas, with_text_names
from .times import with_time_parts


def find_recent_kinds(X: Any, former: Kinds) -> Kinds:
    """The same columns as before, with the values and the last time that they have now.

    `X` must have the columns of the earlier table, in its order (`read_table`). The first day of
    times and the parts that are features stay, as the names of features depend on them.
    """
    frame = as_pandas(X)
    if former.only_numbers or frame is None:
        return former
    frame = with_text_names(frame)
    endless = {name: replace(time, days=np.inf) for name, time in former.times.items()}
    expanded = with_time_parts(frame, endless)
    times = dict(former.times)
    for name, time in former.times.items():
        days = expanded[time.features(name)[-1]].to_numpy()
        if not np.isnan(days).all():
            times[name] = replace(time, days=float(np.nanmax(days)))
    places = sorted(former.categories)
    columns = expanded.iloc[:, places]
    for j in places:
        if former.categories[j]:
            check_like_training(expanded.iloc[:, j], former.categories[j])
    found = find_categories(columns, [str(name) for name in columns.columns])
    return Kinds(times, {j: found[place] for place, j in enumerate(places)})
