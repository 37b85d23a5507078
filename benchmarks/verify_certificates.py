"""Are certificates confirmed by the independent reference, and changed ones refused?

    python benchmarks/verify_certificates.py --data FOLDER [--regions 20] [--changes 100]

Regions as in `regions.py`, on ADBench tables with both decoders. Every certificate is verified.
Then numbers of certificates are changed at random by a factor of 1 ± 1e-9 to 1 ± 0.1, or a part is
removed. A changed one that is confirmed must claim no more than what holds: bounds that no row
found by a search violates, the same region, and the model's threshold.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from diffint import DiffInt, InputError
from diffint.bench.protocol import make_trial
from diffint.tables.datasets import adbench_files, read_adbench
from regions import KINDS, draw_region

TABLES = ("14_glass", "29_Pima", "45_wine")


def change(document: dict[str, Any], rng: np.random.Generator) -> tuple[str, dict[str, Any]]:
    """A copy with one change, and what was changed."""
    document = copy.deepcopy(document)
    factor = 1.0 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-9, -1)
    side, what = str(rng.choice(["lower", "upper"])), str(rng.choice(FIELDS))
    parts = document["parts"]
    if what == "bounds":
        document["bounds"][side] *= factor
    elif what == "threshold":
        document["threshold"]["value"] *= factor
    elif what == "rate":
        document["threshold"]["false_positive_rate"] *= factor
    elif what == "region":
        entry = document["region"][int(rng.integers(len(document["region"])))]
        entry[side] = entry[side] if isinstance(entry[side], str) else entry[side] * factor
    elif what == "part":
        part = parts[side][int(rng.integers(len(parts[side])))]
        j = int(rng.integers(len(part)))
        part[j] = part[j] if isinstance(part[j], str) else part[j] * factor
    elif what == "removed":
        place = int(rng.integers(parts["count"]))
        parts["count"] -= 1
        del parts["lower"][place], parts["upper"][place]
    elif what == "statement":
        document["statement"] = str(rng.choice(["all flagged", "none flagged", "mixed"]))
    else:
        row = document["witnesses"][str(rng.choice(["flagged", "passed"]))]
        if row:
            name = str(rng.choice(list(row)))
            row[name] *= factor
    return what, document


FIELDS = ("bounds", "threshold", "rate", "region", "part", "removed", "statement", "witness")


def claims_more(found: dict[str, Any], original: dict[str, Any], scores: np.ndarray) -> bool:
    """Whether a changed certificate says more than what holds for the original's region."""
    bounds, threshold = found["bounds"], found["threshold"]["value"]
    wrong = bounds["lower"] > scores.min() or bounds["upper"] < scores.max()
    wrong |= threshold != original["threshold"]["value"]
    statement = found["statement"]
    wrong |= statement == "all flagged" and bool((scores <= threshold).any())
    wrong |= statement == "none flagged" and bool((scores > threshold).any())
    return bool(wrong or found["region"] != original["region"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, default=os.environ.get("DIFFINT_ADBENCH"))
    parser.add_argument("--regions", type=int, default=20)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files, rng = adbench_files(options.data), np.random.default_rng(0)
    for table in TABLES:
        for decoder in ("free", "certified"):
            train, test, _ = make_trial(read_adbench(files[table]), 0, "inliers")
            detector = DiffInt(decoder=decoder, random_state=0, n_jobs=1).fit(train)
            verdicts: Counter[tuple[str, str | None]] = Counter()
            documents, seconds, per_part = [], [], []
            for i in range(options.regions):
                low, high = draw_region(train, test, KINDS[i % 2], rng)
                made = detector.certify_region(low, high, splits=10**6, seconds=options.seconds)
                found = detector.verify(made)
                verdicts[made.verdict, found.reason] += 1
                seconds.append(found.seconds)
                per_part.append(found.seconds / made.n_boxes)
                documents.append(made)
            refused: Counter[str] = Counter()
            confirmed = false = 0
            for _ in range(options.changes):
                made = documents[int(rng.integers(len(documents)))]
                original = made.to_dict()
                what, changed = change(original, rng)
                if changed == original:
                    continue
                try:
                    found = detector.verify(json.dumps(changed))
                except InputError:
                    refused[f"{what}: unreadable"] += 1
                    continue
                if not found.confirmed:
                    refused[f"{what}: {found.reason}"] += 1
                    continue
                confirmed += 1
                free = np.where(np.isinf(made.region_lower), train.min(axis=0), made.region_lower)
                end = np.where(np.isinf(made.region_upper), train.max(axis=0), made.region_upper)
                rows = free + (end - free) * rng.random((2_000, len(free)))
                false += claims_more(changed, original, detector.anomaly_score(rows))
            print(
                f"{table} {decoder}: {dict(verdicts)}; {np.median(per_part):.3f} s a part, at most "
                f"{max(seconds):.1f} s; changed: {dict(refused)}, {confirmed} confirmed, of which "
                f"{false} claim too much",
                flush=True,
            )


if __name__ == "__main__":
    main()
