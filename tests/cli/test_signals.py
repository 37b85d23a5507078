"""Signals that ask to stop."""

import os
import signal

import pytest

from diffint.cli.signals import handling_stop_signals, undisturbed


def test_an_interrupt_waits_for_the_end_of_the_block():
    done = []

    def work():
        with undisturbed():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_handlers_are_put_back_and_what_is_ignored_stays_so():
    heard = []
    earlier = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with handling_stop_signals(lambda number, _frame: heard.append(number)):
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
                os.kill(os.getpid(), number)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, earlier)
    assert heard == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
