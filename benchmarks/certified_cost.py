"""What does the certified decoder cost? Accuracy with each decoder, and how tight row bounds are.

    python benchmarks/certified_cost.py --data FOLDER --out docs/results/certified_cost [--seeds 3]
        [--jobs 2]

All ADBench tables in the folder, the handwritten digits of scikit-learn (8 against the rest) and
the diamonds of plotnine (trained on clean rows; known errors are the anomalies; with categories).
60 % of the inliers train the recommended configuration with each decoder, at most 20,000 of them;
the others, at most as many, and all anomalies are scored. `spectral` is the paper's certified
decoder. The *sixteen* are the paper's six certified tables, digits, diamonds and eight more.

Bound / score: mean over the flagged test rows of the a-priori bound of `certify`, as a share of the
score; and the same of the error alone, as the rest of the score is computed and not bounded.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint import DiffInt
from diffint.tables.datasets import adbench_files, read_adbench
from real_data import diamond_errors, diamonds
from result_lines import emit

PAPER = ("14_glass", "42_WBC", "18_Ionosphere", "29_Pima", "6_cardio", "31_satimage-2")
MORE = (
    *("4_breastw", "12_fault", "20_letter", "28_pendigits", "37_Stamps", "38_thyroid", "40_vowels"),
    "45_wine",
)
SIXTEEN = (*PAPER, "digits", "diamonds", *MORE)
DECODERS = ("free", "certified", "spectral")
MOST_ROWS = 20_000
COLUMNS = ("table", "seed", "decoder", "roc_auc", "ap", "lipschitz", "bound", "error_bound")

Line = dict[str, Any]


def rows_of(table: str, folder: Path) -> tuple[pd.DataFrame, np.ndarray]:
    """The rows of a table, and which of them are anomalies."""
    if table == "diamonds":
        frame = diamonds()
        return frame, diamond_errors(frame)[0]
    if table == "digits":
        digits: Any = load_digits()
        return pd.DataFrame(digits.data), digits.target == 8
    labelled = read_adbench(adbench_files(folder)[table])
    return pd.DataFrame(labelled.x), labelled.y == 1


def measure(table: str, seed: int, decoder: str, folder: Path) -> Line:
    """Accuracy and tightness of one fit."""
    warnings.simplefilter("ignore")
    frame, odd = rows_of(table, folder)
    inliers = np.random.default_rng(seed).permutation(np.flatnonzero(~odd))
    n_train = int(0.6 * len(inliers))
    train, rest = inliers[:n_train][:MOST_ROWS], inliers[n_train:][:MOST_ROWS]
    tested = np.concatenate([rest, np.flatnonzero(odd)])
    detector = DiffInt(decoder=decoder, random_state=seed, n_jobs=1).fit(frame.iloc[train])
    rows = frame.iloc[tested]
    scores = detector.anomaly_score(rows)
    line: Line = dict.fromkeys(COLUMNS, "")
    line |= {"table": table, "seed": seed, "decoder": decoder}
    line["roc_auc"] = roc_auc_score(odd[tested], scores)
    line["ap"] = average_precision_score(odd[tested], scores)
    flagged = np.flatnonzero(detector.predict(rows) == -1)[:2_000]
    if decoder != "free" and len(flagged):
        certificate = detector.certify(rows.iloc[flagged])
        beside = certificate.beside_error.mean(axis=0)
        error = np.maximum(certificate.score - beside, 1e-12)
        line["lipschitz"] = certificate.lipschitz_bound.mean()
        line["bound"] = (certificate.bound / certificate.score).mean()
        line["error_bound"] = ((certificate.bound - beside) / error).mean()
    return line


def report(lines: list[Line], command: str) -> list[str]:
    """The page."""
    text: list[str] = []
    frame = pd.DataFrame(lines).replace("", np.nan)
    means: Any = frame.groupby(["table", "decoder"])[list(COLUMNS[3:])].mean().unstack("decoder")
    n_seeds = frame.groupby(["table", "decoder"]).size()
    few = sorted({table for table, _ in n_seeds.index[n_seeds < n_seeds.max()]})
    exception = f", fewer of {', '.join(few)}" if few else ""
    emit(
        text,
        "# The price of the certified decoder",
        "",
        f"Created by `{command}`, which describes what is measured. Means over {n_seeds.max()} "
        f"seeds{exception}.",
        "",
        "| tables | free | certified | spectral | AP: free | certified | spectral |",
        "|---|---|---|---|---|---|---|",
    )
    sixteen = [name for name in SIXTEEN if name in means.index]
    for label, names in (
        (f"the sixteen ({len(sixteen)})", sixteen),
        (f"all ({len(means)})", list(means.index)),
    ):
        of = means.loc[names].mean()
        everywhere = means.loc[names].notna().all()
        cells = [
            f"{of[m, d]:.4f}" if everywhere[m, d] else "–"
            for m in ("roc_auc", "ap")
            for d in DECODERS
        ]
        emit(text, f"| mean, {label} | {' | '.join(cells)} |")
    change = (means["roc_auc"]["certified"] - means["roc_auc"]["free"]).sort_values()
    emit(
        text,
        "",
        f"Certified against free: the largest loss of ROC-AUC is {-change.iloc[0]:.4f} "
        f"({change.index[0]}), the largest gain {change.iloc[-1]:.4f} ({change.index[-1]}).",
        "",
        "## By table",
        "",
        "L: Lipschitz bound. Bounds as shares of flagged rows' scores, whole and of the error.",
        "",
        "| table | ROC-AUC: free | certified | spectral | AP: free | certified | spectral | L: "
        "certified | spectral | bound / score: certified | spectral | of the error: certified | "
        "spectral |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    )
    for name in [*sixteen, *(n for n in means.index if n not in sixteen)]:
        cells = [_cell(means, name, m, d) for m in ("roc_auc", "ap") for d in DECODERS]
        cells += [
            _cell(means, name, m, d, 2)
            for m in ("lipschitz", "bound", "error_bound")
            for d in DECODERS[1:]
        ]
        emit(text, f"| {name} | {' | '.join(cells)} |")
    bounds = means.loc[sixteen]
    for decoder in DECODERS[1:]:
        emit(
            text,
            "",
            f"Mean of the sixteen, {decoder}: bound / score {bounds['bound'][decoder].mean():.3f}, "
            f"of the error {bounds['error_bound'][decoder].mean():.3f}.",
        )
    return text


def _cell(means: Any, table: str, measure: str, decoder: str, digits: int = 3) -> str:
    if (measure, decoder) not in means or np.isnan(means.loc[table, (measure, decoder)]):
        return "–"
    return f"{means.loc[table, (measure, decoder)]:.{digits}f}"


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--out", required=True, help="page without its ending")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder = Path(options.data)
    runs = Path(f"{options.out}.runs.csv")
    lines: list[Line] = []
    if runs.exists():
        with open(runs, newline="") as file:
            for line in csv.DictReader(file):
                numbers = {k: float(v) if v else "" for k, v in line.items() if k in COLUMNS[3:]}
                lines.append({**line, "seed": int(line["seed"]), **numbers})
    done = {(line["table"], line["seed"], line["decoder"]) for line in lines}
    others = [name for name in adbench_files(folder) if name not in SIXTEEN]
    tasks = [
        (table, seed, decoder)
        for seed in range(options.seeds)
        for table in (*SIXTEEN, *others)
        for decoder in (DECODERS if table in SIXTEEN else DECODERS[:2])
        if (table, seed, decoder) not in done
    ]
    os.environ["OMP_NUM_THREADS"] = "1"
    is_new = not runs.exists()
    with ProcessPoolExecutor(options.jobs) as pool, open(runs, "a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        for n, future in enumerate(as_completed([pool.submit(measure, *t, folder) for t in tasks])):
            lines.append(future.result())
            writer.writerow(lines[-1])
            file.flush()
            print(f"{n + 1} of {len(tasks)} fits", file=sys.stderr)
    command = "python benchmarks/certified_cost.py --data FOLDER --out docs/results/certified_cost"
    Path(f"{options.out}.md").write_text("\n".join(report(lines, command)) + "\n")


if __name__ == "__main__":
    main()
