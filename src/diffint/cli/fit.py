"""``diffint fit``: a table to a model file."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console

from ..config import PRESETS
from ..errors import InputError
from ..estimator import DiffInt
from ..files.reading import TableFile, open_table
from ..formatting import counted, listed, number
from . import arguments
from .streaming import check_columns

_HELD_OUT = 0.2  # of the rows, to measure on where anomalies are known


def fit(
    table: arguments.Table,
    output: Annotated[str, typer.Option("-o", "--output", metavar="MODEL", help="To be written.")],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with 1 (or true) for known anomalies: left out of training, used to "
            "measure AUROC and average precision on rows held out.",
        ),
    ] = None,
    id_column: arguments.Id = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="Column to leave out; repeatable.")
    ] = None,
    fpr: Annotated[float, typer.Option(help="Share of normal rows that may be flagged.")] = 0.01,
    preset: Annotated[str, typer.Option(help="recommended or paper.")] = "recommended",
    decoder: Annotated[
        str | None, typer.Option(help="free or certified (scores with proven bounds).")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the rows.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Learn what normal rows look like, and write it to a model file.

    Example: diffint fit payments.csv -o payments.diffint --label fraud --id payment_id
    """
    started = time.perf_counter()
    console = Console(highlight=False, stderr=True)
    _check_output(output)
    settings = _settings(preset, decoder, epochs)
    detector = DiffInt(
        **settings,
        false_positive_rate=fpr,
        random_state=seed,
        device=device,
        n_jobs=jobs,
        verbose=1,
    )
    how = arguments.reading(kind, separator, decimal, encoding)
    with open_table(table, how) as file:
        reasons = dict.fromkeys(ignore or [], "--ignore")
        reasons.update({column: "--id" for column in [id_column] if column})
        reasons.update({column: "the label" for column in [label] if column})
        check_columns(file, list(ignore or []), "--ignore names")
        check_columns(file, [c for c in (id_column,) if c], "--id names")
        check_columns(file, [c for c in (label,) if c], "--label names")
        features = [column for column in file.columns if column not in reasons]
        if not features:
            raise InputError(f"{file.name} has no column left to learn from")
        values, anomalies = _read(file, features, label)

    import pandas

    frame = pandas.DataFrame(values, columns=features, copy=False)
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if label is not None:
            said.append(_measured(detector, frame, anomalies))
        detector.fit(frame, anomalies=anomalies)
        detector.id_column_ = id_column
        detector.save(output)
    for message in dict.fromkeys(str(w.message) for w in caught):
        console.print(f"Note: {message}.", soft_wrap=True)
    training = detector.model_.training
    lines = [
        f"Learned from {counted(training.n_rows, 'row')} of {counted(len(features), 'feature')} "
        f"in {time.perf_counter() - started:.1f} s ({training.device}).",
    ]
    if training.n_known_anomalies:
        lines.append(f"Left out {counted(training.n_known_anomalies, 'known anomaly')}.")
    if reasons:
        ignored = [f"{column!r} ({why})" for column, why in reasons.items()]
        lines.append(f"Not used: {listed(ignored)}.")
    lines += said
    threshold = -detector.offset_
    lines.append(
        f"A row is flagged above a score of {number(threshold)}: "
        f"{number(100 * fpr)} % of normal rows."
    )
    lines.append(f"Model file: {output}")
    for line in lines:
        typer.echo(line)


def _check_output(output: str) -> None:
    """Refuse a place that cannot be written to before the work, not after it."""
    path = Path(os.path.realpath(output))
    if path.is_dir():
        raise IsADirectoryError(f"{output!r} is a folder; give a file name to write to")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {str(path.parent)!r} does not exist; create it first")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise PermissionError(f"{output!r} cannot be written to; choose another place")


def _settings(preset: str, decoder: str | None, epochs: int | None) -> dict[str, Any]:
    if preset not in PRESETS:
        raise InputError(f"--preset {preset!r} is not one of {', '.join(PRESETS)}")
    settings = PRESETS[preset].to_dict()
    settings.update({"decoder": decoder} if decoder is not None else {})
    settings.update({"epochs": epochs} if epochs is not None else {})
    return settings


def _read(
    file: TableFile, features: list[str], label: str | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """All rows, and which of them are marked as anomalies."""
    parts, marks = [], []
    for first, batch in file.batches(features + ([label] if label else [])):
        parts.append(file.numbers(batch, features, first))
        mark = file.numbers(batch, [label], first)[:, 0] if label else np.zeros(batch.num_rows)
        wrong = np.flatnonzero((mark != 0) & (mark != 1))
        if len(wrong):
            raise InputError(
                f"{file.name}: the label {label!r} is "
                f"{'missing' if np.isnan(mark[wrong[0]]) else number(mark[wrong[0]])} "
                f"{file.where(first + int(wrong[0]))}; it must be 0 or 1 (or false, true)"
            )
        marks.append(mark == 1)
    return np.concatenate(parts), np.concatenate(marks)


def _measured(detector: DiffInt, frame: Any, anomalies: NDArray[np.bool_]) -> str:
    """AUROC and average precision on rows held out from a fit of its own."""
    from sklearn.base import clone
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.model_selection import train_test_split

    n_known = int(anomalies.sum())
    if n_known < 2 or (~anomalies).sum() < 20:
        return f"Too few rows to measure on: {counted(n_known, 'known anomaly')}."
    train, test = train_test_split(
        np.arange(len(frame)),
        test_size=_HELD_OUT,
        random_state=detector.random_state,
        stratify=anomalies,
    )
    normal = train[~anomalies[train]]
    scores = clone(detector).fit(frame.iloc[normal]).anomaly_score(frame.iloc[test])
    truth = anomalies[test]
    if truth.all() or not truth.any():
        return f"Too few rows to measure on: {counted(n_known, 'known anomaly')}."
    return (
        f"On {len(test):,} rows held out ({counted(int(truth.sum()), 'anomaly')}), by a fit "
        f"without them: AUROC {roc_auc_score(truth, scores):.3f}, average precision "
        f"{average_precision_score(truth, scores):.3f}."
    )
