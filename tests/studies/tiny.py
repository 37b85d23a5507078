"""A study whose tasks take no time; the environment can tell it to fail or to wait."""

from __future__ import annotations

import os
import time

from diffint.show.plots.drawing import new_figure
from diffint.studies.page import mean_of, present
from diffint.studies.study import Claim, Findings, Measured, Row, Setup, Study, Task, verdict

FAILS, WAITS = "DIFFINT_TINY_FAILS", "DIFFINT_TINY_WAITS"


def tasks(setup: Setup, tables: list[str]) -> list[Task]:
    return [
        {"table": name, "setting": setting, "seed": seed}
        for name in tables
        for setting in (0.5, 1_000_000)
        for seed in setup.seed_range(3)
    ]


def measure(task: Task, setup: Setup) -> Measured:
    if os.environ.get(FAILS) == task["table"]:
        raise KeyError("something that no user can understand")
    if os.environ.get(WAITS) == task["table"]:
        while True:
            time.sleep(1)
    with open(os.environ.get("DIFFINT_TINY_LOG", os.devnull), "a") as log:
        log.write("measured\n")
    value = setup.table(str(task["table"])).n_rows / 7
    return {"value": value, "curve": [1 / 3, 2.0], "none": None}


def report(rows: list[Row]) -> Findings:
    mean = mean_of(rows, "value")
    claim = Claim("it is 8.57", "8.57", f"{mean:.2f}", verdict(mean > 8), f"it is {mean:.2f}")
    return Findings([claim], f"{len(present(rows, 'table'))} tables", new_figure())


STUDY = Study(
    name="tiny",
    paper="tab:tiny",
    question="Does it run?",
    cost="no fits",
    keys=("table", "setting", "seed"),
    measures=("value", "curve", "none"),
    tasks=tasks,
    measure=measure,
    report=report,
    tables=("14_glass", "45_wine", "43_WDBC"),
    quick_tables=("14_glass", "43_WDBC"),
)
