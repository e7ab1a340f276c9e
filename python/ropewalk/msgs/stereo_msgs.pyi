# Made by `ropewalk gen python`; do not edit.
import numpy as np
import ropewalk
from . import sensor_msgs
from . import std_msgs

class DisparityImage(ropewalk.Message):
    header: std_msgs.Header
    image: sensor_msgs.Image
    f: float
    T: float
    valid_window: sensor_msgs.RegionOfInterest
    min_disparity: float
    max_disparity: float
    delta_d: float
    def __init__(self, *, header: std_msgs.Header = ..., image: sensor_msgs.Image = ..., f: float = ..., T: float = ..., valid_window: sensor_msgs.RegionOfInterest = ..., min_disparity: float = ..., max_disparity: float = ..., delta_d: float = ...) -> None: ...
