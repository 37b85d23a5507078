"""Run the paper's configuration on every ADBench table, all seeds of a table in one GPU launch.

    python benchmarks/gpu_paper_runs.py --data adbench --out docs/results/gpu_paper_runs.csv

For each seed: 40 % test rows, not stratified; training on the inliers of the rest, which also give
the min-max scaling; the score is the mean absolute error of the clipped scaled row. Tables already
in the output are skipped, so an interrupted run can be continued with the same command.
"""

from __future__ import annotations

import argparse
import csv
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from diffint.bench.protocol import make_trial
from diffint.core.config import PAPER, Config, paper_batch_size
from diffint.core.constants import NORM_EPSILON
from diffint.core.scaling import fit_scaler
from diffint.engine.devices import resolve_device
from diffint.engine.gpu.training import train_members_on_gpu
from diffint.engine.interface import TrainingRun
from diffint.engine.parameters import Parameters
from diffint.tables.datasets import LabelledTable, read_adbench

COLUMNS = ("table", "seed", "roc_auc", "average_precision", "train_seconds_all_seeds", "device")


def estimated_cost(path: Path) -> float:
    """A number proportional to the training time, from the number of steps and elements."""
    with np.load(path, allow_pickle=False) as table:
        n_rows, n_features = table["X"].shape
    return float(
        n_rows
        / paper_batch_size(n_rows)
        * (40 + paper_batch_size(n_rows) * (n_features + 20) / 500)
    )


def split(table: LabelledTable, seed: int) -> tuple[TrainingRun, NDArray[np.float32], NDArray[Any]]:
    """Training run, scaled clipped test rows (rows, features) and test labels of one seed."""
    inliers, test, test_labels = make_trial(table, seed, "inliers")
    scaler = fit_scaler(inliers, "minmax")
    run = TrainingRun(scaler.transform(inliers)[0], np.random.SeedSequence(seed))
    return run, scaler.transform(test)[0], test_labels


@torch.no_grad()  # type: ignore[untyped-decorator]
def scores(rows: NDArray[np.float32], parameters: Parameters, config: Config) -> NDArray[Any]:
    """Mean absolute error of rows (rows, features), computed in plain torch. → (rows,)"""
    w = {name: torch.from_numpy(value).cuda() for name, value in parameters.arrays().items()}
    half_width = torch.nn.functional.softplus(w["width_logit"])
    lower, upper = w["center"] - half_width, w["center"] + half_width
    block = max(1, 100_000_000 // lower.numel())
    result = []
    for x in torch.from_numpy(rows).cuda().split(block):
        value = x[:, None]
        membership = torch.sigmoid((value - lower) / config.temperature)
        membership *= torch.sigmoid((upper - value) / config.temperature)
        code = torch.softmax(membership.clamp_min_(1e-8).log_().sum(2), dim=1)
        hidden = code @ w["hidden_weight"] + w["hidden_bias"]
        hidden = torch.nn.functional.layer_norm(
            hidden, hidden.shape[1:], w["norm_gain"], w["norm_shift"], NORM_EPSILON
        )
        output = hidden.clamp_min(0.0) @ w["output_weight"] + w["output_bias"]
        result.append((x - output).abs().mean(1))
    return np.asarray(torch.cat(result).cpu().numpy())


def run_table(path: Path, seeds: list[int], epochs: int) -> list[tuple[Any, ...]]:
    """One line per seed, in the order of COLUMNS."""
    table = read_adbench(path)
    splits = [split(table, seed) for seed in seeds]
    config = replace(PAPER, epochs=epochs, batch_size=paper_batch_size(len(table.x)))
    started = time.perf_counter()
    cuda = resolve_device("cuda", float("inf"))
    members = train_members_on_gpu([run for run, _, _ in splits], config, cuda)
    seconds = time.perf_counter() - started
    lines = []
    for seed, member, (_, rows, labels) in zip(seeds, members, splits, strict=True):
        anomaly = scores(rows, member.parameters, config)
        auc, precision = roc_auc_score(labels, anomaly), average_precision_score(labels, anomaly)
        device = torch.cuda.get_device_name()
        lines.append((path.stem, seed, f"{auc:.6f}", f"{precision:.6f}", f"{seconds:.2f}", device))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of npz files with X, y")
    parser.add_argument("--out", type=Path, required=True, help="CSV file to append to")
    parser.add_argument("--tables", nargs="*", help="names of tables without suffix; default: all")
    parser.add_argument("--seeds", default="0-9", help="first and last seed, such as 0-9")
    parser.add_argument("--epochs", type=int, default=PAPER.epochs)
    parser.add_argument(
        "--time-limit", type=float, help="seconds after which no new table is started"
    )
    args = parser.parse_args()
    first, last = (int(part) for part in args.seeds.split("-"))

    done: set[str] = set()
    if args.out.exists():
        with args.out.open(newline="") as file:
            done = {line["table"] for line in csv.DictReader(file)}
    paths = sorted(args.data.glob("*.npz"), key=estimated_cost)
    if args.tables:
        missing = set(args.tables) - {path.stem for path in paths}
        if missing:
            parser.error(f"not in {args.data}: {', '.join(sorted(missing))}")
        paths = [path for path in paths if path.stem in args.tables]

    began, failed = time.perf_counter(), list[str]()
    for path in paths:
        if path.stem in done:
            continue
        if args.time_limit and time.perf_counter() - began > args.time_limit:
            print(f"stopped before {path.stem}: time limit reached", flush=True)
            break
        try:
            lines = run_table(path, list(range(first, last + 1)), args.epochs)
        except Exception:  # continue with the other tables
            traceback.print_exc()
            failed.append(path.stem)
            continue
        is_new = not args.out.exists()
        with args.out.open("a", newline="") as file:
            writer = csv.writer(file)
            if is_new:
                writer.writerow(COLUMNS)
            writer.writerows(lines)
        mean = np.mean([float(line[2]) for line in lines])
        elapsed = time.perf_counter() - began
        print(
            f"{path.stem:22s} auc {mean:.4f}  train {lines[0][4]} s  total {elapsed:.0f} s",
            flush=True,
        )
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
