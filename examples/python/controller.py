"""Commands a robot and prints the outcome of each command.

python robot.py & python controller.py
"""

import asyncio
import time

import ropewalk
from ropewalk import remote
from ropewalk.remote import command, telemetry, types

node = ropewalk.Node("desk")
desk = remote.Controller(node, "desk", "rover")


@desk.on(telemetry.CurrentTwist)
def moves(twist, info):
    if info.sequence % 20 == 0:
        print(f"it moves at {twist.linear.x:g} m/s")


if not desk.wait_until_found(30):
    raise SystemExit("there is no robot")
# Valid for a second: the robot does not execute a command that arrives later.
for speed in (0.5, 2.0):
    outcome = desk.command(command.Twist, types.Twist(linear={"x": speed}), expiry=1)
    print(f"{speed:g} m/s: {outcome}")
# The first controller that moves the robot holds the right to, until it releases the right or is lost.
print(f"it is moved by {desk.right('base').holder_name}")


async def slower():
    outcome = await desk.send(command.Twist, types.Twist(linear={"x": 0.25}), expiry=1)
    print(f"0.25 m/s: {outcome}")


asyncio.run(slower())
time.sleep(1)
