"""What a study is: its question, its tasks, how one is measured, and what all of them show."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from matplotlib.figure import Figure

from ..bench.protocol import Trial, make_trial
from ..core.config import PAPER, paper_batch_size
from ..core.errors import InputError
from ..estimator import DiffInt
from ..tables.datasets import LabelledTable, adbench_files, read_adbench

# One independent piece of work, such as {"table": "14_glass", "temperature": 0.1, "seed": 0}.
Task: TypeAlias = dict[str, str | int | float]
# What a task gave: numbers, text or lists of numbers by name; None if there is none.
Measured: TypeAlias = dict[str, Any]
# A task with what it gave.
Row: TypeAlias = dict[str, Any]
# Vacuous: it could not have come out otherwise.
Verdict = Literal["holds", "holds in part", "does not hold", "undecided", "vacuous"]
# A quick run has this share of the paper's epochs, at a learning rate larger by as much.
_QUICK_SHARE = 0.1


@dataclass(frozen=True)
class Setup:
    """How a study is run; sent to the processes that measure.

    data: folder of ADBench tables; None if there is none. quick: whether a rough version is
    enough. seeds: number of seeds; None leaves it to the study. device: where detectors train.
    """

    data: Path | None = None
    quick: bool = False
    seeds: int | None = None
    device: str = "cpu"

    def seed_range(self, usual: int, quick: int = 1) -> range:
        """The seeds, if a study usually has `usual` of them, and `quick` in a quick run."""
        return range(self.seeds or (quick if self.quick else usual))

    def table(self, name: str) -> LabelledTable:
        """The table of this name, such as '14_glass'."""
        if self.data is None:
            raise InputError("this study needs tables; give their folder with --data")
        return read_adbench(adbench_files(self.data)[name])

    def trial(self, name: str, seed: int) -> Trial:
        """The benchmark's split of a table; the training rows are inliers."""
        return make_trial(self.table(name), seed, "inliers")

    def paper_detector(self, n_rows: int, seed: int, **changes: Any) -> DiffInt:
        """A detector with the paper's configuration, on one core, not fitted.

        n_rows: of the whole table, on which the paper's batch size depends. changes: settings that
        differ. A quick run has a tenth of the epochs, at ten times the learning rate.
        """
        settings: dict[str, Any] = {
            "epochs": PAPER.epochs,
            "learning_rate": PAPER.learning_rate,
            "batch_size": paper_batch_size(n_rows),
            **changes,
        }
        if self.quick:
            settings["epochs"] = max(1, round(_QUICK_SHARE * settings["epochs"]))
            settings["learning_rate"] /= _QUICK_SHARE
        return DiffInt.paper(**settings, random_state=seed, n_jobs=1, device=self.device)


class Claim(NamedTuple):
    """Something that the paper says, with its number beside ours.

    statement: what the paper says; paper, ours: the numbers; because: what in our numbers makes it
    hold or not, as the rest of a sentence that begins with the verdict.
    """

    statement: str
    paper: str
    ours: str
    verdict: Verdict
    because: str


def verdict(fully: bool, partly: bool = False) -> Verdict:
    """The verdict on a claim that holds fully, or partly, or not."""
    return "holds" if fully else "holds in part" if partly else "does not hold"


def verdict_on_gain(gain: float, error: float, paper: float | None = None) -> Verdict:
    """The verdict on a gain that the paper claims, from our mean and its standard error.

    paper: its gain, above 0; None if it gives no number. It holds if our gain is clearly above 0,
    which is by two standard errors, and not clearly another than the paper's; in part if it is
    another. It is undecided if our gain is clearly neither another than 0 nor than the paper's, or
    has no error because it is of one table.
    """
    if math.isnan(error):
        return "undecided"
    possible = gain >= -2 * error if paper is None else abs(gain - paper) <= 2 * error
    if gain > 2 * error:
        return "holds" if possible else "holds in part"
    return "undecided" if possible else "does not hold"


class Findings(NamedTuple):
    """What all rows show: the claims, tables and remarks as Markdown, and a figure."""

    claims: list[Claim]
    text: str
    figure: Figure


@dataclass(frozen=True)
class Study:
    """One study.

    name: of the command and of the files. paper: the label of the paper's table, figure or
    statement. question: one sentence. cost: how many fits of about how many seconds, on one core.
    keys: names of what a task consists of. measures: names of what measuring gives.
    tasks: the independent tasks, from the setup and the tables that are there.
    measure: one task; runs in a process of its own, with one thread.
    report: all rows, in the order of the tasks.
    tables: ADBench tables that it needs; quick_tables: those of a quick run.
    """

    name: str
    paper: str
    question: str
    cost: str
    keys: tuple[str, ...]
    measures: tuple[str, ...]
    tasks: Callable[[Setup, list[str]], list[Task]]
    measure: Callable[[Task, Setup], Measured]
    report: Callable[[list[Row]], Findings]
    tables: tuple[str, ...] = ()
    quick_tables: tuple[str, ...] = field(default=())

    def found_tables(self, setup: Setup) -> tuple[list[str], list[str]]:
        """The tables of this run that are in the folder, and those that are missing.

        Raises an error if the study needs tables and none is there, or one cannot be read.
        """
        wanted = self.quick_tables if setup.quick else self.tables
        if not wanted:
            return [], []
        if setup.data is None:
            raise InputError(
                f"the study {self.name} needs ADBench tables; give their folder with --data"
            )
        files = adbench_files(setup.data)
        found = [name for name in wanted if name in files]
        if not found:
            raise InputError(
                f"none of the tables of the study {self.name} ({', '.join(wanted)}) is in "
                f"{str(setup.data)!r}"
            )
        for name in found:
            read_adbench(files[name])  # an invalid table raises an error before any task
        return found, [name for name in wanted if name not in files]
