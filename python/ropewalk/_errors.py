"""What goes wrong, as exceptions of Ropewalk that are also those that Python has for such things."""


class Error(Exception):
    """Of every exception here. The text names the mend."""


class BadName(Error, ValueError):
    """A name or an option is not one."""


class TypeUnknown(Error, LookupError):
    """A type is unknown, its definition is wrong, or it is another than was expected."""


class ContentError(Error, ValueError):
    """A message is not of its type, or a block is used wrongly."""


class MemoryShort(Error, MemoryError):
    """Memory is short: the publisher's limit, or the system's."""


class HoldLimit(Error, BufferError):
    """As many messages are held as may be: drop some (and the arrays of them), or raise max_held."""


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
    """It belongs to the parent process: make a new one after fork."""


class SystemFault(Error, OSError):
    """The operating system refuses."""
