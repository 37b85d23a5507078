"""Stop signals such as Ctrl-C: how they are caught; app.py says what the user sees."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # not all exist on every system


class Stopped(BaseException):
    """Raised on a stop signal, so that `finally` blocks clean up before the process ends.

    Not KeyboardInterrupt: Typer exits on it without a message, and Python 3.11 ends by the signal
    if it is raised in code executed from a string, even if it is caught further up. Not SystemExit:
    a plugin module that calls `sys.exit` when it is imported is reported as an error of the plugin.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def handling_stop_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Call `handler` for stop signals inside the block; afterwards restore the previous handlers.

    Ignored signals stay ignored, as `nohup` and background scripts expect. Does nothing outside
    the main thread.
    """
    previous = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
        kept = (signal.SIG_IGN, None)  # None: not installed from Python, so it cannot be restored
        replaced = [number for number in numbers if signal.getsignal(number) not in kept]
        previous = {number: signal.signal(number, handler) for number in replaced}
    try:
        yield
    finally:
        for number, earlier in previous.items():
            signal.signal(number, earlier)


@contextmanager
def delaying_stop_signals() -> Iterator[None]:
    """Delay stop signals until the block is done."""
    received: list[int] = []
    try:
        with handling_stop_signals(lambda number, _frame: received.append(number)):
            yield
    finally:
        for number in received:
            signal.raise_signal(number)
