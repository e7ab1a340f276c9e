"""The kinds of telemetry that the library knows, by name: `telemetry.CurrentPose`."""

from .. import _native
from . import types
from ._kinds import TelemetryKind

_kinds = {
    name.rpartition(".")[2]: TelemetryKind(name, getattr(types, message))
    for name, message in _native.telemetry_kinds()
}
globals().update(_kinds)
__all__ = sorted(_kinds)
