"""How the pages call what figures of results files are of."""

from __future__ import annotations

import re

from .results import BOTH_HALVES

# Words of results files, and patterns of which one must be in the text; others stand there as such.
NAMES = {
    "DiffInt": r"`find`|\bDiffInt\b(?!-paper)|recommended configuration|\bours\b",
    "DiffInt-paper": r"DiffInt-paper|paper('s)? configuration",
    "KNN": r"\bKNN\b(?!-standard| on standardised)",
    "KNN-standard": r"KNN-standard|KNN on standardised rows",
    "LUNAR": r"\bLUNAR\b(?!-standard)",
    "roc_auc": r"ROC-AUC",
    "average_precision": r"average precision|\bAP\b",
    "fair regime": r"same clean rows|[Ff]air regime|trained on normal rows|normal training rows",
    "scheme D": r"scheme D|worst rank",
    "1 seeds": r"one seed|first seed|one split",
    "small": r"small tables",
    "paper regime": r"setting of the paper|[Pp]aper regime",
    "report": r"[Rr]eporting half|half that no setting was chosen on",
    "select": r"other half|half that the settings were chosen on",
    BOTH_HALVES: r"\ball\b|both halves",
    "0.01": r"1, 5 and 10 %",
    "0.05": r"1, 5 and 10 %",
    "0.1": r"1, 5 and 10 %",
    "runs above the rate": r"of the fits (exceed|flag more)",
    # Rows and columns of pages of results.
    "AP": r"average precision",
    "AP of all errors": r"ranks the errors with an average precision",
    "AP of gross errors": r"average precision .* gross ones",
    "all columns": r"ten columns",
    "reasons shown (ours)": r"(first|a) reason",
    "order of reasons (ours)": r"order of doubt",
    "rows with a reason": r"reason is shown in",
    "in range": r"still in range",
    "1 broken": r"contradicts the others",
    "20 neighbours without the feature": r"20 neighbours found without the feature",
    "paper: inliers": r"paper's configuration .* inliers",
    "inliers inside": r"inliers .* inside",
    "anomalies inside": r"anomalies lie inside",
    "paper": r"\bpaper\b",
    "recommended": r"DiffInt\(\)|\bours?\b|instead of",
    "ours": r"\bours\b|`DiffInt\(\)`|minmax",
    "the paper's formula": r"paper's",
    "2": r"two most important",
    "14_glass": r"glass|small tables",
    "F1 of planted conditions": r"F1 of the conditions of planted",
    "20_letter": r"letter",
    "compact set": r"patterns|letter it is",
    "full model": r"full model|instead of",
    "mean, the sixteen (16)": r"sixteen tables",
    "spectral": r"tight",
    "certified": r"against|certified",
    "decided by default": r"decides .* with 32 splits",
    "(true share)": r"true share",
    "closed form (DKW)": r"closed form",
    "likelihood ratios, as used": r"where .* follow from",
    "selected rows": r"share of false alerts",
    "selected, by calibration rows: 100 / 500 / 3,000 / 30,000": r"100 calibration rows",
    "with an alarm": r"raised an alarm",
    "KS, 100 rows": r"needs .* for the mean",
    "monitor": r"\bours\b|[Mm]onitor",
    "fell silent": r"fall silent",
    "ranges reported: features that moved": r"ranges of features that moved",
    "others": r"the others",
    "no kept rows": r"without them",
    "wins–losses": r"\d–\d+ and .* tables",
    "complete": r"falls from",
    "30 % missing": r"to \d",
    "mean of the column": r"mean imputation",
    "`diffint score`": r"on two cores|ten million rows",
    "seconds": r"\d s\b",
    "ratio": r"times as long",
    "without reasons": r"and .* s with|without reasons|in \d+ s, and",
    "one row scored, without reasons": r"scoring",
    "one line of reasons": r"more than the scores",
    "`diffint.spark.fit` on the file, `local[2]`": r"on two cores",
    "1 actor / 2 actors": r"times as fast as one",
    "2 actors / the command": r"of the time of `diffint score`",
    "3,000,000": r"three million rows",
    # One number for all tables, or what the page measures.
    **dict.fromkeys(("mean", "all", "measured"), ""),
}
_DIGITS = {"2": "two", "3": "three", "5": "five", "10": "ten"}
_COUNT = re.compile(r"(\d+) (tables|seeds)")


def is_named(word: str, text: str) -> bool:
    """Whether a text names what a results file calls by this word."""
    if word not in NAMES and (count := _COUNT.fullmatch(word)):
        number = count[1]
        written = rf"(?<![\d.–]){number}(?![\d–]|\.\d)|\b{_DIGITS.get(number, number)}\b"
        return re.search(written, text) is not None and count[2].removesuffix("s") in text
    return re.search(NAMES.get(word, re.escape(word)), text) is not None


def stands_in_the_paragraph(word: str) -> bool:
    """Whether a paragraph says it once for all of its sentences: the regime, numbers of runs."""
    return word.endswith(" regime") or _COUNT.fullmatch(word) is not None
