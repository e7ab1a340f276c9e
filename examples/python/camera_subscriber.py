"""Reads images where their publisher drew them, until none has come for a second.

python camera_publisher.py & python camera_subscriber.py
"""

import ropewalk
from ropewalk.msgs.sensor_msgs import Image

node = ropewalk.Node("viewer")
subscriber = node.subscriber("/camera/image", Image)
patience = 30.0
while (image := subscriber.take(patience)) is not None:
    # In place: these are the publisher's bytes.
    print(f"picture {image.sequence}: {image.data.size} pixels, mean {int(image.data.mean())}")
    patience = 1.0
