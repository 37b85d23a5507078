"""Run a study: its tasks in parallel processes, then its page and figure."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..bench.figures import svg_bytes
from ..bench.progress import Event
from ..bench.worker import ONE_CORE, end_with_parent, installed_versions, processor_name
from ..core.errors import DiffIntError
from ..tables.atomic_write import atomic_write
from .page import About, study_page
from .registry import study_named
from .row_file import RowFile
from .study import Findings, Measured, Setup, Study, Task

QUICK_FOLDER = "quick"
_DRAW_EVERY = 0.5  # seconds, at most

Show = Callable[[Event], None]


class Outcome(NamedTuple):
    """What a run left: its findings, its page, and the tables that were missing."""

    findings: Findings
    page: Path
    missing: list[str]


def output_folder(out: Path, quick: bool) -> Path:
    """The folder of the files, made if needed; quick runs have one of their own."""
    folder = out / QUICK_FOLDER if quick else out
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_study(
    study: Study,
    setup: Setup,
    out: Path,
    jobs: int = 1,
    command: str = "",
    show: Show = lambda event: None,
) -> Outcome:
    """Measure every task that has no row yet, and write CSV, page and figure.

    out: the folder, in which a quick run has a folder of its own. jobs: processes, of one thread
    each. command: as it is named on the page. After an interrupt, a second run goes on.
    """
    tables, missing = study.found_tables(setup)
    tasks = study.tasks(setup, tables)
    folder = output_folder(out, setup.quick)
    with RowFile(folder / f"{study.name}.csv", study, setup.quick) as file:
        _measure_all(study, setup, tasks, file, jobs, show)
        file.put_in_order(tasks)
        rows = [row for task in tasks if (row := file.row_of(task)) is not None]
    findings = study.report(rows)
    about = About(command or f"diffint study {study.name}", setup.quick, missing)
    page = folder / f"{study.name}.md"
    atomic_write(folder / f"{study.name}.svg", svg_bytes(findings.figure))
    atomic_write(page, study_page(study, rows, findings, about).encode())
    return Outcome(findings, page, missing)


def _measure_all(
    study: Study, setup: Setup, tasks: list[Task], file: RowFile, jobs: int, show: Show
) -> None:
    """Measure the tasks without a row, and append each row as soon as it is there."""
    waiting = [task for task in tasks if file.row_of(task) is None]
    processor = _processor(setup.device)
    versions = installed_versions()
    taken: list[tuple[Task, float]] = []
    n_known, drawn = len(tasks) - len(waiting), -_DRAW_EVERY

    def progress(left: list[Task]) -> None:
        nonlocal drawn
        if time.monotonic() >= drawn + _DRAW_EVERY or not left:
            drawn = time.monotonic()
            running = [", ".join(map(str, task.values())) for task in left[:jobs]]
            seconds = _seconds_left(taken, left, jobs)
            show(Event(n_known + len(taken), len(tasks), running, seconds))

    def store(task: Task, measured: Measured, seconds: float) -> None:
        file.add(task, measured, seconds=seconds, processor=processor, versions=versions)
        taken.append((task, seconds))

    progress(waiting)
    if jobs == 1 or len(waiting) < 2:
        for number, task in enumerate(waiting):
            store(task, *measure_task(study.name, task, setup))
            progress(waiting[number + 1 :])
    else:
        with _workers(min(jobs, len(waiting))) as pool:
            futures: dict[Future[tuple[Measured, float]], Task] = {
                pool.submit(measure_task, study.name, task, setup): task for task in waiting
            }
            while futures:
                done, _ = wait(futures, timeout=_DRAW_EVERY, return_when=FIRST_COMPLETED)
                for future in done:
                    store(futures.pop(future), *future.result())
                progress(list(futures.values()))


def measure_task(name: str, task: Task, setup: Setup) -> tuple[Measured, float]:
    """Measure one task on one thread. → what it gave, and its seconds of processor time"""
    from threadpoolctl import threadpool_limits

    study = study_named(name)
    started = _processor_seconds()
    try:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")  # short trainings and small tables are meant
            measured = study.measure(task, setup)
    except (DiffIntError, MemoryError):
        raise
    except Exception as error:
        shown = ", ".join(f"{key} {value}" for key, value in task.items())
        raise RuntimeError(f"study {name}, {shown}: {type(error).__name__}: {error}") from error
    return measured, _processor_seconds() - started


def _processor_seconds() -> float:
    """Used so far by this process and its children that have ended."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@contextmanager
def _workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes of one thread each, which end with the block, in whatever way it ends."""
    before = {name: os.environ.get(name) for name in ONE_CORE}
    os.environ.update(ONE_CORE)  # read by the libraries of the processes when they load
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(count, context, initializer=end_with_parent)
    try:
        yield pool
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _seconds_left(taken: list[tuple[Task, float]], left: list[Task], jobs: int) -> float | None:
    """Estimated from the tasks that are done: those of the same table, else all of them."""
    if not taken:
        return None
    by_table: dict[object, list[float]] = {}
    for task, seconds in taken:
        by_table.setdefault(task.get("table"), []).append(seconds)
    usual = sum(seconds for _, seconds in taken) / len(taken)
    total = 0.0
    for task in left:
        known = by_table.get(task.get("table"))
        total += sum(known) / len(known) if known else usual
    return total / jobs


def _processor(device: str) -> str:
    """The name of what the tasks run on."""
    name = f"{processor_name()}, 1 core"
    if device != "cpu":
        with contextlib.suppress(ImportError, RuntimeError, AssertionError):
            import torch

            name += f"; {device}: {torch.cuda.get_device_name()}"
    return name
