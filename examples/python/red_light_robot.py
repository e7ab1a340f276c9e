"""A robot with a camera drives towards a traffic light, which turns red. `red_light_brake` has to watch the images.

python red_light_robot.py & python red_light_brake.py
"""

import time

import ropewalk
from ropewalk.msgs.geometry_msgs import Twist
from ropewalk.msgs.sensor_msgs import Image

WIDTH, HEIGHT, LAMP = 640, 480, 60
GREEN = 30  # pictures


def draw(rgb, red):
    """Grey, with a lamp of one colour in the middle."""
    rgb[:] = 90
    lamp = rgb[(HEIGHT - LAMP) // 2 : (HEIGHT + LAMP) // 2, (WIDTH - LAMP) // 2 : (WIDTH + LAMP) // 2]
    lamp[:] = (250, 20, 20) if red else (20, 250, 20)


node = ropewalk.Node("red_light_robot")
pictures = node.publisher("/camera/image", Image)
wheels = node.subscriber("/cmd_vel", Twist)
pictures.wait_for_subscribers(1, timeout=30)
wheels.wait_for_publishers(1, timeout=30)

image = Image(width=WIDTH, height=HEIGHT, step=3 * WIDTH, encoding="rgb8")
turned = 0.0
for picture in range(1, 301):
    red = picture > GREEN
    image.header.seq = picture
    pictures.allocate(image, data=3 * WIDTH * HEIGHT)
    draw(image.data.reshape(HEIGHT, WIDTH, 3), red)
    if picture == GREEN + 1:
        turned = time.monotonic()
    pictures.publish(image)
    # It drives until the next image, unless a command stops it.
    reported = wheels.take(0.033)
    if reported is not None and reported.linear.x == 0:
        if not red:
            raise SystemExit("stopped at green")
        print(f"stopped {(time.monotonic() - turned) * 1000:.3f} ms after the light turned red")
        break
else:
    raise SystemExit("nobody stopped the robot")
