"""``diffint demo``: fit, score, explain and report on the embedded table."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.table import Table

from ..tables.atomic_write import atomic_write
from ..tables.files.reading import ReadingOptions
from .output import say
from .report import write_report

if TYPE_CHECKING:
    from ..estimator import DiffInt
    from ..explain.alert_groups import AlertGroups
    from ..explain.local_explanation import LocalExplanation

_SEED = 0
_REASONS, _GROUPS = 3, 5


def demo(
    folder: Annotated[Path, typer.Option(help="Folder for the output files.")] = Path("demo"),
    top: Annotated[int, typer.Option(min=1, help="Number of rows to show.")] = 10,
) -> None:
    """Run all steps on the embedded table: fit, score, explain, and write a report.

    The table has 569 biopsies with 30 measurements each. The detector is
    trained on benign rows only and should flag the malignant ones.

    Example: diffint demo --folder /tmp/demo --top 5
    """
    import pandas
    from sklearn.metrics import average_precision_score, roc_auc_score

    from ..estimator import DiffInt
    from ..tables.datasets import breast_cancer

    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{str(folder)!r} is a file; give a folder with --folder")
    folder.mkdir(parents=True, exist_ok=True)  # before the work, to fail early
    console = Console(highlight=False)
    console.width = max(console.width, 80)  # the width of the printed table
    table = breast_cancer()
    train = training_rows(table.y)
    test = np.flatnonzero(~train)
    console.print(
        f"Breast-cancer table: {len(table.x)} rows × {table.x.shape[1]} features. "
        f"Training on {int(train.sum())} benign rows; {len(test)} rows are kept for testing "
        f"({int(table.y[test].sum())} malignant)."
    )
    started = time.perf_counter()
    frame = pandas.DataFrame(table.x, columns=table.feature_names)
    detector = DiffInt(random_state=_SEED, false_positive_rate=0.05, verbose=1)
    detector.fit(frame[train])
    explanation = detector.explain(frame.iloc[test])
    scores, flagged = explanation.score, explanation.flagged
    console.print(f"Fitted, scored and explained in {time.perf_counter() - started:.1f} s.\n")

    labels = table.y[test]
    _show_rows(console, explanation, test, labels, top)
    worst = int(np.argmax(scores))
    console.print(f"\nThe first of them in detail. {explanation.text(worst, 1)}\n")
    _show_groups(console, explanation.alert_groups())
    console.print(f"\n{_nearly_normal_row(detector, frame.iloc[test], flagged, scores)}")

    hits = int((flagged & (labels == 1)).sum())
    console.print(
        f"\nOn the {len(test)} test rows, with labels that the detector did not use: "
        f"AUROC {roc_auc_score(labels, scores):.3f}, "
        f"average precision {average_precision_score(labels, scores):.3f}."
    )
    console.print(
        f"Flagged at a false-positive rate of 5 %: {int(flagged.sum())} rows, "
        f"{hits} of them malignant.\n"
    )
    model, rows, report = (
        folder / name for name in ("breast-cancer.diffint", "biopsies.csv", "report.html")
    )
    detector.id_column_ = "biopsy"
    detector.save(model)
    atomic_write(rows, frame.iloc[test].rename_axis("biopsy").to_csv().encode())
    write_report(detector, str(rows), str(report), ReadingOptions())
    for what, path in (("Model", model), ("Test rows", rows), ("Report", report)):
        say(f"{what + ':':<10} {path}")
    # After `make demo` the environment's commands may not be on the PATH.
    installed = Path(sys.executable).with_name("diffint")
    command = installed if shutil.which("diffint") is None and installed.exists() else "diffint"
    say(
        f"\nOpen the report in a browser, or try next:\n"
        f"  {command} explain {model} {rows} --top 1\n"
        f"  {command} constraints {model}"
    )


def training_rows(y: NDArray[np.int64]) -> NDArray[np.bool_]:
    """A random 60 % of the normal rows."""
    rng = np.random.default_rng(_SEED)
    normal = np.flatnonzero(y == 0)
    train = np.zeros(len(y), dtype=bool)
    train[rng.choice(normal, int(0.6 * len(normal)), replace=False)] = True
    return train


def _nearly_normal_row(
    detector: DiffInt, rows: Any, flagged: NDArray[np.bool_], scores: NDArray[np.float64]
) -> str:
    """Which changes would make the flagged row with the lowest score normal."""
    lowest = np.flatnonzero(flagged)[np.argmin(scores[flagged])]
    name = f"Row {rows.index[lowest]}"
    text = detector.nearest_normal(rows.iloc[[lowest]]).text(0)
    return f"{name}, just above the threshold,{text.removeprefix(name).lstrip(':')}"


def _show_rows(
    console: Console,
    explanation: LocalExplanation,
    test: NDArray[np.intp],
    labels: NDArray[np.int64],
    top: int,
) -> None:
    """Print the rows with the highest scores and their reasons."""
    from ..show.wording.reasons import brief_reason

    shown = np.argsort(-explanation.score, kind="stable")[:top]
    grid = _grid(f"The {len(shown)} most anomalous test rows and their reasons")
    for heading in ("row", "label", "score", "p"):
        grid.add_column(heading, justify="left" if heading == "label" else "right", no_wrap=True)
    grid.add_column("reasons")
    for i in shown:
        label = "malignant" if labels[i] else "benign"
        score, p_value = explanation.score[i], explanation.p_value[i]
        cells = [str(test[i]), label, f"{score:.3f}", f"{p_value:.3f}"]
        for reason in explanation.reasons_of(int(i), _REASONS):
            grid.add_row(*cells, brief_reason(explanation, int(i), reason))
            cells = [""] * len(cells)
    console.print(grid)


def _show_groups(console: Console, groups: AlertGroups) -> None:
    """Print the largest groups of flagged rows."""
    shown = groups.groups[:_GROUPS]
    n_flagged = sum(map(len, groups))
    grid = _grid(
        f"The largest {len(shown)} of {len(groups)} groups of the {n_flagged} flagged rows"
    )
    grid.add_column("rows", justify="right")
    grid.add_column("what they have in common")
    for group in shown:
        grid.add_row(str(len(group)), group.name)
    console.print(grid)


def _grid(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
