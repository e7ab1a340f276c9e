"""A user-defined command and telemetry type: a robot that sprays, and a controller that commands it. The library knows
neither type; robot and controller agree by their names.

python remote_extension.py
"""

# Stands for a class of your own that protoc generates from `message Litres { float value = 1; }`.
from google.protobuf.wrappers_pb2 import FloatValue as Litres

import ropewalk
from ropewalk import remote

#: Sprays this amount. Only the controller that holds the right to move the robot may send it.
SPRAY = remote.CommandKind("acme.Spray", Litres, moves="base")
#: The remaining amount.
TANK = remote.TelemetryKind("acme.Tank", Litres)

robot = remote.Robot(ropewalk.Node("sprayer"), "sprayer", start=False)
left = 5.0


@robot.on(SPRAY)
def spray(litres, context):
    global left
    if litres.value > left:
        raise remote.Refused(f"only {left:g} l are left")
    left -= litres.value
    robot.set(TANK, Litres(value=left))


robot.start()
desk = remote.Controller(ropewalk.Node("desk"), "desk", "sprayer")
if not desk.wait_until_found(30):
    raise SystemExit("there is no robot")
for value in (2.0, 2.5, 1.0):
    print(f"spray {value:g} l: {desk.command(SPRAY, Litres(value=value), expiry=10)}")
print(f"left: {desk.fetch(TANK).value:g} l")
desk.stop()
robot.stop()
