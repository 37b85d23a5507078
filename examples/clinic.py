"""Biopsies: what a detector learned from benign ones, what it can prove, and how it is kept."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import roc_auc_score

from diffint import DiffInt

MODEL = Path("benign.diffint")


def main() -> None:
    """Fit on benign biopsies; ask about the rest, then about every biopsy of a certain kind."""
    data = load_breast_cancer(as_frame=True)
    benign, malignant = data.data[data.target == 1], data.data[data.target == 0]
    known, unseen = benign[:250], benign[250:]
    detector = DiffInt(decoder="certified", false_positive_rate=0.05, random_state=0).fit(known)

    found = int((detector.predict(malignant) == -1).sum())
    alarms = int((detector.predict(unseen) == -1).sum())
    scores = detector.anomaly_score(data.data.drop(known.index))
    auroc = roc_auc_score(1 - data.target.drop(known.index), scores)
    n = len(malignant)
    print(f"Learned from {len(known)} benign biopsies, without a single malignant one.")
    print(f"Flagged: {found} of {n} malignant biopsies, so {n - found} are missed, and {alarms} of")
    print(f"{len(unseen)} benign ones that it had not seen (5 % are allowed). AUROC {auroc:.3f}.")
    print("This is a demonstration, not a diagnosis.\n")

    print(detector.explain_global().text(n_features=3, n_units=1, n_constraints=3))

    threshold = -detector.offset_
    proven = int((detector.certify(malignant).bound > threshold).sum())
    print(f"\nThe threshold is {threshold:.3f}. For {proven} of {n} malignant biopsies the proven")
    print("lower bound alone is above it. The bounds of the others decide nothing.\n")

    worst = known.filter(like="worst").max()  # ten of the thirty measurements
    for times in (1.0, 1.5):
        region = detector.certify_region(times * worst, None)
        print(
            f"A biopsy with all 'worst' measurements at {times:g} times the largest known, or more,"
        )
        print(f"scores between {region.lower:.2f} and {region.upper:.2f}: {region.verdict}.")

    detector.save(MODEL)
    same = DiffInt.load(MODEL).anomaly_score(malignant)
    assert np.array_equal(same, detector.anomaly_score(malignant))
    print(f"\nSaved to {MODEL} and loaded again: every score is the same, bit by bit.")


if __name__ == "__main__":
    main()
