"""Draw the overview picture of the README: ``python docs/make_pictures.py``."""

from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import MaxNLocator

from diffint import DiffInt
from diffint.cli.demo import training_rows
from diffint.core.formatting import number
from diffint.tables.datasets import breast_cancer

FOLDER = Path(__file__).parent / "images"
NORMAL, ANOMALY, RANGE = "#0072b2", "#d55e00", "#9ecae1"  # safe for colour-blind readers


def main() -> None:
    """Left: scores of the test rows; right: the reasons for one of them."""
    table = breast_cancer()
    chosen = training_rows(table.y)  # the split of `diffint demo`
    train, test = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    detector = DiffInt(random_state=0, false_positive_rate=0.05).fit(table.x[train])
    scores, labels = detector.anomaly_score(table.x[test]), table.y[test]

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=(1, 1.25))
    bins = np.geomspace(scores.min(), scores.max(), 35)
    left.hist(scores[labels == 0], bins, color=NORMAL, alpha=0.8, label="benign (never seen)")
    left.hist(scores[labels == 1], bins, color=ANOMALY, alpha=0.7, label="malignant")
    left.axvline(-detector.offset_, color="black", linestyle="--", linewidth=1)
    left.set_ylim(0, left.get_ylim()[1] * 1.3)  # room for the legend
    left.text(-detector.offset_ * 1.04, left.get_ylim()[1] * 0.93, "threshold")
    left.set(xscale="log", xlabel="anomaly score", ylabel="rows", title="Scores of test rows")
    left.set_xticks([0.1, 0.2, 0.5, 1.0, 2.0], ["0.1", "0.2", "0.5", "1", "2"])
    left.yaxis.set_major_locator(MaxNLocator(integer=True))
    left.minorticks_off()
    left.legend(frameon=False, loc="upper left", fontsize=9)

    why = detector.explain(table.x[test])
    worst = int(np.argmax(scores))
    top = why.order[worst, :6][::-1]
    for place, j in enumerate(top):
        low, high = why.lower[worst, j], why.upper[worst, j]
        value = (why.value[worst, j] - low) / (high - low)
        right.barh(place, 1.0, color=RANGE, height=0.5)
        right.plot(value, place, "D", color=ANOMALY)
        right.text(value + 0.2, place, number(why.value[worst, j]), va="center", color=ANOMALY)
        ends = f"{number(low)} to {number(high)}"
        right.text(-0.05, place, ends, ha="right", va="center", size=9)
    right.set_yticks(range(len(top)), [table.feature_names[j] for j in top])
    right.set(
        title=f"Row {test[worst]} and the ranges it violates",
        xlabel="bar: range of the nearest pattern; diamond: this row",
        xticks=[],
        xlim=(-2.6, right.get_xlim()[1] + 0.6),
    )
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    FOLDER.mkdir(exist_ok=True)
    figure.savefig(FOLDER / "overview.png", dpi=130)


if __name__ == "__main__":
    main()
