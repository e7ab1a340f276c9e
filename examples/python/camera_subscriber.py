"""Reads images where their publisher drew them, until none has come for a second.

python camera_publisher.py & python camera_subscriber.py
"""

import ropewalk

node = ropewalk.Node("viewer")
# The type comes from the topic's publisher.
subscriber = node.subscriber("/camera/image", timeout=30)
patience = 30.0
while (image := subscriber.take(patience)) is not None:
    # In place: these are the publisher's bytes.
    print(f"picture {image.sequence}: {image.data.size} pixels, mean {int(image.data.mean())}")
    patience = 1.0
