"""Looks for a red light in pictures, where the camera drew them, and stops the robot that took them.

python red_light_robot.py & python red_light_brake.py
"""

import time

import ropewalk


def redness(image):
    """How many of the pixels in the middle are red."""
    rows = image.data[: image.height * image.step].reshape(image.height, image.step)
    rgb = rows[:, : 3 * image.width].reshape(image.height, image.width, 3)
    middle = rgb[image.height * 3 // 8 : image.height * 5 // 8, image.width * 3 // 8 : image.width * 5 // 8]
    return ((middle[..., 0] > 200) & (middle[..., 1] < 80) & (middle[..., 2] < 80)).mean()


node = ropewalk.Node("red_light_brake")
# An old picture is of no use: only the newest waits.
pictures = node.subscriber("/camera/image", "sensor_msgs/Image", depth=1)
wheels = node.publisher("/cmd_vel", "geometry_msgs/Twist")
while (image := pictures.take(30)) is not None:
    if redness(image) < 0.05:
        continue
    wheels.publish(wheels.message())
    print(f"red in picture {image.header.seq}")
    # The robot may have been listening to something else.
    time.sleep(0.5)
    break
else:
    raise SystemExit("no picture came")
