"""``diffint fit``: fit a detector on a table and write a model file."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow
import typer
from numpy.typing import NDArray

from ..core.config import PRESETS, SETTINGS
from ..core.errors import InputError
from ..core.formatting import counted, listed, number
from ..show.wording.learned import stored_rows
from ..tables.atomic_write import check_not_an_input, check_writable
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from . import arguments
from .output import say
from .streaming import check_columns

if TYPE_CHECKING:
    from ..estimator import DiffInt

_RATE = SETTINGS["false_positive_rate"]
_MOST_LISTED = 10  # suspects
_HELD_OUT = 0.2  # share of the rows for measuring accuracy if anomalies are known


def fit(
    table: arguments.Table,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="MODEL", help="Model file to write.")
    ],
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with 1 (or true) for known anomalies. They are not used for training, but "
            "to measure AUROC and average precision on held-out rows.",
        ),
    ] = None,
    id_column: arguments.Id = None,
    group: arguments.Group = None,
    ignore: arguments.Ignore = None,
    fpr: Annotated[float, typer.Option(help=_RATE.meaning)] = _RATE.default,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Set of defaults: recommended or paper.")
    ] = "recommended",
    decoder: Annotated[
        str | None, typer.Option(metavar="NAME", help=SETTINGS["decoder"].meaning)
    ] = None,
    epochs: arguments.Epochs = None,
    kept_rows: Annotated[
        int | None, typer.Option(metavar="N", help=SETTINGS["kept_rows"].meaning + " 0 for none.")
    ] = None,
    suspected_share: Annotated[
        str | None, typer.Option(metavar="SHARE", help=SETTINGS["suspected_share"].meaning)
    ] = None,
    seed: arguments.Seed = 0,
    device: arguments.Device = arguments.DEVICE.default,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
) -> None:
    """Learn what normal rows look like, and write a model file.

    Example: diffint fit payments.csv -o payments.diffint --label fraud --id payment_id
    """
    from ..estimator import DiffInt

    started = time.perf_counter()
    if output == "-":
        raise InputError("a model cannot be written to standard output; give a file with -o")
    check_not_an_input(output, table)
    check_writable(output)  # before the work, to fail early
    settings = _settings(preset, decoder, epochs, kept_rows, suspected_share)
    detector = DiffInt(
        **settings,
        false_positive_rate=fpr,
        random_state=seed,
        device=device,
        n_jobs=jobs,
        verbose=1,
    )
    how = ReadingOptions(kind, separator, decimal, encoding)
    with open_table(table, how) as file:
        if label is not None and label in (id_column, group):
            other = "id" if label == id_column else "group"
            raise InputError(f"{label!r} cannot be both the label and the {other} column")
        features, unused = choose_features(
            file, ignore, {"--id": id_column, "--group": group, "--label": label}
        )
        rows = read_training_rows(file, features, label, group)

    import pandas

    frame = pandas.DataFrame(rows.values, columns=features, copy=False)
    accuracy = [] if label is None else [_accuracy(detector, frame, rows)]
    detector.fit(frame, anomalies=rows.anomalies, groups=rows.groups)
    detector.id_column_ = id_column
    detector.save(output)
    training = detector.model_.training
    lines = [
        f"Learned from {counted(training.n_rows, 'row')} of {counted(len(features), 'feature')} "
        f"in {time.perf_counter() - started:.1f} s ({training.device}).",
    ]
    if training.n_known_anomalies:
        lines.append(f"Left out {counted(training.n_known_anomalies, 'known anomaly')}.")
    if training.n_suspects:
        numbers = [f"{i + 1:,}" for i in np.flatnonzero(detector.suspects_)[:_MOST_LISTED]]
        more = training.n_suspects - len(numbers)
        numbers += [f"{more:,} more"] if more else []
        which = "row" if training.n_suspects == 1 else "rows"
        lines.append(
            f"Left out {counted(training.n_suspects, 'suspect')}: {which} {listed(numbers)}."
        )
    if unused:
        lines.append(not_used(unused))
    lines += accuracy
    threshold = -detector.offset_
    calibration = detector.model_.calibration
    if not calibration.held_out:
        meaning = "the threshold is based on training rows and is optimistic"
    elif calibration.reaches(fpr):
        meaning = f"{number(100 * fpr)} % of normal rows"
    else:
        left_out = counted(calibration.n_groups, calibration.unit)
        meaning = f"the highest score of {left_out} left out"
    lines.append(f"A row is flagged above a score of {number(threshold)}: {meaning}.")
    stored = stored_rows(detector.model_)
    stored = f" (stores {stored}; --kept-rows 0 stores none)" if stored else ""
    lines.append(f"Model file: {output}{stored}")
    for line in lines:
        say(line)


def choose_features(
    file: TableFile, ignore: list[str] | None, special: dict[str, str | None]
) -> tuple[list[str], dict[str, str]]:
    """The columns to learn from, and why each other one is not used.

    special: option → the column that it names, None if it names none.
    """
    check_columns(file, ignore or [], "--ignore names")
    unused = dict.fromkeys(ignore or [], "--ignore")
    for option, column in special.items():
        if column is not None:
            check_columns(file, [column], f"{option} names")
            unused[column] = "the label" if option == "--label" else option
    features = [column for column in file.columns if column not in unused]
    if not features:
        raise InputError(f"{file.name} has no column left to learn from")
    return features, unused


def not_used(unused: dict[str, str]) -> str:
    """A line about the columns that are not used, and why."""
    return f"Not used: {listed([f'{column!r} ({why})' for column, why in unused.items()])}."


def suspected_share_of(text: str) -> float | str:
    """The value of --suspected-share; text that is no number is checked with the other settings."""
    try:
        return float(text)
    except ValueError:
        return text


def _settings(
    preset: str,
    decoder: str | None,
    epochs: str | None,
    kept_rows: int | None,
    suspected_share: str | None,
) -> dict[str, Any]:
    if preset not in PRESETS:
        raise InputError(f"--preset {preset!r} is not one of {', '.join(PRESETS)}")
    settings = PRESETS[preset].to_dict()
    given = {"decoder": decoder, "kept_rows": kept_rows}
    settings.update({name: value for name, value in given.items() if value is not None})
    if epochs is not None:
        settings["epochs"] = arguments.whole_or_word(epochs)
    if suspected_share is not None:
        settings["suspected_share"] = suspected_share_of(suspected_share)
    return settings


class TrainingRows(NamedTuple):
    """values: (rows, features); anomalies: (rows,); groups: (rows,) labels, None without --group;
    ids: pyarrow array (rows,), None without a column of ids"""

    values: NDArray[np.float64]
    anomalies: NDArray[np.bool_]
    groups: Any
    ids: Any = None


def read_training_rows(
    file: TableFile,
    features: list[str],
    label: str | None,
    group: str | None,
    id_column: str | None = None,
) -> TrainingRows:
    """All rows of a file, which of them are known anomalies, their groups and ids."""
    parts, marks, groups, ids = [], [], [], []
    others = [column for column in dict.fromkeys((label, group, id_column)) if column is not None]
    for first, batch in file.batches([*features, *others]):
        parts.append(file.numbers(batch, features, first, can_ignore=True))
        none = np.zeros(batch.num_rows, dtype=bool)
        marks.append(file.anomalies(batch, label, first) if label else none)
        if group is not None:
            groups.append(_group_labels(file, batch, group, first))
        if id_column is not None:
            ids.append(file.ids(batch, id_column))
    values = np.concatenate(parts)
    if len(values) < 2:
        raise InputError(f"{file.name} has {counted(len(values), 'row')}; at least 2 are needed")
    return TrainingRows(
        values,
        np.concatenate(marks),
        np.concatenate(groups) if groups else None,
        pyarrow.concat_arrays(ids) if ids else None,
    )


def _group_labels(file: TableFile, batch: Any, group: str, first: int) -> NDArray[Any]:
    """The labels of a batch's rows as text, so that all batches agree. → (rows,)"""
    labels = file.ids(batch, group).cast("string").to_numpy(zero_copy_only=False)
    no_label = ("", "nan")  # a missing number becomes the text nan
    missing = np.flatnonzero([t is None or t.strip().lower() in no_label for t in labels])
    if len(missing):
        raise InputError(
            f"{file.name}: the group {group!r} is missing {file.where(first + int(missing[0]))}; "
            "give every row a group"
        )
    return np.asarray([label.strip() for label in labels], dtype=object)


