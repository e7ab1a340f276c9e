"""Errors, as exceptions of Ropewalk that also derive from the corresponding Python exceptions."""


class Error(Exception):
    """Base class of every exception here. The text names the remedy."""


class BadName(Error, ValueError):
    """A name or an option is not valid."""


class TypeUnknown(Error, LookupError):
    """A type is unknown, its definition is wrong, or it is not the expected one."""


class ContentError(Error, ValueError):
    """A message does not have its type, or a block is used wrongly."""


class MemoryShort(Error, MemoryError):
    """Memory is short: the publisher's limit, or the system's."""


class HoldLimit(Error, BufferError):
    """The limit of held messages is reached: drop some (and their arrays), or raise max_held."""


class NoPeer(Error, ConnectionError):
    """Nobody publishes the topic, or serves the service."""


class CallTimeout(Error, TimeoutError):
    """A call was not answered in time."""


class PeerDied(Error, ConnectionError):
    """The server ended before it answered, or the client is gone."""


class Rejected(Error):
    """The server answered with an error of its own."""


class NoRoom(Error, BufferError):
    """A queue has no room."""


class Forked(Error, RuntimeError):
    """It belongs to the parent process: create a new one after fork."""


class SystemFault(Error, OSError):
    """The operating system refused."""


# Tracebacks show the names that users import.
for _class in [Error, *Error.__subclasses__()]:
    _class.__module__ = "ropewalk"
del _class
