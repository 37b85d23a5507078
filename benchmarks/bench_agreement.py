"""Do the evaluation's rows agree with an independent run?

    python benchmarks/bench_agreement.py docs/results/bench/rows.csv \
        --paper paper_config_check.csv --baselines baselines_check.csv

`--paper` has the paper configuration's means over seeds 0–4 of some tables (columns dataset,
roc_auc, average_precision), `--baselines` those of PyOD's detectors in both regimes (also method,
regime, n_seeds). Ours are means over the same seeds. The paper configuration should agree within
two standard errors, deterministic detectors within 0.005, and the others within 0.03.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas

from diffint.bench.store import frame_of, read_rows

DETERMINISTIC = ("KNN", "LOF", "PCA", "OCSVM", "ECOD", "KDE", "GMM", "HBOS")
NAMES = {"AE": "AutoEncoder"}  # theirs: ours
REGIMES = {"inlier_only": "fair", "contaminated": "paper"}
METRICS = ["roc_auc", "average_precision"]


def compare_paper(rows: pandas.DataFrame, reference: pandas.DataFrame) -> None:
    """The paper configuration, table by table; the standard error is over our seeds."""
    ours = rows[(rows["method"] == "DiffInt-paper") & (rows["regime"] == "fair")]
    ours = ours[ours["seed"] < 5].groupby("table")[METRICS].agg(["mean", "sem"])
    print("## The paper configuration\n")
    print("| table | ROC-AUC | theirs | within 2 s.e. | AP | theirs | within 2 s.e. |")
    print("|---|---|---|---|---|---|---|")
    apart = dict.fromkeys(METRICS, 0)
    for theirs in reference.itertuples():
        cells = [str(theirs.dataset)]
        for metric in METRICS:
            mean, error = ours.loc[theirs.dataset, metric]
            value = getattr(theirs, metric)
            agrees = abs(mean - value) <= 2 * error + 5e-5  # theirs has four digits
            apart[metric] += not agrees
            off = abs(mean - value) / error if error else float("inf")
            cells += [f"{mean:.4f}", f"{value:.4f}", "yes" if agrees else f"**no** ({off:.1f})"]
        print(f"| {' | '.join(cells)} |")
    print(
        f"\n{apart['roc_auc']} of {len(reference)} tables are apart by ROC-AUC, "
        f"{apart['average_precision']} by average precision.\n"
    )


def compare_baselines(rows: pandas.DataFrame, reference: pandas.DataFrame) -> None:
    """Every detector and regime of the reference: how many tables agree, and which do not."""
    # Means are over different seeds where theirs ran out of time.
    reference = reference[reference["n_seeds"] == 5]
    ours = rows[rows["state"] == "ok"]
    ours = ours[ours["seed"] < 5]
    grouped = ours.groupby(["table", "method", "regime"])[METRICS]
    means, counts = grouped.mean(), grouped.size()
    print("## The baselines, ROC-AUC and average precision over the same five seeds\n")
    print("| detector | regime | tables | bound | agree | largest difference | apart |")
    print("|---|---|---|---|---|---|---|")
    for (name, regime), theirs in reference.groupby(["method", "regime"]):
        method, bound = NAMES.get(name, name), 0.005 if name in DETERMINISTIC else 0.03
        differences = {}
        for one in theirs.itertuples():
            key = (one.dataset, method, REGIMES[regime])
            if counts.get(key, 0) == 5:
                differences[one.dataset] = max(
                    abs(means.loc[key, metric] - getattr(one, metric)) for metric in METRICS
                )
        if not differences:
            continue
        apart = {table: gap for table, gap in differences.items() if gap > bound + 5e-5}
        listed = ", ".join(f"{table} {gap:.3f}" for table, gap in apart.items()) or "–"
        print(
            f"| {method} | {REGIMES[regime]} | {len(differences)} | {bound} "
            f"| {len(differences) - len(apart)} | {max(differences.values()):.4f} | {listed} |"
        )


def main() -> None:
    """Print both comparisons as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=Path, help="rows of `diffint bench run`")
    parser.add_argument("--paper", type=Path, help="CSV of the independent run")
    parser.add_argument("--baselines", type=Path, help="CSV of the independent run")
    options = parser.parse_args()
    rows = frame_of(read_rows(options.rows))
    print("# Agreement with an independent run\n")
    if options.paper:
        compare_paper(rows, pandas.read_csv(options.paper, comment="#"))
    if options.baselines:
        compare_baselines(rows, pandas.read_csv(options.baselines, comment="#"))


if __name__ == "__main__":
    main()