def _accuracy(detector: DiffInt, frame: Any, rows: TrainingRows) -> str:
    """A sentence with AUROC and average precision on rows held out from a separate fit."""
    from sklearn.base import clone
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, train_test_split

    from ..fit.row_groups import find_row_groups

    anomalies, groups = rows.anomalies, rows.groups
    n_known = int(anomalies.sum())
    too_few = f"Too few rows to measure the accuracy: {counted(n_known, 'known anomaly')}."
    if n_known < 2 or (~anomalies).sum() < 20:
        return too_few
    if groups is None:  # copies of training rows would make the accuracy look better than it is
        found = find_row_groups(rows.values)
        groups = found.codes if found.n_copies else None
    seed = detector.random_state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same ones
        if groups is None:
            train, test = train_test_split(
                np.arange(len(frame)), test_size=_HELD_OUT, random_state=seed, stratify=anomalies
            )
        else:
            folds = StratifiedGroupKFold(round(1 / _HELD_OUT), shuffle=True, random_state=seed)
            if len(np.unique(groups)) < folds.get_n_splits():
                return "Too few groups to measure the accuracy."
            train, test = next(folds.split(frame, anomalies, groups))
        truth, normal = anomalies[test], train[~anomalies[train]]
        if truth.all() or not truth.any():
            return too_few
        fitted = clone(detector).fit(
            frame.iloc[normal], groups=None if groups is None else groups[normal]
        )
    scores = fitted.anomaly_score(frame.iloc[test])
    return (
        f"On {len(test):,} rows held out ({counted(int(truth.sum()), 'anomaly')}), with a fit "
        f"without them: AUROC {roc_auc_score(truth, scores):.3f}, average precision "
        f"{average_precision_score(truth, scores):.3f}."
    )
