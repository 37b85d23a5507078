"""Progress of compiling and training on standard error."""

import sys

from diffint.fit.progress import compiling_progress


def test_lines_without_a_terminal(capsys):
    with compiling_progress(1) as (started, done, waiting):
        started(3)
        done(0.5)
    assert capsys.readouterr().err.startswith("compiling, once on this machine …\ncompiled in 0 s")
    with compiling_progress(1) as (_, _, waiting):
        waiting()
    output = capsys.readouterr().err
    assert output.startswith("another process is compiling; waiting for it …\ncompiled in 0 s")
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
