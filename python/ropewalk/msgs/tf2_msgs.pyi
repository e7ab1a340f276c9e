# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import actionlib_msgs
from . import geometry_msgs
from . import std_msgs

FrameGraph: ropewalk.ServiceType

class LookupTransformAction(ropewalk.Message):
    action_goal: LookupTransformActionGoal
    action_result: LookupTransformActionResult
    action_feedback: LookupTransformActionFeedback
    def __init__(self, *, action_goal: LookupTransformActionGoal = ..., action_result: LookupTransformActionResult = ..., action_feedback: LookupTransformActionFeedback = ...) -> None: ...

class LookupTransformActionFeedback(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    feedback: LookupTransformFeedback
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., feedback: LookupTransformFeedback = ...) -> None: ...

class LookupTransformActionGoal(ropewalk.Message):
    header: std_msgs.Header
    goal_id: actionlib_msgs.GoalID
    goal: LookupTransformGoal
    def __init__(self, *, header: std_msgs.Header = ..., goal_id: actionlib_msgs.GoalID = ..., goal: LookupTransformGoal = ...) -> None: ...

class LookupTransformActionResult(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    result: LookupTransformResult
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., result: LookupTransformResult = ...) -> None: ...

class LookupTransformFeedback(ropewalk.Message):
    def __init__(self) -> None: ...

class LookupTransformGoal(ropewalk.Message):
    target_frame: str
    source_frame: str
    source_time: ropewalk.Time
    timeout: ropewalk.Duration
    target_time: ropewalk.Time
    fixed_frame: str
    advanced: bool
    def __init__(self, *, target_frame: str = ..., source_frame: str = ..., source_time: ropewalk.Time = ..., timeout: ropewalk.Duration = ..., target_time: ropewalk.Time = ..., fixed_frame: str = ..., advanced: bool = ...) -> None: ...

class LookupTransformResult(ropewalk.Message):
    transform: geometry_msgs.TransformStamped
    error: TF2Error
    def __init__(self, *, transform: geometry_msgs.TransformStamped = ..., error: TF2Error = ...) -> None: ...

class TF2Error(ropewalk.Message):
    NO_ERROR: int
    LOOKUP_ERROR: int
    CONNECTIVITY_ERROR: int
    EXTRAPOLATION_ERROR: int
    INVALID_ARGUMENT_ERROR: int
    TIMEOUT_ERROR: int
    TRANSFORM_ERROR: int
    error: int
    error_string: str
    def __init__(self, *, error: int = ..., error_string: str = ...) -> None: ...

class TFMessage(ropewalk.Message):
    transforms: list[geometry_msgs.TransformStamped]
    def __init__(self, *, transforms: list[geometry_msgs.TransformStamped] = ...) -> None: ...
