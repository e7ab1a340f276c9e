"""A Zenoh router at this endpoint, like `zenohd` or `rmw_zenohd`: router.py tcp/127.0.0.1:7447 [KEY=JSON5...]"""

import sys
import time

import zenoh

config = zenoh.Config()
for key, value in [("mode", '"router"'), ("listen/endpoints", f'["{sys.argv[1]}"]'), ("scouting/multicast/enabled", "false")]:
    config.insert_json5(key, value)
for more in sys.argv[2:]:
    config.insert_json5(*more.split("=", 1))
with zenoh.open(config):
    print("ready", flush=True)
    time.sleep(1e6)
