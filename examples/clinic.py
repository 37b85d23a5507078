"""Biopsies: fit on benign ones, print what was learned, prove bounds, save and load."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from diffint import DiffInt

MODEL = Path("benign.diffint")


def main() -> None:
    """Fit on benign biopsies; score the others, then bound the scores of whole regions."""
    data = load_breast_cancer(as_frame=True)
    benign, malignant = data.data[data.target == 1], data.data[data.target == 0]
    known, unseen = benign[:250], benign[250:]
    detector = DiffInt(decoder="certified", false_positive_rate=0.05, random_state=0).fit(known)

    found = int((detector.predict(malignant) == -1).sum())
    alarms = int((detector.predict(unseen) == -1).sum())
    scores = detector.anomaly_score(data.data.drop(known.index))
    auroc = roc_auc_score(1 - data.target.drop(known.index), scores)
    n = len(malignant)
    print(f"Learned from {len(known)} benign biopsies, no malignant one among them.")
    print(f"Flagged: {found} of {n} malignant biopsies ({n - found} are missed), and {alarms} of")
    print(f"{len(unseen)} benign ones outside the training set (about 5 % are expected).")
    print(f"AUROC {auroc:.3f}.")
    print("This is a demonstration, not a diagnosis.\n")

    print(detector.explain_global().text(n_features=3, n_units=1, n_constraints=3))

    threshold = -detector.offset_
    proven = int((detector.certify(malignant).bound > threshold).sum())
    print(
        f"\nThe threshold is {threshold:.3f}. The proven lower bound of the score is above it for"
    )
    print(f"{proven} of {n} malignant biopsies. For the others the bound proves nothing.\n")

    worst = known.filter(like="worst").max()  # ten of the thirty measurements
    for times in (1.0, 1.5):
        region = detector.certify_region(times * worst, None)
        print(
            f"If all 'worst' measurements are at least {times:g} times the largest known, the score"
        )
        print(f"is between {region.lower:.2f} and {region.upper:.2f}: {region.verdict}.")

    detector.save(MODEL)
    same = DiffInt.load(MODEL).anomaly_score(malignant)
    assert np.array_equal(same, detector.anomaly_score(malignant))
    print(f"\nSaved to {MODEL} and loaded again: all scores are identical.")


if __name__ == "__main__":
    main()
