"""Stop signals such as Ctrl-C: how they are caught; app.py says what the user sees."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from . import NOTHING_WRITTEN

_STOP_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")  # not all exist on every system
_PATIENCE = 2.0  # seconds after the first signal from which another one ends the process at once
_RETRY_AFTER = 0.01  # seconds
_LONGEST_END = 5.0  # seconds after which the process ends without waiting for the clean-up


class Stopped(BaseException):
    """Raised on a stop signal, so that `finally` blocks clean up before the process ends.

    Not KeyboardInterrupt: Typer exits on it without a message, and Python 3.11 ends by the signal
    if it is raised in code executed from a string, even if it is caught further up. Not SystemExit:
    a plugin module that calls `sys.exit` when it is imported is reported as an error of the plugin.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


class StopOnSignal:
    """A handler that raises `Stopped` once, for the first signal between `start` and `finish`.

    Further signals do not disturb the clean-up; if it takes longer than two seconds, they end the
    process at once, and after five seconds it ends by itself: a library may have swallowed the
    exception. Python and some libraries print an exception in a destructor or a callback and go on:
    then the signal is sent again instead.
    """

    def __init__(
        self, last_act: Callable[[], None], is_done: Callable[[], bool] = lambda: False
    ) -> None:
        """last_act: called before the process is ended at once; is_done: whether the work is done,
        so that signals are ignored from then on, also one that has not been noticed before."""
        self._received: int | None = None
        self._last_act, self._is_done = last_act, is_done
        self._raises, self._since = False, 0.0
        self._end: threading.Timer | None = None
        self._hooks = sys.unraisablehook, sys.excepthook

    @property
    def received(self) -> int | None:
        """The first signal, if the process is to end for it."""
        return None if self._is_done() else self._received

    def start(self) -> None:
        """Raise `Stopped` from now on, also for a signal that came before."""
        self._hooks = sys.unraisablehook, sys.excepthook
        sys.unraisablehook, sys.excepthook = self._unraisable, self._uncaught
        self._raises = True
        if self.received is not None:
            self(self.received)

    def finish(self) -> None:
        """Raise nothing any more."""
        self._raises = False
        if self._end is not None:
            self._end.cancel()
        sys.unraisablehook, sys.excepthook = self._hooks

    def __call__(self, number: int, _frame: object = None) -> None:
        """Handle a signal."""
        if self._is_done():
            return
        if self._received is None:
            self._received, self._since = number, time.monotonic()
            self._end = threading.Timer(_LONGEST_END, self._end_at_once)
            self._end.daemon = True
            self._end.start()
        if self._raises:
            self._raises = False
            raise Stopped(self._received)
        if time.monotonic() - self._since > _PATIENCE:
            self._end_at_once()

    def _end_at_once(self) -> None:
        if (received := self.received) is not None:
            self._last_act()
            os._exit(128 + received)

    def _unraisable(self, found: Any) -> None:
        if not self._is_sent_again(found.exc_value):
            self._hooks[0](found)

    def _uncaught(self, kind: Any, error: BaseException, trace: Any) -> None:
        if not self._is_sent_again(error):
            self._hooks[1](kind, error, trace)

    def _is_sent_again(self, error: BaseException | None) -> bool:
        """Send the signal of a lost exception again. → whether the error need not be printed"""
        if isinstance(error, Stopped) and self.received is not None:
            self._raises = True
            # On Windows, os.kill would end the process without any clean-up.
            send = signal.raise_signal if os.name == "nt" else partial(os.kill, os.getpid())
            again = threading.Timer(_RETRY_AFTER, send, (self.received,))
            again.daemon = True
            again.start()
        return self.received is not None  # other errors are a consequence of being stopped


class EndOnSignal:
    """A handler that ends the process at once, with a line that it was interrupted.

    Once the work is done, it ends without a line.
    """

    def __init__(self) -> None:
        self._exit_code: int | None = None
        for number in _handled_signals():
            signal.signal(number, self)
        # At its end Python resets handlers, so that a signal would end it, but not ignored signals.
        atexit.register(self._ignore)

    def work_is_done(self, exit_code: int) -> None:
        """End with this exit code from now on."""
        self._exit_code = exit_code

    def __call__(self, number: int, _frame: object) -> None:
        """Handle a signal."""
        if self._exit_code is None:
            os.write(2, f"{NOTHING_WRITTEN}\n".encode())
        os._exit(128 + number if self._exit_code is None else self._exit_code)

    def _ignore(self) -> None:
        if self._exit_code is not None:
            for number in _handled_signals():
                signal.signal(number, signal.SIG_IGN)


@contextmanager
def handling_stop_signals(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Call `handler` for stop signals inside the block; afterwards restore the previous handlers.

    Ignored signals stay ignored, as `nohup` and background scripts expect. Does nothing outside
    the main thread.
    """
    previous = {number: signal.signal(number, handler) for number in _handled_signals()}
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


def _handled_signals() -> list[int]:
    if threading.current_thread() is not threading.main_thread():
        return []
    numbers = [getattr(signal, name) for name in _STOP_SIGNALS if hasattr(signal, name)]
    kept = (signal.SIG_IGN, None)  # None: not installed from Python, so it cannot be restored
    return [number for number in numbers if signal.getsignal(number) not in kept]
