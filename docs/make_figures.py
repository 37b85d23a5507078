"""Draw each figure of `diffint.plots` for the example table: ``python docs/make_figures.py``."""

from pathlib import Path

import numpy as np
import pandas

from diffint import DiffInt
from diffint.show.plots import (
    bound_versus_error,
    box_projection,
    constraint_bars,
    importance_heat_map,
    score_histogram,
    waterfall,
)
from diffint.tables.datasets import breast_cancer

FOLDER = Path(__file__).parent / "images"


def main() -> None:
    """Train on 214 benign biopsies; draw the figures for all other rows."""
    table = breast_cancer()
    benign = np.flatnonzero(table.y == 0)
    train, test = benign[:214], np.setdiff1d(np.arange(len(table.y)), benign[:214])
    frame = pandas.DataFrame(table.x, columns=table.feature_names)
    rows, labels = frame.iloc[test], table.y[test]
    detector = DiffInt(random_state=0, false_positive_rate=0.05).fit(frame.iloc[train])
    model, learned, why = detector.model_, detector.explain_global(), detector.explain(rows)
    certified = DiffInt(decoder="certified", random_state=0, false_positive_rate=0.05)
    certified.fit(frame.iloc[train])

    figures = {
        "box_projection": box_projection(learned, rows, labels),
        "constraint_bars": constraint_bars(learned, model.features),
        "waterfall": waterfall(why, int(np.argmax(why.score))),
        "importance_heat_map": importance_heat_map(learned),
        "pattern_set": detector.patterns().plot(),
        "score_histogram": score_histogram(
            why.score, why.threshold, labels, model.calibration.scores
        ),
        "bound_versus_error": bound_versus_error(certified.certify(rows), -certified.offset_),
    }
    FOLDER.mkdir(exist_ok=True)
    for name, figure in figures.items():
        figure.savefig(FOLDER / f"{name}.png", dpi=130)


if __name__ == "__main__":
    main()
