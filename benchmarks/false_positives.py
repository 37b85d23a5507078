"""Does `predict` flag at most the promised share of normal rows, on average and in each fit?

    python benchmarks/false_positives.py --adbench FOLDER --macrodata FOLDER --selection FILE
        --out docs/results/false_positives [--seeds 20] [--jobs 2]
    python benchmarks/false_positives.py … --page-only

Tables, rows and seeds are those of `decisions.py`, and all runs are kept in OUT.csv. For each rate,
the test inliers and anomalies are counted that `predict` flags, by default and with
`confidence=0.95`.

With a confidence, the rate is to hold in 95 % of the fits. The test inliers are a sample, so more
of them than the rate may be flagged by chance. If the calibration rows are n, of which k may score
higher than a flagged row, the share of normal rows flagged has a Beta(k + 1, n − k) distribution
and the count of flagged test inliers a beta-binomial one, whose tail is what a calibration that
keeps its promise exactly has: the *expected* share of runs above the rate. Runs of a table share
its rows, so both comparisons, with 5 % and with what is expected, are t-tests over tables' means.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import betabinom, binomtest, ttest_1samp

from decisions import RATES, Line, above_text, arguments, holm, mean_text, run, split_rows
from diffint import DiffInt
from diffint.core.calibration import Calibration
from diffint.core.flag_rule import FlagRule
from result_lines import emit

CONFIDENCE = 0.95
COLUMNS = (
    *("suite", "table", "seed", "rows", "calibration", "grouped", "scores", "inliers", "anomalies"),
    *("rate", "flagged", "found", "confident_flagged", "expected"),
)
PROVEN_ROWS = 5_000  # training rows from which the default calibration is a holdout


def measure(suite: str, name: str, path: Path, seed: int) -> list[Line]:
    """What is flagged in one table with one seed, one line per rate."""
    warnings.simplefilter("ignore")
    train, normal, odd = split_rows(suite, path, seed)
    detector = DiffInt(random_state=seed, n_jobs=1).fit(train)
    known = detector.model_.calibration
    scores = [detector.anomaly_score(rows) for rows in (normal, odd)]
    lines = []
    for rate in RATES:
        flagged, found = (_flagged(known, rate, None, some) for some in scores)
        confident = _flagged(known, rate, CONFIDENCE, scores[0])
        expected = "" if confident == "" else f"{above_by_chance(known, rate, len(normal)):.5f}"
        cells = (
            *(suite, name, seed, len(train), known.kind, int(known.grouped), known.n_groups),
            *(len(normal), len(odd), rate, flagged, found, confident, expected),
        )
        lines.append(dict(zip(COLUMNS, cells, strict=True)))
    return lines


def _flagged(known: Calibration, rate: float, confidence: float | None, scores: Any) -> int | str:
    """How many rows are flagged; nothing if there are too few calibration rows for the rate."""
    if not known.reaches(rate, confidence):
        return ""
    return int(FlagRule(known, rate, confidence).flagged(scores).sum())


def above_by_chance(known: Calibration, rate: float, n_tested: int) -> float:
    """The probability that more than the rate of so many normal rows is flagged with confidence."""
    n = known.n_groups
    above = round((1.0 / known.group_sizes)[known.scores > known.threshold(rate, CONFIDENCE)].sum())
    return float(betabinom.sf(np.floor(rate * n_tested + 1e-9), n_tested, above + 1, n - above))


# --- The page ------------------------------------------------------------------------------------


def exceeding(runs: pd.DataFrame) -> dict[str, float]:
    """Of runs of one rate with a confidence: how often more than it is flagged, and the tests.

    share, expected: means over tables; p_independent: of a binomial test over all runs against 5 %,
    as if they were independent; p and p_expected: of one-sided t-tests over tables, against 5 % and
    against what is expected of a sample of test inliers
    """
    above = runs["confident_flagged"] > runs["rate"] * runs["inliers"] + 1e-9
    tables = runs.assign(above=above).groupby(["suite", "table"])[["above", "expected"]].mean()
    level = 1 - CONFIDENCE

    def over_tables(values: Any) -> float:
        return float(ttest_1samp(values, 0.0, alternative="greater").pvalue)

    return {
        "tables": len(tables),
        "runs": len(runs),
        "above": int(above.sum()),
        "share": float(tables["above"].mean()),
        "expected": float(tables["expected"].mean()),
        "p_independent": float(
            binomtest(int(above.sum()), len(runs), level, alternative="greater").pvalue
        ),
        "p": over_tables(tables["above"] - level),
        "p_expected": over_tables(tables["above"] - tables["expected"]),
    }


def report(runs: pd.DataFrame, command: str) -> list[str]:
    """The page."""
    tables = runs[["suite", "table"]].drop_duplicates()["suite"].value_counts()
    seeds = runs.groupby(["suite", "table"])["seed"].nunique()
    text: list[str] = []
    emit(
        text,
        "# False positives of `predict`",
        "",
        f"Created by `{command}`; every run is in [false_positives.csv](false_positives.csv). What "
        "is measured and tested is described at the top of the script.",
        "",
        f"{tables.sum()} tables ({tables['adbench']} of ADBench, {tables['macrodata']} of "
        "macrOData) of the half that no setting was chosen on, with "
        f"{seeds.min()} to {seeds.max()} seeds each, {seeds.sum()} fits. From {PROVEN_ROWS:,} "
        "training rows on the default calibration is a holdout, whose rates are proven; below, "
        "rows are scored by the members that left them out, and the rates are only measured. "
        "Standard errors are over tables.",
        "",
        "## On average",
        "",
        f"| rate | all tables | from {PROVEN_ROWS:,} rows on (proven) | fewer rows (measured) | "
        "tables above the rate (Holm) | anomalies found |",
        "|---|---|---|---|---|---|",
    )
    lines = _lines(runs, "flagged", "inliers")
    for rate in RATES:
        own = [line for line in lines if line["rate"] == rate]
        cells = [
            mean_text([line for line in own if keep(line["rows"])])
            for keep in (lambda n: True, lambda n: n >= PROVEN_ROWS, lambda n: n < PROVEN_ROWS)
        ]
        odd = [line for line in _lines(runs, "found", "anomalies") if line["rate"] == rate]
        emit(text, f"| {rate} | {' | '.join([*cells, above_text(own), mean_text(odd)])} |")
    n_above, n_tests, smallest = holm(lines, ("suite", "table", "rate"))
    emit(
        text,
        "",
        f"Over all rates: {n_above} of {n_tests} tests reject (Holm; smallest adjusted p "
        f"{min(smallest, 1.0):.2g}).",
        "",
        "## With a confidence",
        "",
        f"With `confidence={CONFIDENCE}` the rate is to hold in 95 % of the fits. The share of "
        "runs in which more test inliers were flagged than the rate (mean over tables), what a "
        "calibration that keeps the promise exactly would have on so many test inliers, and "
        "one-sided p: against 5 % with all runs taken as independent, against 5 % over tables, and "
        "against what is expected over tables.",
        "",
        "| rows | rate | tables | runs | false positives | runs above the rate | expected | p, "
        "independent | p, tables | p, expected |",
        "|---|---|---|---|---|---|---|---|---|---|",
    )
    parts = {
        "all": runs["rows"] > 0,
        f"from {PROVEN_ROWS:,} on (proven)": runs["rows"] >= PROVEN_ROWS,
        "fewer (measured)": runs["rows"] < PROVEN_ROWS,
    }
    for name, part in parts.items():
        for rate in RATES:
            chosen = runs[part & (runs["rate"] == rate) & runs["confident_flagged"].notna()]
            if chosen.empty:
                continue
            seen = exceeding(chosen)
            emit(
                text,
                f"| {name} | {rate} | {seen['tables']} | {seen['runs']} | "
                f"{mean_text(_lines(chosen, 'confident_flagged', 'inliers'))} | "
                f"{seen['share']:.3f} | {seen['expected']:.3f} | {seen['p_independent']:.2g} | "
                f"{seen['p']:.2g} | {seen['p_expected']:.2g} |",
            )
    return text


def _lines(runs: pd.DataFrame, counted: str, of: str) -> list[Line]:
    """Shares as lines of `decisions.py`."""
    known = runs[runs[counted].notna()]
    return known.assign(value=known[counted] / known[of]).to_dict("records")  # type: ignore[return-value]


def main() -> None:
    """Run all tables and write the page."""
    options = arguments(__doc__.split("\n")[0]).parse_args()
    rows = options.out.with_suffix(".csv")
    if not options.page_only:
        run(options, rows, measure, COLUMNS)
    runs = pd.read_csv(rows).sort_values(["suite", "table", "seed", "rate"])
    runs.to_csv(rows, index=False, quoting=csv.QUOTE_MINIMAL)
    command = (
        "python benchmarks/false_positives.py --adbench FOLDER --macrodata FOLDER --selection FILE "
        f"--out docs/results/false_positives --seeds {options.seeds}"
    )
    options.out.with_suffix(".md").write_text("\n".join(report(runs, command)) + "\n")


if __name__ == "__main__":
    main()
