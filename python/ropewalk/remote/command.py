"""The kinds of commands that the library knows, by name: `command.Twist`."""

from .. import _native
from . import types
from ._kinds import CommandKind

_kinds = {
    name.rpartition(".")[2]: CommandKind(name, getattr(types, message), moves)
    for name, message, moves in _native.command_kinds()
}
globals().update(_kinds)
__all__ = sorted(_kinds)
