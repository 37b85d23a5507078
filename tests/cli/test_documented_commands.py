"""The commands in the README, the guide and the help texts run as they are written."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from diffint.cli import app

from .conftest import make_payments

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / name for name in ("README.md", "docs/command.md", "docs/tuning.md", "examples/README.md")
]


def commands() -> list[str]:
    """Each documented command once, in an order in which files exist when they are needed."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    ]
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("diffint ")]
    for command in app.app.registered_commands:
        if command.callback.__name__ != "demo":  # has a test of its own
            lines += re.findall(r"Example: (diffint .*)", command.callback.__doc__)
    return sorted(dict.fromkeys(lines), key=lambda line: not line.startswith("diffint fit "))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documented")
    payments = make_payments(200).rename(columns={"payment": "payment_id"})
    payments.to_csv(folder / "payments.csv", index=False)
    payments.to_csv(folder / "new.csv", index=False)
    payments.to_parquet(folder / "new.parquet")
    orders = payments.rename(columns={"payment_id": "order"}).drop(columns="fraud")
    orders["city"] = np.resize(["Lyon", "Oslo", "Rome"], len(orders))
    orders["status"] = np.where(payments["fraud"], "fraud", "ok")
    orders.to_csv(folder / "orders.csv", index=False)
    (folder / "discounts").mkdir()
    discounts = orders.assign(discount=np.resize(["5 %", "10 %"], len(orders)))
    discounts.to_csv(folder / "discounts" / "orders.csv", index=False)
    with pd.ExcelWriter(folder / "orders.xlsx") as book:
        for sheet in ("April", "May"):
            orders.to_excel(book, sheet_name=sheet, index=False)
    return folder


def test_the_guide_shows_the_message_about_unusable_columns(run, folder, monkeypatch):
    monkeypatch.chdir(folder / "discounts")
    done = run("fit", "orders.csv", "-o", "new.diffint", "--id", "order")
    assert done.code == 2
    guide = (ROOT / "docs" / "command.md").read_text()
    assert " ".join(done.err.split()) in " ".join(guide.split())


def test_there_are_commands():
    assert len(commands()) >= 6


@pytest.mark.parametrize("line", commands())
def test_the_command_runs(run, folder, monkeypatch, line):
    monkeypatch.chdir(folder)
    done = run(*shlex.split(line)[1:])
    assert done.code == 0, done.err
