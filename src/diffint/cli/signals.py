"""What happens when someone presses Ctrl-C, closes the terminal or ends the process."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # not all of them everywhere


class Stopped(BaseException):
    """Someone wants us to stop; what is half written is cleaned up as it passes.

    Not KeyboardInterrupt: Typer ends on it without a word, and Python 3.11 dies of the signal where
    it meets code that is being executed from a string, though it was caught further up. Not
    SystemExit: a module from outside that exits when it is imported is an error of that module.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def handling_stop_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Have `handler` called for each of them, in the main thread; then all as it was.

    What is ignored stays so: `nohup`, and scripts that start us in the background, want that.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
        deaf = (signal.SIG_IGN, None)  # None: another language's handler, which is not ours to move
        heard = [number for number in numbers if signal.getsignal(number) not in deaf]
        before = {number: signal.signal(number, handler) for number in heard}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whoever wants to stop us waits until the block is done."""
    waiting: list[int] = []
    try:
        with handling_stop_signals(lambda number, _frame: waiting.append(number)):
            yield
    finally:
        for number in waiting:
            signal.raise_signal(number)
