# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import std_msgs

AddDiagnostics: ropewalk.ServiceType

class DiagnosticArray(ropewalk.Message):
    header: std_msgs.Header
    status: list[DiagnosticStatus]
    def __init__(self, *, header: std_msgs.Header = ..., status: list[DiagnosticStatus] = ...) -> None: ...

class DiagnosticStatus(ropewalk.Message):
    OK: int
    WARN: int
    ERROR: int
    STALE: int
    level: int
    name: str
    message: str
    hardware_id: str
    values: list[KeyValue]
    def __init__(self, *, level: int = ..., name: str = ..., message: str = ..., hardware_id: str = ..., values: list[KeyValue] = ...) -> None: ...

class KeyValue(ropewalk.Message):
    key: str
    value: str
    def __init__(self, *, key: str = ..., value: str = ...) -> None: ...

SelfTest: ropewalk.ServiceType
