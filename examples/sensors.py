"""A pump: one sensor drifts, one sticks; p-values, and a report for the engineer."""

from pathlib import Path

import numpy as np
import pandas as pd

from diffint import DiffInt
from diffint.report import ScoredTable, build_report

REPORT = Path("pump.html")
RATE = 0.01


def make_readings(n_rows: int, seed: int) -> pd.DataFrame:
    """Load drives flow, current and temperature: the readings move together."""
    rng = np.random.default_rng(seed)
    load = rng.uniform(0.3, 1.0, n_rows)
    noise = rng.normal(size=(n_rows, 4))
    return pd.DataFrame(
        {
            "flow": 80 * load + 1.0 * noise[:, 0],
            "current": 2 + 10 * load + 0.15 * noise[:, 1],
            "temperature": 35 + 30 * load + 0.6 * noise[:, 2],
            "pressure": 6.5 - 1.5 * load + 0.05 * noise[:, 3],
        }
    )


def main() -> None:
    """Learn 3,000 good readings; watch 720, of which the last two thirds have a faulty sensor."""
    detector = DiffInt(false_positive_rate=RATE, random_state=0).fit(make_readings(3000, seed=0))

    new = make_readings(720, seed=1)
    new.loc[240:479, "temperature"] += np.linspace(0, 15, 240)  # the thermometer drifts
    new.loc[480:, "flow"] = 56.0  # the flow meter sticks, at a value that is normal by itself

    scores, p_values = detector.anomaly_score(new), detector.p_values(new)
    why = detector.explain(new)
    print(f"A reading is flagged where p <= {RATE:g}: so few good readings score as high.\n")
    for name, rows in {
        "healthy": slice(0, 240),
        "thermometer drifts by 15 degrees": slice(240, 480),
        "flow meter sticks at 56": slice(480, 720),
    }.items():
        p, blamed = p_values[rows], why.responsibility[rows].argmax(axis=1)
        flagged = p <= RATE
        print(f"{name}: {flagged.sum()} of {len(p)} readings flagged, median p {np.median(p):.3f}")
        counts = new.columns[blamed[flagged]].value_counts()
        print("  named first: " + ", ".join(f"{name} {n}" for name, n in counts.items()))

    first = 240 + int(np.argmax(p_values[240:480] <= RATE))
    offset = 15 * (first - 240) / 239
    print(f"\nThe drift is first flagged at reading {first}, {offset:.1f} degrees off.")
    print("The stuck meter shows wherever the load calls for another flow than 56. Each reading is")
    print("normal by itself, so the detector sees that the four disagree, but often names one of")
    print("the other three: a reason is where to start looking, not the fault itself.")

    order = np.argsort(-scores)[: int((p_values <= RATE).sum())]  # the flagged, highest first
    shown = ScoredTable("pump readings", scores, new.to_numpy()[order], tuple(map(str, order)))
    REPORT.write_text(build_report(detector, shown), encoding="utf-8")
    print(f"All flagged readings with their reasons: {REPORT.resolve()}")


if __name__ == "__main__":
    main()
