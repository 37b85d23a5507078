"""``diffint fit``: fit a detector on a table and write a model file."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import pyarrow
import typer
from numpy.typing import NDArray

from ..core.checks import check_real, check_words
from ..core.config import MISSING_WORDS, PRESETS, SETTINGS, Config
from ..core.errors import InputError
from ..core.flag_rule import FlagRule
from ..core.formatting import counted, listed, number, shown_name
from ..core.scaling import SCALERS
from ..decide.thresholds import guarantee
from ..show.wording.learned import features_text, stored_rows
from ..tables.atomic_write import check_not_an_input, check_writable
from ..tables.files.names import split_names
from ..tables.files.reading import ReadingOptions, TableFile, open_table
from . import arguments
from .columns import Choice, check_columns, choose_features, unused_columns
from .labels import Label
from .output import say
from .training_columns import TrainingColumns

if TYPE_CHECKING:
    import pandas

    from ..estimator import DiffInt

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
            metavar="COL[=VALUE]",
            help="Column that is 1 (or VALUE) for known anomalies, which are left out of training "
            "and used to measure the accuracy.",
            rich_help_panel=arguments.COLUMNS,
        ),
    ] = None,
    id_column: arguments.Id = None,
    group: arguments.Group = None,
    segment: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column with segments, such as stores, each of which gets a threshold of its own.",
            rich_help_panel=arguments.COLUMNS,
        ),
    ] = None,
    columns: arguments.Columns = None,
    ignore: arguments.Ignore = None,
    categories: arguments.Categories = None,
    numeric_only: arguments.NumericOnly = False,
    fpr: Annotated[
        float, typer.Option(metavar="RATE", help=SETTINGS["false_positive_rate"].meaning)
    ] = SETTINGS["false_positive_rate"].default,
    confidence: Annotated[
        float | None, typer.Option(metavar="P", help=SETTINGS["confidence"].meaning)
    ] = SETTINGS["confidence"].default,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Defaults of the settings: recommended or paper.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = "recommended",
    epochs: arguments.Epochs = None,
    members: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Networks whose scores are averaged.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    units: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Interval units of each member.", rich_help_panel=arguments.TRAINING
        ),
    ] = None,
    kept_rows: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Training rows that each member stores; 0 for none.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    scaling: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"How features are scaled: {', '.join(SCALERS)}.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    decoder: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="free, certified (scores with proven lower bounds) or spectral (the paper's).",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="auto; holdout, for error rates that are proven in tables of any size; members.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    suspected_share: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Share of the rows to leave out because they may be anomalies, or auto.",
            rich_help_panel=arguments.TRAINING,
        ),
    ] = None,
    seed: arguments.Seed = 0,
    device: arguments.Device = SETTINGS["device"].default,
    jobs: arguments.Jobs = -1,
    kind: arguments.Kind = None,
    sheet: arguments.Sheet = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
    missing_words: arguments.MissingWords = None,
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
    settings = _settings(
        preset,
        calibration=calibration,
        decoder=decoder,
        epochs=epochs,
        kept_rows=kept_rows,
        n_members=members,
        n_units=units,
        scaling=scaling,
        suspected_share=None if suspected_share is None else suspected_share_of(suspected_share),
    )
    detector = DiffInt(
        **settings,
        false_positive_rate=fpr,
        confidence=confidence,
        random_state=seed,
        device=device,
        n_jobs=jobs,
        verbose=1,
    )
    if confidence is not None:
        check_real("--confidence", confidence, above=0.0, below=1.0)
    how = ReadingOptions(kind, separator, decimal, encoding, sheet)
    with open_table(table, how) as file:
        marked = None if label is None else Label(label, file)
        others = other_columns(file, marked, id_column, group, segment)
        chosen = choose_features(file, columns, ignore, categories, others)
        detector.missing_words = words_of(file, missing_words)
        rows = read_training_rows(
            *(file, chosen, marked, group, id_column, numeric_only, detector.missing_words),
            segment=segment,
        )
        unused = chosen.unused | dict.fromkeys(rows.not_numeric, "not numeric")
    frame = rows.frame
    accuracy = [] if label is None else [_accuracy(detector, rows)]
    detector.fit(frame, anomalies=rows.anomalies, groups=rows.groups, segments=rows.segments)
    detector.id_column_, detector.segment_column_ = id_column, segment
    detector.save(output)
    training = detector.model_.training
    lines = [
        f"Learned from {counted(training.n_rows, 'row')} of "
        f"{features_text(detector.model_)} in {time.perf_counter() - started:.1f} s "
        f"({training.device}).",
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
        lines.append(f"Not used: {unused_columns(unused)}.")
    lines += accuracy
    lines += _threshold_lines(detector.rule)
    stored = stored_rows(detector.model_)
    stored = f" (stores {stored}; --kept-rows 0 stores none)" if stored else ""
    lines.append(f"Model file: {output}{stored}")
    for line in lines:
        say(line)


def _threshold_lines(rule: FlagRule) -> list[str]:
    """When a row is flagged, and what is promised."""
    scores, names = rule.calibration, rule.calibration.segment_names
    if not scores.held_out:
        meaning = "the threshold is based on training rows and is optimistic"
    elif scores.reaches(rule.rate, rule.confidence):
        meaning = f"at most {number(100 * rule.rate)} % of normal rows are"
        meaning += f" ({guarantee(scores, rule.confidence)})"
    else:
        meaning = f"the highest score of {counted(scores.n_groups, scores.unit)} left out"
    if not names:
        return [f"A row is flagged above a score of {number(float(rule.threshold))}: {meaning}."]
    lines = [f"A row is flagged above the threshold of its segment: {meaning}."]
    counts = np.bincount(scores.segments, minlength=len(names))
    order = sorted(rule.own_segments, key=lambda code: -counts[code])
    shown = [
        f"{shown_name(names[code])} {number(rule.part(code).threshold(rule.rate, rule.confidence))}"
        for code in order[:_MOST_LISTED]
    ]
    shown += [f"{len(order) - _MOST_LISTED:,} more"] if len(order) > _MOST_LISTED else []
    if shown:
        lines.append(f"Thresholds of segments: {', '.join(shown)}.")
    return lines


def _settings(preset: str, **given: Any) -> dict[str, Any]:
    """The settings of a preset with those that are given; digits are whole numbers."""
    if preset not in PRESETS:
        raise InputError(f"--preset {preset!r} is not one of {', '.join(PRESETS)}")
    chosen = {name: value for name, value in given.items() if value is not None}
    for name, value in chosen.items():
        if isinstance(value, str) and value.isdecimal():
            chosen[name] = int(value)
    settings = PRESETS[preset].to_dict() | chosen
    try:
        Config(**settings)  # checks them before the table is read
    except InputError as error:
        name, _, problem = str(error).partition("=")
        raise InputError(f"--{name.removeprefix('n_').replace('_', '-')}={problem}") from None
    return settings


def other_columns(
    file: TableFile,
    label: Label | None,
    id_column: str | None,
    group: str | None,
    segment: str | None = None,
) -> dict[str, str]:
    """The columns that are not features, and what they are."""
    named = {"id": id_column, "group": group, "segment": segment}
    for other, column in named.items():
        if label is not None and label.column == column:
            raise InputError(f"{label.column!r} cannot be both the label and the {other} column")
    others = {}
    for other, column in named.items():
        option = f"--{other}"
        if column is not None:
            check_columns(file, [column], f"{option} names")
            others[column] = option
    return others if label is None else others | {label.column: "the label"}


def words_of(file: TableFile, given: Sequence[str] | None) -> Sequence[str]:
    """The words of --missing-words; by default the usual ones for a file without types."""
    if given is None:
        return file.missing_words(MISSING_WORDS)
    return check_words(
        "--missing-words", [word for text in given for word in split_names(text, ())]
    )


def suspected_share_of(text: str) -> float | str:
    """The value of --suspected-share; text that is no number is checked with the other settings."""
    try:
        return float(text)
    except ValueError:
        return text


class TrainingRows(NamedTuple):
    """frame: (rows, features); anomalies: (rows,); groups, segments: (rows,) labels, None without
    --group and --segment; not_numeric: columns that --numeric-only left out; ids: pyarrow array
    (rows,), or None; shown: other columns, likewise"""

    frame: pandas.DataFrame
    anomalies: NDArray[np.bool_]
    groups: Any
    not_numeric: list[str]
    ids: Any
    shown: dict[str, Any]
    segments: Any = None


def read_training_rows(
    file: TableFile,
    chosen: Choice,
    label: Label | None,
    group: str | None,
    id_column: str | None,
    numeric_only: bool,
    words: Sequence[str],
    shown: Sequence[str] = (),
    segment: str | None = None,
    numbers: Sequence[str] = (),
) -> TrainingRows:
    """All rows of a file, which of them are known anomalies, their groups, segments and ids.

    words: that stand for missing cells; shown: more columns to read, to show them; numbers: columns
    that a model has as numbers
    """
    others_shown: dict[str, list[Any]] = {name: [] for name in shown}
    columns = TrainingColumns(file, *chosen[:2], words, numbers)
    marks, groups, ids = [], [], []
    segments: list[NDArray[Any]] = []
    special = dict.fromkeys((None if label is None else label.column, group, segment, id_column))
    others = [column for column in special if column is not None]
    others += [column for column in shown if column not in others]
    for first, batch in file.batches([*chosen.features, *others]):
        columns.add(batch, first)
        none = np.zeros(batch.num_rows, dtype=bool)
        marks.append(none if label is None else label.marks(batch, first))
        if group is not None:
            groups.append(_row_labels(file, batch, "group", group, first))
        if segment is not None:
            segments.append(_row_labels(file, batch, "segment", segment, first))
        if id_column is not None:
            ids.append(file.ids(batch, id_column))
        for name, cells in others_shown.items():
            cells.append(file.kept_if_possible(batch, name))
    if label is not None:
        label.check()
    frame, not_numeric = columns.frame(numeric_only)
    if len(frame) < 2:
        raise InputError(f"{file.name} has {counted(len(frame), 'row')}; at least 2 are needed")
    grouped = np.concatenate(groups) if groups else None
    return TrainingRows(
        frame,
        np.concatenate(marks),
        grouped,
        not_numeric,
        pyarrow.concat_arrays(ids) if ids else None,
        {name: pyarrow.concat_arrays(cells) for name, cells in others_shown.items()},
        np.concatenate(segments) if segments else None,
    )


def _row_labels(file: TableFile, batch: Any, what: str, column: str, first: int) -> NDArray[Any]:
    """The labels of a batch's rows as text, so that all batches agree. → (rows,)

    what: group or segment
    """
    labels = file.ids(batch, column).cast("string").to_numpy(zero_copy_only=False)
    no_label = ("", "nan")  # a missing number becomes the text nan
    missing = np.flatnonzero([t is None or t.strip().lower() in no_label for t in labels])
    if len(missing):
        raise InputError(
            f"{file.name}: the {what} {column!r} is missing {file.where(first + int(missing[0]))}; "
            f"give every row a {what}"
        )
    return np.asarray([label.strip() for label in labels], dtype=object)


def _accuracy(detector: DiffInt, rows: TrainingRows) -> str:
    """A sentence with AUROC and average precision on rows held out from a separate fit."""
    from sklearn.base import clone
    from sklearn.metrics import average_precision_score, roc_auc_score
    from sklearn.model_selection import StratifiedGroupKFold, train_test_split

    from ..fit.row_groups import find_row_groups
    from ..tables.frames import training_matrix

    frame, anomalies, groups = rows.frame, rows.anomalies, rows.groups
    n_known = int(anomalies.sum())
    too_few = f"Too few rows to measure the accuracy: {counted(n_known, 'known anomaly')}."
    if n_known < 2 or (~anomalies).sum() < 20:
        return too_few
    seed = detector.random_state
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows gives the same ones
        if groups is None:  # copies of training rows would make the accuracy look too good
            found = find_row_groups(training_matrix(frame))
            groups = found.codes if found.n_copies else None
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
        # A column of text may have values in the other rows only.
        texts = frame.select_dtypes(object)
        frame = frame.drop(columns=texts.columns[texts.iloc[normal].isna().all()])
        fitted = clone(detector).fit(
            frame.iloc[normal], groups=None if groups is None else groups[normal]
        )
    scores = fitted.anomaly_score(frame.iloc[test])
    return (
        f"On {len(test):,} rows held out ({counted(int(truth.sum()), 'anomaly')}), with a fit "
        f"without them: AUROC {roc_auc_score(truth, scores):.3f}, average precision "
        f"{average_precision_score(truth, scores):.3f}."
    )
