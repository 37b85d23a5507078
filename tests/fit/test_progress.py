"""Progress of compiling and training on standard error."""

import re
import sys

from diffint import DiffInt
from diffint.fit.progress import compiling_progress, training_progress

from ..conftest import QUICK


def test_lines_without_a_terminal(capsys):
    with compiling_progress(1) as (started, done, waiting):
        started(3)
        done(0.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "diffint: compiling, once on this machine …"
    assert re.fullmatch(r"diffint: ready after \d+ s", lines[1])
    with compiling_progress(1) as (_, _, waiting):
        waiting()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "diffint: another process is compiling; waiting for it …"
    assert re.fullmatch(r"diffint: ready after \d+ s", lines[1])
    with compiling_progress(1):
        pass  # nothing to compile
    with compiling_progress(0) as (started, done, waiting):
        waiting()
        started(3)
        done(1.0)
    assert capsys.readouterr().err == ""


def test_the_bar_counts_steps(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    with compiling_progress(1) as (started, done, waiting):
        waiting()
        started(2)
        done(0.75)
    output = capsys.readouterr().err
    assert "another process is compiling" in output
    assert "compiling, once on this machine" in output
    assert "step 1/2" in output


def test_a_fit_without_a_terminal_prints_two_lines(rows, capsys):
    marks = [True, *[False] * 299]
    DiffInt(**QUICK, verbose=1).fit(rows, anomalies=marks)
    captured = capsys.readouterr()
    lines = captured.err.splitlines()  # with others between them where the code is compiled first
    assert lines[0] == "diffint: fitting 299 rows of 5 features"
    assert re.fullmatch(r"diffint: fitted in \d+\.\d s", lines[-1])
    assert sum("fit" in line for line in lines) == 2
    DiffInt(**QUICK).fit(rows)
    assert captured.out == capsys.readouterr().err == ""


def test_a_fit_on_a_terminal_prints_no_lines(rows, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    DiffInt(**QUICK, verbose=1).fit(rows)
    assert "diffint:" not in capsys.readouterr().err


def test_the_bar_of_a_training_counts_epochs_of_all_members(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # only the last state is written
    monkeypatch.setenv("COLUMNS", "100")

    def shown(n_steps):
        with training_progress(epochs=5, n_members=3, verbose=1) as advance:
            for step in range(n_steps):
                advance(step % 3, 0.25)
        return capsys.readouterr().err

    assert re.search("training .* epoch 0/5 loss –", shown(0))
    assert "epoch 0/5 loss 0.2500" in shown(2)
    assert "epoch 2/5 loss 0.2500" in shown(6)
    assert "epoch 2/5" in shown(8)
    assert re.search("epoch 5/5 loss 0.2500 0:00:00", shown(15))
    with training_progress(epochs=5, n_members=3, verbose=0) as advance:
        assert advance is None
