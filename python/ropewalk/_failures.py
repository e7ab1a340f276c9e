"""What exceptions in users' functions cost: the message or request that they had, and no other."""

from __future__ import annotations

import logging
import threading
import time

_LOG = logging.getLogger("ropewalk")
#: Seconds between two lines of the log about one function that fails again and again, as in Rust and C++.
LOG_INTERVAL = 10.0


def text_of(error: BaseException, name: bool = True) -> str:
    """What an exception says, as text that can be sent whatever it is made of."""
    try:
        said = str(error)
    except Exception:
        said = "its text cannot be made"
    return sendable(f"{type(error).__name__}: {said}" if name else said)


def sendable(text: str) -> str:
    """The text, with what UTF-8 does not have (surrogates) written out."""
    return text.encode("utf-8", "backslashreplace").decode()


class Failures:
    """Counts exceptions, and logs them (logger "ropewalk"), one in ten seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._said = -LOG_INTERVAL
        self.count = 0

    def add(self) -> None:
        """One more, which is told elsewhere."""
        with self._lock:
            self.count += 1

    def note(self, error: BaseException) -> None:
        """One more."""
        with self._lock:
            self.count += 1
            now = time.monotonic()
            if now - self._said < LOG_INTERVAL:
                return
            self._said = now
        try:
            _LOG.error("%s: %s (%d so far)", self._what, text_of(error), self.count, exc_info=error)
        except Exception:
            # A traceback shows the exception's text, which may be what cannot be made.
            _LOG.error("%s: %s (%d so far)", self._what, text_of(error), self.count)
