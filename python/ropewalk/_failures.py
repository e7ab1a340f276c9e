"""Limits the effect of an exception in a user's function to its own message or request."""

from __future__ import annotations

import logging
import threading
import time

_LOG = logging.getLogger("ropewalk")
#: Seconds between two log lines about one function that keeps failing, as in Rust and C++.
LOG_INTERVAL = 10.0


def text_of(error: BaseException, name: bool = True) -> str:
    """The text of an exception, always in a form that can be sent."""
    try:
        said = str(error)
    except Exception:
        said = "its text cannot be created"
    return sendable(f"{type(error).__name__}: {said}" if name else said)


def sendable(text: str) -> str:
    """The text, with characters that UTF-8 cannot encode (surrogates) escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


class Failures:
    """Counts exceptions, and logs them (logger "ropewalk"), at most one in ten seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._said = -LOG_INTERVAL
        self.count = 0

    def add(self) -> None:
        """Counts one that is reported elsewhere."""
        with self._lock:
            self.count += 1

    def note(self, error: BaseException) -> None:
        """Counts and logs one."""
        with self._lock:
            self.count += 1
            now = time.monotonic()
            if now - self._said < LOG_INTERVAL:
                return
            self._said = now
        try:
            _LOG.error("%s: %s (%d so far)", self._what, text_of(error), self.count, exc_info=error)
        except Exception:
            # A traceback shows the exception's text, which may be what fails.
            _LOG.error("%s: %s (%d so far)", self._what, text_of(error), self.count)
