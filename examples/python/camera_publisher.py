"""Publishes images without copying them: draws each one where its subscribers read it.

python camera_publisher.py & python camera_subscriber.py
"""

import time

import numpy as np

import ropewalk
from ropewalk.msgs.sensor_msgs import Image

WIDTH, HEIGHT = 1920, 1080

node = ropewalk.Node("camera")
publisher = node.publisher("/camera/image", Image)
image = Image(width=WIDTH, height=HEIGHT, encoding="mono8", step=WIDTH)
image.header.frame_id = "camera"
row = np.arange(WIDTH)

publisher.wait_for_subscribers(1, timeout=30)
for picture in range(90):
    publisher.allocate(image, data=WIDTH * HEIGHT)
    image.data.reshape(HEIGHT, WIDTH)[:] = (row + picture) % 256
    queued = publisher.publish(image)
    print(f"picture {picture + 1} to {queued} subscribers")
    time.sleep(0.033)
