"""Shows cameras and laser scans of the bus in Rerun: pip install rerun-sdk

python rerun_viewer.py /camera/image /scan                    # opens the viewer
python rerun_viewer.py --save drive.rrd /camera/image /scan   # writes a file for it instead

Times are those of the messages.
"""

import sys

import numpy as np
import rerun as rr

import ropewalk

FORMATS = {"mono8": "L", "rgb8": "RGB", "bgr8": "BGR", "rgba8": "RGBA", "bgra8": "BGRA"}


def image(topic, message):
    rows = message.data.reshape(message.height, message.step)
    channels = len(FORMATS[message.encoding])
    pixels = rows[:, : message.width * channels].reshape(message.height, message.width, channels)
    rr.log(topic, rr.Image(pixels.squeeze(), color_model=FORMATS[message.encoding]))


def compressed(topic, message):
    kind = "png" if "png" in message.format else "jpeg"
    rr.log(topic, rr.EncodedImage(contents=message.data.tobytes(), media_type=f"image/{kind}"))


def scan(topic, message):
    ranges = message.ranges
    angles = message.angle_min + message.angle_increment * np.arange(len(ranges))
    good = (ranges >= message.range_min) & (ranges <= message.range_max)
    points = np.stack([ranges * np.cos(angles), ranges * np.sin(angles)], axis=1)[good]
    rr.log(topic, rr.Points2D(points))


SHOWN = {"sensor_msgs/Image": image, "sensor_msgs/CompressedImage": compressed, "sensor_msgs/LaserScan": scan}


arguments = sys.argv[1:]
file = arguments.pop(1) if arguments[:1] == ["--save"] else None
topics = [a for a in arguments if a != "--save"]
if not topics:
    sys.exit(__doc__)
rr.init("ropewalk", spawn=file is None)
if file is not None:
    rr.save(file)
node = ropewalk.Node("rerun")
shown = {}
for topic in topics:
    kind = node.discover(topic, timeout=30)
    if kind.name not in SHOWN:
        sys.exit(f"{topic}: {kind.name} is not shown here, only {', '.join(SHOWN)}")
    shown[node.subscriber(topic, kind, depth=2)] = SHOWN[kind.name]
while True:
    for subscriber in ropewalk.wait(shown):
        while (message := subscriber.take(0)) is not None:
            stamp = message.header.stamp
            rr.set_time("message", timestamp=stamp.sec + stamp.nsec / 1e9)
            shown[subscriber](subscriber.topic, message)
