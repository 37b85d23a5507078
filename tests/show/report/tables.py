"""Scored tables for the report tests, and readers of the generated HTML."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from html import unescape
from typing import Any

import numpy as np

from diffint import DiffInt
from diffint.show.report import ScoredTable, build_report

MOMENT = datetime(2026, 3, 1, 14, 5, tzinfo=timezone.utc)


def scored_table(detector: DiffInt, x: np.ndarray, **more: Any) -> ScoredTable:
    """A table with all flagged rows shown; ids are row numbers counted from 1."""
    named = getattr(detector, "feature_names_in_", None)
    if named is not None:
        import pandas

        scores = detector.anomaly_score(pandas.DataFrame(x, columns=named))
    else:
        scores = detector.anomaly_score(x)
    flagged = np.flatnonzero(scores > -detector.offset_)
    order = flagged[np.argsort(-scores[flagged], kind="stable")]
    values = {"ids": tuple(str(i + 1) for i in order), **more}
    return ScoredTable("some table.csv", scores, x[order], **values)


def report_on(detector: DiffInt, x: np.ndarray, **more: Any) -> str:
    return build_report(detector, scored_table(detector, x, **more), created=MOMENT)


def data_of(html: str) -> dict[str, Any]:
    """The data in the JSON block."""
    block = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert block
    return json.loads(block[1])


def text_of(html: str) -> str:
    """The text outside scripts and styles, on one line."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
