"""Two nodes of Debian's as they are, and turned into ones that share images in memory: what that took, and what it saves."""

import argparse
import hashlib
import json
import math
import re
import signal
import sys
import unittest
from pathlib import Path

from support import Roscore

WIDTH, HEIGHT = 1920, 1080
IMAGE = 3 * WIDTH * HEIGHT
# An image's row: a copy of one by rows is counted, too.
SMALLEST = 3 * WIDTH
FRAMES = 20
# Slow, so that few are published that nobody saves.
RATE = 5


class Ported(Roscore):
    def test_ported_nodes_do_as_before_and_copy_no_images(self):
        photo = self.photo()
        results = {kind: self.pipeline(kind, photo) for kind in ("plain", "ported")}
        # What is extracted is the same picture, to the byte.
        self.assertEqual(results["plain"]["frames"], results["ported"]["frames"])
        lines = dict(re.findall(r"(\w+) (\d+ \d+)", Path(f"{ARGS.port}/lines").read_text()))
        print()
        for node in ("image_publisher", "extract_images"):
            added, removed = map(int, lines[node].split())
            before, after = (results[kind][node] for kind in ("plain", "ported"))
            print(f"{node}: {added} lines added, {removed} removed; of each image that was saved {describe(before)} before, {describe(after)} after")
            # TZC's claim.
            self.assertLess(added + removed, 100)
            self.assertGreaterEqual(sum(before), 2, node)
            self.assertLess(sum(after), 0.1, node)

    def test_ported_nodes_speak_to_plain_ones(self):
        self.picture()
        self.start_publisher("ported", f"{self.folder.name}/picture.ppm")
        self.start_extractor("plain", "mixed").expect("Saved image", 2)

    def photo(self):
        """A picture as a camera would give it: Debian's nodes make it of one of our own."""
        self.picture()
        publisher = self.start_publisher("plain", f"{self.folder.name}/picture.ppm")
        extractor = self.start_extractor("plain", "photo")
        extractor.expect("Saved image", 2)
        extractor.end()
        publisher.end()
        return f"{self.folder.name}/photo0000.jpg"

    def picture(self):
        wave = bytes(int(128 + 90 * math.sin(i / 300) + 30 * math.sin(i / 17)) for i in range(3 * (WIDTH + HEIGHT)))
        with open(f"{self.folder.name}/picture.ppm", "wb") as file:
            file.write(b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT))
            for y in range(HEIGHT):
                file.write(wave[3 * y : 3 * (y + WIDTH)])

    def pipeline(self, kind, photo):
        """Publishes it and extracts it again; gives the extracted frames' digests, and for each node the copies of an image's bytes in
        memory, into the kernel and out of it, for each image that was extracted."""
        extractor = self.start_extractor(kind, kind)
        publisher = self.start_publisher(kind, photo)
        extractor.expect("Saved image", FRAMES)
        publisher.end(signal.SIGTERM)
        extractor.end(signal.SIGTERM)
        saved = extractor.count("Saved image")
        frames = [Path(f"{self.folder.name}/{kind}{i:04}.jpg").read_bytes() for i in range(saved)]
        results = {"frames": {hashlib.sha256(f).hexdigest() for f in frames}}
        for node in ("image_publisher", "extract_images"):
            counts = json.loads(Path(self.counts(kind, node)).read_text())
            each = ("user_copies_bytes", "kernel_in_bytes", "kernel_out_bytes")
            results[node] = [counts[key] / IMAGE / saved for key in each]
        # By its purpose a node reads or writes compressed photos, too: little, in any case. Before, images that were published and not saved
        # make the figures larger.
        return results

    def start_publisher(self, kind, file):
        prefix = f"{ARGS.port}/{kind}"
        command = ["/usr/lib/image_publisher/image_publisher", file, "__name:=camera", f"_publish_rate:={RATE}"]
        publisher = self.counted(kind, "image_publisher", command, ROS_PACKAGE_PATH=f"{prefix}/share:/usr/share",
                                 CMAKE_PREFIX_PATH=prefix, LD_LIBRARY_PATH=f"{prefix}/lib:{self.prefix}/lib")
        publisher.expect("Flip horizontal image is : false")
        return publisher

    def start_extractor(self, kind, name):
        command = [f"{ARGS.port}/{kind}/lib/extract_images", "image:=/camera/image_raw", "_sec_per_frame:=0",
                   f"_filename_format:={self.folder.name}/{name}%04i.jpg"]
        return self.counted(kind, "extract_images", command)

    def counted(self, kind, node, command, **env):
        return self.start(command, LD_PRELOAD=ARGS.copycount, COPYCOUNT_OUT=self.counts(kind, node), COPYCOUNT_MIN=str(SMALLEST), **env)

    def counts(self, kind, node):
        return f"{self.folder.name}/{kind}-{node}.json"


def describe(copies):
    return "{:.1f} copies in memory, {:.1f} into sockets and {:.1f} out of them".format(*copies)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", required=True, help="what ros1/port/build made")
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--copycount", required=True)
    ARGS, rest = parser.parse_known_args()
    Roscore.prefix = ARGS.prefix
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)
