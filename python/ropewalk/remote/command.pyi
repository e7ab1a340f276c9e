# Made by python/tests/make_stubs.py; do not edit.
from . import types
from ._kinds import CommandKind

ComplexAction: CommandKind[types.ComplexAction]
GoTo: CommandKind[types.GoTo]
Joints: CommandKind[types.JointCommand]
Permission: CommandKind[types.Permission]
RobotTrajectory: CommandKind[types.Poses]
SimpleAction: CommandKind[types.SimpleAction]
TargetPose: CommandKind[types.Pose]
Twist: CommandKind[types.Twist]
