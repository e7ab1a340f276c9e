"""Keeps the near part of each scan: reads it where the laser wrote it, writes the result where subscribers read it.

python lidar_filter.py MAXIMUM-RANGE     from /scan to /scan/near, until none has come for a second
"""

import sys

import numpy as np

import ropewalk
from ropewalk.msgs.sensor_msgs import LaserScan

far = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
node = ropewalk.Node("lidar_filter")
scans = node.subscriber("/scan", LaserScan)
near = node.publisher("/scan/near", LaserScan)

patience = 30.0
while (scan := scans.take(patience)) is not None:
    patience = 1.0
    out = LaserScan(
        angle_min=scan.angle_min,
        angle_max=scan.angle_max,
        angle_increment=scan.angle_increment,
        range_min=scan.range_min,
        range_max=far,
    )
    out.header.stamp = scan.header.stamp
    out.header.frame_id = scan.header.frame_id
    try:
        near.allocate(out, ranges=len(scan.ranges))
    except ropewalk.MemoryShort as e:
        print(f"left out: {e}", file=sys.stderr)
        continue
    is_near = scan.ranges <= far
    out.ranges[:] = np.where(is_near, scan.ranges, np.inf)
    near.publish(out)
    print(f"{is_near.sum()} of {len(is_near)} are near")
