"""Bounds on the share of false alerts at every threshold: shapes of the envelope compared.

    python benchmarks/bound_shapes.py --out docs/results/bound_shapes [--runs 50]

Calibration rows and normal rows have N(0, 1) scores, anomalies N(shift, 1). An envelope is a number
of normal rows for every level of p up to 0.25. With a probability of 0.95 it is not exceeded at any
of them. Its shape is chosen here, and its width simulated (4,000 draws of the urn), except where it
is known in closed form. The bound of a set of rows follows from every shape in the same way.

Measured: the bound for the rows that the procedure of Benjamini and Hochberg selects at a rate of
0.1, and for the top 5 % of the rows, means over the runs in which any row is selected; and in which
share of all runs the bounds held at all thresholds together.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import betabinom

from diffint.decide.false_alerts import false_alert_envelope
from diffint.decide.selection import step_up
from result_lines import emit

CALIBRATION_ROWS, ROWS = (100, 500, 3_000, 30_000), (200, 2_000)
ANOMALIES, SHIFTS = (0.01, 0.05, 0.2), (3.0, 4.0)
DRAWS, CONFIDENCE = 4_000, 0.95

Counts = NDArray[np.int64]
Excess = Callable[[Counts, Counts, int, int], NDArray[np.float64]]


def constant(counts: Counts, levels: Counts, n: int, m: int) -> NDArray[np.float64]:
    """Of equal width at all levels."""
    return np.asarray(counts / m - levels / (n + 1))


def linear(counts: Counts, levels: Counts, n: int, m: int) -> NDArray[np.float64]:
    """In proportion to the level (Simes)."""
    return np.asarray(counts / m / (levels / (n + 1)))


def equal_levels(counts: Counts, levels: Counts, n: int, m: int) -> NDArray[np.float64]:
    """Exceeded with the same probability at every level (beta-binomial)."""
    return np.asarray(-betabinom.logsf(counts - 1, m, levels, n + 1 - levels))


def simulated(shape: Excess, levels: Counts, n: int, m: int) -> Counts:
    """The envelope of a shape at the levels."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.random((DRAWS, n)), axis=1)[:, levels - 1]
    steps = np.diff(places, axis=1, prepend=0.0)
    left, above = np.full(DRAWS, m), np.ones(DRAWS)
    counts = np.empty((DRAWS, len(levels)), dtype=np.int64)
    for j in range(len(levels)):
        left = left - rng.binomial(left, np.clip(steps[:, j] / above, 0.0, 1.0))
        above = above - steps[:, j]
        counts[:, j] = m - left
    allowed = np.quantile(shape(counts, levels[None, :], n, m).max(axis=1), CONFIDENCE)
    every = np.arange(m + 1)
    return np.array([(shape(every, np.array([j]), n, m) <= allowed).sum() - 1 for j in levels])


def closed_form(levels: Counts, n: int, m: int) -> Counts:
    """Dvoretzky, Kiefer and Wolfowitz for both samples, each with half of the error."""
    width = np.sqrt(np.log(2 / (1 - CONFIDENCE)) / 2) * (1 / np.sqrt(n) + 1 / np.sqrt(m))
    return np.asarray(np.minimum(np.floor(m * (levels / n + width)), m), dtype=np.int64)


def bounds(p: NDArray[np.float64], levels: Counts, envelope: Counts, n: int) -> NDArray[np.float64]:
    """The largest share of normal rows up to each row's p-value."""
    of_row = np.rint(p * (n + 1)).astype(np.int64)
    alerts = np.cumsum(np.bincount(of_row, minlength=n + 2))[1:]
    place = np.searchsorted(levels, np.arange(1, n + 2))
    most = np.append(envelope, len(p))[place]
    false = alerts + np.minimum.accumulate(np.minimum(most - alerts, 0))
    return np.asarray((false / np.maximum(alerts, 1))[of_row - 1])


def main() -> None:
    """Compare, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float, float, float, int]]] = {}
    for n in CALIBRATION_ROWS:
        for m in ROWS:
            kept_levels, kept = false_alert_envelope(n, m, CONFIDENCE)
            levels, kept = kept_levels[:-1], kept[:-1]
            envelopes = {
                "closed form (DKW)": closed_form(levels, n, m),
                "constant width": simulated(constant, levels, n, m),
                "linear": simulated(linear, levels, n, m),
                "equal local levels": simulated(equal_levels, levels, n, m),
                "likelihood ratios, as used": kept,
            }
            for name, envelope in envelopes.items():
                found.setdefault(name, []).extend(_measure(n, m, levels, envelope, options.runs))
    text: list[str] = []
    settings = len(CALIBRATION_ROWS) * len(ROWS) * len(ANOMALIES) * len(SHIFTS)
    emit(
        text,
        "# Bounds at every threshold: shapes of the envelope",
        "",
        f"Created by `python benchmarks/bound_shapes.py --out docs/results/bound_shapes --runs "
        f"{options.runs}`, which describes what is measured. {settings} settings: "
        f"{', '.join(f'{n:,}' for n in CALIBRATION_ROWS)} calibration rows, "
        f"{' or '.join(f'{m:,}' for m in ROWS)} rows, 1, 5 or 20 % anomalies, shifted by "
        f"{' or '.join(f'{s:g}' for s in SHIFTS)} standard deviations.",
        "",
        "| shape | selected rows | top 5 % | held | selected, by calibration rows: "
        + " / ".join(f"{n:,}" for n in CALIBRATION_ROWS)
        + " |",
        "|---|---|---|---|---|",
    )
    truth = [line[3] for line in found["linear"] if line[0] == line[0]]
    emit(text, f"| (true share) | {np.mean(truth):.3f} | | | |")
    for name, lines in found.items():
        chosen = np.array([line[0] for line in lines])
        top, held = np.mean([line[1] for line in lines]), np.mean([line[2] for line in lines])
        sizes = np.array([line[4] for line in lines])
        each = [np.nanmean(chosen[sizes == n]) for n in CALIBRATION_ROWS]
        cells = " / ".join(f"{value:.2f}" for value in each)
        emit(text, f"| {name} | {np.nanmean(chosen):.3f} | {top:.3f} | {held:.3f} | {cells} |")
    options.out.with_suffix(".md").write_text("\n".join(text) + "\n")


def _measure(
    n: int, m: int, levels: Counts, envelope: Counts, runs: int
) -> list[tuple[float, float, float, float, int]]:
    """Bound of the selected rows (NaN if none), of the top 5 %, held, true share, n."""
    lines = []
    for share in ANOMALIES:
        for shift in SHIFTS:
            for run in range(runs):
                rng = np.random.default_rng((n, m, int(1000 * share), int(shift), run))
                normal = np.arange(m) >= round(share * m)
                known = np.sort(rng.normal(size=n))
                scores = rng.normal(size=m) + np.where(normal, 0.0, shift)
                p = (1 + n - np.searchsorted(known, scores)) / (n + 1)
                each = bounds(p, levels, envelope, n)
                order = np.argsort(p, kind="stable")
                last = np.searchsorted(p[order], p[order], side="right")
                true = np.cumsum(normal[order])[last - 1] / last
                chosen = step_up(p, 0.1)
                bound = each[chosen].max() if chosen.any() else np.nan
                false = normal[chosen].mean() if chosen.any() else np.nan
                top = each[order[round(0.05 * m) - 1]]
                lines.append((bound, top, float((true <= each[order] + 1e-12).all()), false, n))
    return lines


if __name__ == "__main__":
    main()
