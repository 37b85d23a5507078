"""Handling of stop signals."""

import os
import signal

import pytest

from diffint.cli.signals import delaying_stop_signals, handling_stop_signals


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
