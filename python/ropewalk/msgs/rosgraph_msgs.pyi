# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import std_msgs

class Clock(ropewalk.Message):
    clock: ropewalk.Time
    def __init__(self, *, clock: ropewalk.Time = ...) -> None: ...

class Log(ropewalk.Message):
    DEBUG: int
    INFO: int
    WARN: int
    ERROR: int
    FATAL: int
    header: std_msgs.Header
    level: int
    name: str
    msg: str
    file: str
    function: str
    line: int
    topics: list[str]
    def __init__(self, *, header: std_msgs.Header = ..., level: int = ..., name: str = ..., msg: str = ..., file: str = ..., function: str = ..., line: int = ..., topics: list[str] = ...) -> None: ...

class TopicStatistics(ropewalk.Message):
    topic: str
    node_pub: str
    node_sub: str
    window_start: ropewalk.Time
    window_stop: ropewalk.Time
    delivered_msgs: int
    dropped_msgs: int
    traffic: int
    period_mean: ropewalk.Duration
    period_stddev: ropewalk.Duration
    period_max: ropewalk.Duration
    stamp_age_mean: ropewalk.Duration
    stamp_age_stddev: ropewalk.Duration
    stamp_age_max: ropewalk.Duration
    def __init__(self, *, topic: str = ..., node_pub: str = ..., node_sub: str = ..., window_start: ropewalk.Time = ..., window_stop: ropewalk.Time = ..., delivered_msgs: int = ..., dropped_msgs: int = ..., traffic: int = ..., period_mean: ropewalk.Duration = ..., period_stddev: ropewalk.Duration = ..., period_max: ropewalk.Duration = ..., stamp_age_mean: ropewalk.Duration = ..., stamp_age_stddev: ropewalk.Duration = ..., stamp_age_max: ropewalk.Duration = ...) -> None: ...
