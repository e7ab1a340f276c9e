# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import actionlib_msgs
from . import geometry_msgs
from . import std_msgs

class MoveBaseAction(ropewalk.Message):
    action_goal: MoveBaseActionGoal
    action_result: MoveBaseActionResult
    action_feedback: MoveBaseActionFeedback
    def __init__(self, *, action_goal: MoveBaseActionGoal = ..., action_result: MoveBaseActionResult = ..., action_feedback: MoveBaseActionFeedback = ...) -> None: ...

class MoveBaseActionFeedback(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    feedback: MoveBaseFeedback
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., feedback: MoveBaseFeedback = ...) -> None: ...

class MoveBaseActionGoal(ropewalk.Message):
    header: std_msgs.Header
    goal_id: actionlib_msgs.GoalID
    goal: MoveBaseGoal
    def __init__(self, *, header: std_msgs.Header = ..., goal_id: actionlib_msgs.GoalID = ..., goal: MoveBaseGoal = ...) -> None: ...

class MoveBaseActionResult(ropewalk.Message):
    header: std_msgs.Header
    status: actionlib_msgs.GoalStatus
    result: MoveBaseResult
    def __init__(self, *, header: std_msgs.Header = ..., status: actionlib_msgs.GoalStatus = ..., result: MoveBaseResult = ...) -> None: ...

class MoveBaseFeedback(ropewalk.Message):
    base_position: geometry_msgs.PoseStamped
    def __init__(self, *, base_position: geometry_msgs.PoseStamped = ...) -> None: ...

class MoveBaseGoal(ropewalk.Message):
    target_pose: geometry_msgs.PoseStamped
    def __init__(self, *, target_pose: geometry_msgs.PoseStamped = ...) -> None: ...

class MoveBaseResult(ropewalk.Message):
    def __init__(self) -> None: ...

class RecoveryStatus(ropewalk.Message):
    pose_stamped: geometry_msgs.PoseStamped
    current_recovery_number: int
    total_number_of_recoveries: int
    recovery_behavior_name: str
    def __init__(self, *, pose_stamped: geometry_msgs.PoseStamped = ..., current_recovery_number: int = ..., total_number_of_recoveries: int = ..., recovery_behavior_name: str = ...) -> None: ...
