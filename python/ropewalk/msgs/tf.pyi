# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import geometry_msgs

class tfMessage(ropewalk.Message):
    transforms: list[geometry_msgs.TransformStamped]
    def __init__(self, *, transforms: list[geometry_msgs.TransformStamped] = ...) -> None: ...
