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


# Texts that would run code, load something or change the page if they became markup.
PAYLOADS = (
    "<script>fired = 1</script>",
    "</script><script>fired = 1</script>",
    "<img src=x onerror=fired=1>",
    '"><svg onload=fired=1>',
    "' onmouseover='fired=1' x='",
    "</style><style>body{display:none}</style>",
    "</title><script>fired = 1</script>",
    "<!--<script>",
    "--!><iframe srcdoc='<script>parent.fired=1</script>'>",
    "]]><b>",
    "javascript:fired=1",
    "<a href=javascript:fired=1>click</a>",
    "<base href=https://example.invalid/>",
    "<meta http-equiv=refresh content=0;url=https://example.invalid/>",
    "<link rel=stylesheet href=https://example.invalid/x.css>",
    "<form action=https://example.invalid/><button>go",
    "<details open ontoggle=fired=1>",
    "<template shadowrootmode=open><script>fired = 1</script></template>",
    "{{ 7 * 7 }}{% raw %}${fired = 1}`",
    "&lt;script&gt;fired = 1&lt;/script&gt;",
    "\\u003cscript\\u003efired=1",
    "+ADw-script+AD4-fired=1+ADw-/script+AD4-",
    "<scr\x00ipt>fired = 1</scr\x00ipt>",
    "\u202e<tpircs>\u2028fired\u2029",
    "__proto__",
    "constructor",
    "<" * 300,
)
