"""Searches images for a red light, where the camera drew them, and stops the robot that took them.

python red_light_robot.py & python red_light_brake.py
"""

import time

import ropewalk
from ropewalk.msgs.geometry_msgs import Twist
from ropewalk.msgs.sensor_msgs import Image


def redness(image):
    """Share of the pixels in the middle that are red."""
    rows = image.data[: image.height * image.step].reshape(image.height, image.step)
    rgb = rows[:, : 3 * image.width].reshape(image.height, image.width, 3)
    middle = rgb[image.height * 3 // 8 : image.height * 5 // 8, image.width * 3 // 8 : image.width * 5 // 8]
    return ((middle[..., 0] > 200) & (middle[..., 1] < 80) & (middle[..., 2] < 80)).mean()


node = ropewalk.Node("red_light_brake")
# An old image is useless: only the newest waits.
pictures = node.subscriber("/camera/image", Image, depth=1)
wheels = node.publisher("/cmd_vel", Twist)
while (image := pictures.take(30)) is not None:
    if redness(image) < 0.05:
        continue
    wheels.publish(Twist())
    print(f"red in picture {image.header.seq}")
    # Leaves the robot time to take the command.
    time.sleep(0.5)
    break
else:
    raise SystemExit("no picture came")
