"""Label-free importance: which (unit, feature) intervals matter, without any label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def label_free_importance(
    support: NDArray[Any], half_width: NDArray[Any], stability: NDArray[Any], span: NDArray[Any]
) -> NDArray[np.float64]:
    """LFI = support · max(0, 1 − Δ/range) · stability ∈ [0, 1].

    support, half_width, stability: (units, features); span: (features,) scaled training range.
    """
    tightness = 1.0 - np.asarray(half_width, dtype=np.float64) / np.where(span > 0, span, 1.0)
    return np.asarray(support * np.maximum(tightness, 0.0) * stability, dtype=np.float64)
