# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import std_msgs

class GoalID(ropewalk.Message):
    stamp: ropewalk.Time
    id: str
    def __init__(self, *, stamp: ropewalk.Time = ..., id: str = ...) -> None: ...

class GoalStatus(ropewalk.Message):
    PENDING: int
    ACTIVE: int
    PREEMPTED: int
    SUCCEEDED: int
    ABORTED: int
    REJECTED: int
    PREEMPTING: int
    RECALLING: int
    RECALLED: int
    LOST: int
    goal_id: GoalID
    status: int
    text: str
    def __init__(self, *, goal_id: GoalID = ..., status: int = ..., text: str = ...) -> None: ...

class GoalStatusArray(ropewalk.Message):
    header: std_msgs.Header
    status_list: list[GoalStatus]
    def __init__(self, *, header: std_msgs.Header = ..., status_list: list[GoalStatus] = ...) -> None: ...
