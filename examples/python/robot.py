"""A robot that follows commands, but not too fast, and stops when its controller is gone.

python robot.py & python controller.py
"""

import threading

import ropewalk
from ropewalk import remote
from ropewalk.remote import command, telemetry, types

node = ropewalk.Node("rover")
# Starts once everything is registered: otherwise an early controller would learn that there is no such command.
robot = remote.Robot(node, "rover", start=False)
speed = 0.0
is_over = threading.Event()


# Runs on a thread of the library: do slow work on your own.
@robot.on(command.Twist)
def drive(twist, context):
    global speed
    if abs(twist.linear.x) > 1:
        raise remote.Refused("faster than 1 m/s")  # The controller gets this text.
    speed = twist.linear.x
    print(f"{context.controller} says {speed:g} m/s")


# When its controller is lost, the robot stops before it calls this.
@robot.on_controller
def comes_or_goes(_id, _name, found):
    if not found:
        is_over.set()


robot.start()
for _ in range(1200):
    robot.set(telemetry.CurrentTwist, types.Twist(linear={"x": speed}))
    if is_over.wait(0.05):
        break
