"""Compare the benchmark's results with those of an independent run.

    python benchmarks/bench_agreement.py docs/results/bench/rows.csv \
        --again docs/results/gpu_paper_runs.csv \
        --paper paper_config_check.csv --baselines baselines_check.csv

`--paper`: means of the paper configuration over seeds 0–4 of some tables (columns dataset, roc_auc,
average_precision). `--baselines`: means of PyOD's detectors in both regimes (also columns method,
regime, n_seeds). Our values are means over the same seeds; `--again` adds a second run of ours on
the same splits with other random starts. Expected differences: two standard errors for the paper
configuration, 0.005 for deterministic detectors, 0.03 for the others.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas

from diffint.bench.store import frame_of, read_rows

DETERMINISTIC = ("KNN", "LOF", "PCA", "OCSVM", "ECOD", "KDE", "GMM", "HBOS")
NAMES = {"AE": "AutoEncoder"}  # name in the independent run: name in ours
REGIMES = {"inlier_only": "fair", "contaminated": "paper"}
METRICS = ["roc_auc", "average_precision"]


def compare_paper(
    rows: pandas.DataFrame, again: pandas.DataFrame | None, reference: pandas.DataFrame
) -> None:
    """Compare the paper configuration, table by table.

    Both runs use the same splits and different random starts. The standard deviation of the
    difference is estimated from our ten seeds.
    """
    ours = rows[(rows["method"] == "DiffInt-paper") & (rows["regime"] == "fair")]
    ours = pandas.concat([ours] if again is None else [ours, again])
    n_runs = 1 if again is None else 2
    print(f"## The paper configuration, mean of {n_runs} runs on seeds 0–4\n")
    print("| table | ROC-AUC | independent | difference, s.e. | AP | independent | difference |")
    print("|---|---|---|---|---|---|---|")
    apart: dict[str, list[str]] = {metric: [] for metric in METRICS}
    for line in reference.itertuples():
        cells, runs = [str(line.dataset)], ours[ours["table"] == line.dataset]
        for metric in METRICS:
            mean, value = runs.loc[runs["seed"] < 5, metric].mean(), getattr(line, metric)
            error = runs[metric].std() * (1 / (5 * n_runs) + 1 / 5) ** 0.5
            errors = max(0.0, abs(mean - value) - 5e-5) / error  # the reference has four digits
            apart[metric] += [str(line.dataset)] if errors > 2 else []
            shown = f"**{errors:.1f}**" if errors > 2 else f"{errors:.1f}"
            cells += [f"{mean:.4f}", f"{value:.4f}", shown]
        print(f"| {' | '.join(cells)} |")
    for metric, tables in apart.items():
        print(
            f"\nBy {metric}, {len(tables)} of {len(reference)} tables differ by more than two "
            f"standard errors: {', '.join(tables)}."
        )
    print()


def compare_baselines(rows: pandas.DataFrame, reference: pandas.DataFrame) -> None:
    """Compare every detector and regime of the reference: how many tables agree, which do not."""
    # Some runs of the reference ran out of time; their means are over other seeds.
    reference = reference[reference["n_seeds"] == 5]
    ours = rows[rows["state"] == "ok"]
    ours = ours[ours["seed"] < 5]
    grouped = ours.groupby(["table", "method", "regime"])[METRICS]
    means, counts = grouped.mean(), grouped.size()
    print("## The baselines, ROC-AUC and average precision over the same five seeds\n")
    print("| detector | regime | tables | limit | agree | largest difference | above the limit |")
    print("|---|---|---|---|---|---|---|")
    for (name, regime), lines in reference.groupby(["method", "regime"]):
        name, regime = str(name), str(regime)
        if name == "AE" and regime == "contaminated":  # ours trains on inliers in both regimes
            continue
        method, bound = NAMES.get(name, name), 0.005 if name in DETERMINISTIC else 0.03
        differences = {}
        for line in lines.itertuples():
            key = (str(line.dataset), method, REGIMES[regime])
            if counts.get(key, 0) == 5:
                differences[key[0]] = max(
                    abs(means[metric][key] - getattr(line, metric)) for metric in METRICS
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
    parser.add_argument("--again", type=Path, help="CSV of benchmarks/gpu_paper_runs.py")
    parser.add_argument("--paper", type=Path, help="CSV of the independent run")
    parser.add_argument("--baselines", type=Path, help="CSV of the independent run")
    options = parser.parse_args()
    rows = frame_of(read_rows(options.rows))
    print("# Agreement with an independent run\n")
    if options.paper:
        again = pandas.read_csv(options.again) if options.again else None
        compare_paper(rows, again, pandas.read_csv(options.paper, comment="#"))
    if options.baselines:
        compare_baselines(rows, pandas.read_csv(options.baselines, comment="#"))


if __name__ == "__main__":
    main()
