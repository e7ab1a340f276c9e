"""Receives messages with asyncio, until the fastest speed has arrived.

python twist_subscriber.py & python twist_publisher.py
"""

import asyncio

import ropewalk
from ropewalk.msgs.geometry_msgs import Twist


async def main():
    node = ropewalk.Node("base")
    async for twist in node.subscriber("/cmd_vel", Twist):
        print(f"speed {twist.linear.x:g}")
        if twist.linear.x >= 1.9:
            break


asyncio.run(main())
