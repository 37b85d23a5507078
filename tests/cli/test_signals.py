"""Handling of stop signals."""

import os
import signal
import subprocess
import sys
import time

import pytest

from diffint import DiffInt
from diffint.cli import signals
from diffint.cli.signals import (
    StopOnSignal,
    Stopped,
    delaying_stop_signals,
    handling_stop_signals,
)

from ..waiting import LIMIT


@pytest.fixture(autouse=True)
def _no_clean_up_takes_too_long(monkeypatch):
    """On a busy machine it might, and the tests would end."""
    monkeypatch.setattr(signals, "_PATIENCE", LIMIT)
    monkeypatch.setattr(signals, "_LONGEST_END", LIMIT)


def test_an_interrupt_is_delayed_to_the_end_of_the_block():
    done = []

    def work():
        with delaying_stop_signals():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_are_restored_and_ignored_signals_stay_ignored():
    received = []
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handling_stop_signals(lambda number, _frame: received.append(number)):
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, earlier)
    assert received == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_only_the_first_signal_interrupts():
    """A second Ctrl-C must not interrupt the clean-up."""
    stop = StopOnSignal(last_act=lambda: None)
    with handling_stop_signals(stop):
        try:
            stop.start()
            with pytest.raises(Stopped) as stopped:
                signal.raise_signal(signal.SIGTERM)
            assert stopped.value.exit_code == 143
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            stop.finish()
        os.kill(os.getpid(), signal.SIGINT)
    assert stop.received == signal.SIGTERM


def test_a_clean_up_that_takes_too_long_is_ended(monkeypatch):
    acts = []
    monkeypatch.setattr(signals, "_PATIENCE", -1.0)
    monkeypatch.setattr(os, "_exit", acts.append)
    stop = StopOnSignal(last_act=lambda: acts.append("removed files"))
    with handling_stop_signals(stop):
        stop.start()
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        stop.finish()
    assert acts == ["removed files", 130]


def test_a_signal_before_the_start_is_not_lost():
    stop = StopOnSignal(last_act=lambda: None)
    with handling_stop_signals(stop):
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(Stopped):
            stop.start()
        stop.finish()


def test_a_signal_during_a_destructor_is_not_lost():
    """Python ignores exceptions there."""

    class Dying:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)

    def drop_and_wait():
        Dying()
        time.sleep(LIMIT)

    stop = StopOnSignal(last_act=lambda: None)
    with handling_stop_signals(stop):
        stop.start()
        try:
            with pytest.raises(Stopped):
                drop_and_wait()
        finally:
            stop.finish()


INTERRUPTED_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})

sys.meta_path.insert(0, Finder())
sys.argv = ["diffint", "info", "missing"]
from diffint.cli import main
main()
"""


@pytest.mark.parametrize(
    "module", ["threading", "typer", "numpy", "diffint.cli.bench", "diffint.estimator"]
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupt_during_imports_is_one_line(module, number):
    if module == "threading" and number != signal.SIGINT:
        pytest.skip("too early: the process ends by the signal itself")
    code = INTERRUPTED_IMPORT.format(module=module, number=int(number))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == "diffint: interrupted; no file was written\n"
    assert done.returncode == 128 + number


def test_the_package_itself_imports_almost_nothing():
    """The command handles Ctrl-C only after `import diffint`."""
    code = "import sys, typing, diffint; print(*(m for m in sys.modules if 'diffint' in m))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "diffint\n"


@pytest.mark.parametrize("command", ["fit", "report"])
def test_an_interrupt_after_a_file_was_written_says_so(
    run, payments, tmp_path, command, monkeypatch
):
    """For example during the messages at the end."""
    output = tmp_path / "out"

    def interrupted(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)

    if command == "fit":
        save = DiffInt.save
        monkeypatch.setattr(DiffInt, "save", lambda *given: (save(*given), interrupted()))
        done = run("fit", payments / "t.csv", "-o", output, "--epochs", "2", "--id", "payment")
    else:
        monkeypatch.setattr("diffint.cli.report.typer.echo", interrupted)
        done = run("report", payments / "m.diffint", payments / "t.csv", "-o", output)
    assert done.code == 130
    assert f"diffint: interrupted; already written: {str(output)!r}\n" in done.err
    assert os.listdir(tmp_path) == ["out"]


def test_a_library_that_swallows_the_exception_does_not_keep_the_process():
    code = """
import os, signal, time
from diffint.cli import signals
signals._LONGEST_END = 0.3
stop = signals.StopOnSignal(last_act=lambda: os.write(1, b"last act"))
with signals.handling_stop_signals(stop):
    stop.start()
    signal.setitimer(signal.ITIMER_REAL, 600)  # the test ends also if this fails
    os.write(1, b"ready ")
    while True:
        try:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(0.01)
        except BaseException:
            pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (143, "ready last act")
