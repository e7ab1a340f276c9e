"""Publishes small messages.

python twist_subscriber.py & python twist_publisher.py
"""

import time

import ropewalk
from ropewalk.msgs.geometry_msgs import Twist

node = ropewalk.Node("joystick")
publisher = node.publisher("/cmd_vel", Twist)
publisher.wait_for_subscribers(1, timeout=30)
twist = Twist()
for i in range(20):
    twist.linear.x = i / 10
    publisher.publish(twist)
    time.sleep(0.02)
