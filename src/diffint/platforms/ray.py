"""Detectors on a Ray cluster: one table fitted by many workers, many tables, and new rows scored.

Results are those of the library on one machine, to the bit.
"""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from ..core.checks import check_whole
from ..core.config import RUN_SETTINGS
from ..core.errors import DiffIntError, InputError, InputTypeError, InputWarning, warn
from ..core.formatting import counted, listed
from ..estimator import DiffInt
from ..tables.files.names import check_has_columns
from ..tables.files.reading import BATCH_ROWS
from ..tables.frames import as_pandas
from .model_bytes import detector_of, model_bytes
from .score_frame import N_REASONS, FrameScorer, ScoringOptions

try:
    import ray
    import ray.data
    from ray.exceptions import UserCodeException

    from ..engine.ray.tasks import Options, check_workers, run_tasks, threads_of
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"diffint.ray needs the package {error.name or 'ray'}; install it with: pip install "
        "'diffint-ad[ray]'",
        name=error.name,
    ) from None

_MOST_NAMED = 5  # tables that one warning names

# --- Scoring -------------------------------------------------------------------------------------


class RowsError(InputError, UserCodeException):  # type: ignore[misc]
    """Rows that a worker cannot score; the message is the one that the library gives."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message  # Ray adds advice about retries to the arguments

    def __str__(self) -> str:
        return self.message

    def __init_subclass__(cls, **others: Any) -> None:
        # Ray raises a subclass that it makes, whose text would be the traceback of the worker.
        super().__init_subclass__(**others)
        cls.__str__ = RowsError.__str__  # type: ignore[method-assign]


def score(
    model: DiffInt | str | os.PathLike[str],
    dataset: ray.data.Dataset,
    *,
    reasons: bool = True,
    n_reasons: int = N_REASONS,
    false_positive_rate: float | None = None,
    keep: Sequence[str] | None = None,
    actors: int | tuple[int, int] | None = None,
    ray_options: Options | None = None,
) -> ray.data.Dataset:
    """Score the rows of a Ray dataset on a pool of actors.

    The model is stored once in Ray's object store, and prepared once by each actor.

    Parameters
    ----------
    model : DiffInt or path
        A fitted detector, or a file written by `DiffInt.save`.
    dataset : ray.data.Dataset
        Columns are found by name; others than the model's are only kept.
    reasons : bool, default=True
        Whether flagged rows get a line of reasons.
    n_reasons : int, default=3
        Most reasons of a row.
    false_positive_rate : float, default=None
        Instead of the model's.
    keep : list of names, default=None
        Columns that the output has too; None for all. Other columns are not read if they need not
        be.
    actors : int or (least, most), default=None
        Number of actors; None for as many as have work and find a CPU.
    ray_options : mapping, default=None
        Options of Ray for the actors, such as ``num_cpus`` (1, one thread for each),
        ``resources`` or ``runtime_env``.

    Returns
    -------
    scored : ray.data.Dataset
        The kept columns, score, p_value, flagged and reasons (null for rows that are not flagged).
        Lazy, as everything in Ray Data: rows are scored when they are used. Cells that cannot be
        scored are found then, and raise a `RowsError`.
    """
    if not isinstance(dataset, ray.data.Dataset):
        raise InputTypeError(
            f"the rows are a {type(dataset).__name__}; pass a Ray dataset, such as "
            "ray.data.from_pandas(frame)"
        )
    content = model_bytes(model)
    options = ScoringOptions(reasons, n_reasons, false_positive_rate, keep)
    scorer = FrameScorer(detector_of(content), options)
    schema = dataset.schema(fetch_if_missing=False)
    if schema is not None:  # else a worker finds out, as nothing is computed here
        scorer.check_columns(schema.names)
        if keep is not None:
            used = {*scorer.needed, *keep}
            dataset = dataset.select_columns([name for name in schema.names if name in used])
    scorer.warn()
    check_workers(ray_options)
    return dataset.map_batches(
        _Scorer,
        fn_constructor_args=[ray.put(content), options, threads_of(ray_options)],
        batch_format="pyarrow",
        batch_size=None,  # the blocks of the dataset
        compute=_pool(actors),
        udf_modifying_row_count=False,
        **{"num_cpus": 1, **(ray_options or {})},
    )


def _pool(actors: int | tuple[int, int] | None) -> ray.data.ActorPoolStrategy:
    if actors is None:
        return ray.data.ActorPoolStrategy(min_size=1)
    if isinstance(actors, tuple) and len(actors) == 2:
        least, most = (check_whole("actors", number) for number in actors)
        if least > most:
            raise InputError(f"actors={actors!r}: the first number is larger than the second")
        return ray.data.ActorPoolStrategy(min_size=least, max_size=most)
    return ray.data.ActorPoolStrategy(size=check_whole("actors", actors, "None"))


class _Scorer:
    """What an actor does."""

    def __init__(self, model: ray.ObjectRef, options: ScoringOptions, n_jobs: int) -> None:
        self._model, self._options, self._n_jobs = model, options, n_jobs
        self._scorer: FrameScorer | None = None

    def __call__(self, rows: Any) -> Iterator[Any]:
        """rows: pyarrow table → tables of some of them in order, with the added columns.

        A generator, since Ray hides errors of other functions behind one of its own. For the same
        reason the model is not read in `__init__`.
        """
        try:
            if self._scorer is None:
                detector = detector_of(ray.get(self._model), self._n_jobs)
                self._scorer = FrameScorer(detector, self._options)
            # Blocks may have millions of rows, or none.
            for start in range(0, max(rows.num_rows, 1), BATCH_ROWS):
                yield self._scorer(rows.slice(start, BATCH_ROWS))
        except DiffIntError as error:
            raise RowsError(str(error)) from None


# --- Fitting -------------------------------------------------------------------------------------


def fit(
    table: Any, *, anomalies: Any = None, groups: Any = None, segments: Any = None, **settings: Any
) -> DiffInt:
    """Fit a detector on one table; its members are trained on the workers of the cluster.

    The same as ``DiffInt(**settings, device="ray").fit(table, …)``. The table is in the memory of
    this process, and each worker gets the rows of its member.

    Parameters
    ----------
    table : table of shape (rows, features), or ray.data.Dataset
        The rows of a dataset are collected in this process.
    anomalies, groups, segments
        As in `DiffInt.fit`.
    **settings
        Parameters of `DiffInt`, such as ``random_state=0``.
    """
    if "device" in settings:
        raise InputError("device is given, but the members are trained by Ray; leave it out")
    detector = DiffInt(**settings, device="ray")
    return detector.fit(_collected(table), anomalies=anomalies, groups=groups, segments=segments)


class FittedMany(Mapping[Hashable, DiffInt]):
    """Fitted detectors by the name of their table, without those that could not be fitted.

    failures: what is wrong with each of the other tables, by name.
    """

    def __init__(
        self, fitted: Mapping[Hashable, DiffInt], failures: Mapping[Hashable, Exception]
    ) -> None:
        self._fitted, self.failures = dict(fitted), dict(failures)

    def __getitem__(self, name: Hashable) -> DiffInt:
        if name in self.failures:
            raise KeyError(f"{name!r} could not be fitted: {_brief(self.failures[name])}")
        return self._fitted[name]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._fitted)

    def __len__(self) -> int:
        return len(self._fitted)

    def __repr__(self) -> str:
        failed = f", {len(self.failures):,} failed" if self.failures else ""
        return f"<FittedMany: {counted(len(self), 'detector')}{failed}>"


def fit_many(
    tables: Any, *, by: str | None = None, ray_options: Options | None = None, **settings: Any
) -> FittedMany:
    """Fit a detector for each of many tables: one for each store, machine or customer.

    Each table is fitted by one worker, with the result of ``DiffInt(**settings).fit(table)``. A
    table that cannot be fitted does not stop the others; a warning names it.

    Parameters
    ----------
    tables : mapping from names to tables, or table with the column `by`
        A table, or a function without arguments that a worker calls to read it. The rows of a Ray
        dataset are collected in this process.
    by : str, default=None
        For one table: the column with the store, machine or customer of each row. It is no feature.
    ray_options : mapping, default=None
        Options of Ray for each fit, such as ``num_cpus`` (1, one thread for each),
        ``resources`` or ``runtime_env``.
    **settings
        Parameters of `DiffInt`. A `random_state` must be an integer or None.

    Returns
    -------
    fitted : FittedMany
        A mapping from names to detectors, in the order of the tables; ``failures`` has the errors
        of the others by name.
    """
    _check_settings(settings)
    named = _named_tables(tables, by)
    check_workers(ray_options)
    names = list(named)
    in_worker = {**settings, "n_jobs": threads_of(ray_options)}
    arguments = ((table, in_worker) for table in named.values())
    results: list[Any] = [None] * len(names)
    for place, result in run_tasks(_fit_one, arguments, ray_options):
        results[place] = result
    fitted, failures = dict[Hashable, DiffInt](), dict[Hashable, Exception]()
    given: dict[tuple[type[Warning], str], list[Hashable]] = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, Exception):
            failures[name] = result
            continue
        detector, told = pickle.loads(result)
        detector.n_jobs = settings.get("n_jobs", RUN_SETTINGS["n_jobs"].default)
        fitted[name] = detector
        for warning in told:
            given.setdefault(warning, []).append(name)
    for (category, text), where in given.items():
        with_names = f"{_some(where)}: {text}"
        warn(with_names, category)
    if failures:
        first = next(iter(failures))
        warn(
            f"{len(failures):,} of {counted(len(names), 'table')} could not be fitted "
            f"({_some(list(failures))}); {first!r}: {_brief(failures[first])}",
            InputWarning,
        )
    return FittedMany(fitted, failures)


def _check_settings(settings: Mapping[str, Any]) -> None:
    """Raise an error for settings that no table could be fitted with."""
    DiffInt(**settings).config  # noqa: B018
    seed = settings.get("random_state")
    if hasattr(seed, "bit_generator") or hasattr(seed, "randint"):
        raise InputError(
            "random_state is a generator, which many fits cannot share; pass an integer or None"
        )
    if settings.get("device") == "ray":
        raise InputError("device='ray' cannot be used: each table is fitted by one worker")


def _named_tables(tables: Any, by: str | None) -> Mapping[Hashable, Any]:
    """The tables by name."""
    if by is None:
        if isinstance(tables, Mapping):
            return tables
        raise InputTypeError(
            f"the tables are a {type(tables).__name__}; pass a mapping from names to tables, or a "
            "table and the name of its column 'by'"
        )
    if not isinstance(by, str):
        raise InputTypeError(f"by={by!r} is not text; pass the name of a column")
    frame = as_pandas(_collected(tables))
    if frame is None:
        raise InputTypeError(f"by={by!r} needs a table with column names; pass a data frame")
    check_has_columns("the table", [str(name) for name in frame.columns], [by], "by names")
    missing = frame[by].isna().to_numpy()
    if missing.any():
        raise InputError(
            f"column {by!r}, which names the tables, has {counted(int(missing.sum()), 'row')} "
            f"without a value (first at row {int(missing.argmax())}); fill or drop them"
        )
    parts = frame.groupby(by, sort=False, observed=True)
    return {name: part.drop(columns=by) for name, part in parts}


def _collected(table: Any) -> Any:
    """The rows of a Ray dataset as a pandas frame; any other table itself."""
    return table.to_pandas() if isinstance(table, ray.data.Dataset) else table


def _fit_one(table: Any, settings: Mapping[str, Any]) -> bytes:
    """What a worker does: the detector of a table, and the warnings of its fit.

    As bytes, since arrays would stay in Ray's object store, and in use as long as the detector.
    """
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if callable(table):
            try:
                table = table()
            except Exception as error:
                raise InputError(
                    f"the table cannot be read: {type(error).__name__}: {error}"
                ) from None
        detector = DiffInt(**settings).fit(_collected(table))
    told_once = dict.fromkeys((w.category, str(w.message)) for w in told)
    return pickle.dumps((detector, list(told_once)))


def _brief(error: Exception) -> str:
    """The message of an error; of the traceback of a worker, its end."""
    return str(error).strip().rpartition("\n")[2] or repr(error)


def _some(names: Sequence[Hashable]) -> str:
    """The names of tables, at most a few."""
    shown = [repr(name) for name in names[:_MOST_NAMED]]
    more = len(names) - _MOST_NAMED
    return listed([*shown, *([f"{more:,} more"] if more > 0 else [])])
