"""Fixtures: the command run in this process, and tables to run it on."""

from __future__ import annotations

import io
import math
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow
import pytest

from diffint.cli import streaming
from diffint.cli.app import main


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _no_work_is_long(monkeypatch):
    """On a slow machine a line about long work would be among the lines that are tested."""
    monkeypatch.setattr(streaming, "_LONG", math.inf)


@pytest.fixture
def run(capfd, monkeypatch):
    """run("score", "m", "t", stdin=b"…") → exit code, standard output, standard error"""

    def run_command(*arguments: object, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "argv", ["diffint", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(stdin))))
        capfd.readouterr()
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = int(stop.code or 0)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return Done(code, out, err)

    return run_command


def make_payments(n_rows: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 60, n_rows).round(1)
    frame = pd.DataFrame(
        {
            "payment": [f"{i:06d}" for i in range(n_rows)],
            "age": age,
            "amount": (50 * age + rng.normal(0, 40, n_rows)).round(2),
            "visits": rng.poisson(3, n_rows),
            "fraud": 0,
        }
    )
    fraud = rng.choice(n_rows, n_rows // 20, replace=False)
    frame.loc[fraud, "amount"] = (frame.loc[fraud, "amount"] * 2.5).round(2)
    frame.loc[fraud, "fraud"] = 1
    return frame


@pytest.fixture(scope="session")
def payments(tmp_path_factory) -> Path:
    """A folder with the same table in every format, and a model of it."""
    folder = tmp_path_factory.mktemp("payments")
    frame = make_payments()
    frame.to_csv(folder / "t.csv", index=False)
    make_payments(seed=1).to_csv(folder / "new.csv", index=False)
    frame.to_csv(folder / "t.csv.gz", index=False)
    with pyarrow.output_stream(folder / "t.tsv.zst", compression="zstd") as file:
        file.write(frame.to_csv(index=False, sep="\t").encode())
    frame.to_parquet(folder / "t.parquet")
    frame.to_feather(folder / "t.feather")
    frame[frame.columns[::-1]].to_csv(folder / "reversed.csv", index=False)
    semicolons = frame.to_csv(index=False, sep=";", decimal=",")
    (folder / "german.csv").write_text(semicolons)
    from diffint import DiffInt

    detector = DiffInt(random_state=0, epochs=20, n_units=40, false_positive_rate=0.02)
    detector.fit(frame[["age", "amount", "visits"]], anomalies=frame["fraud"])
    detector.id_column_ = "payment"
    detector.save(folder / "m.diffint")
    return folder
