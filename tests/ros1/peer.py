#!/usr/bin/python3
"""A rospy node for the bridge's tests: `peer.py WHAT NAME [MORE]`. It prints what it receives, one line each."""

import hashlib
import sys
from io import BytesIO

import rospy
from sensor_msgs.msg import Image
from std_msgs.msg import String
from std_srvs.srv import SetBool, SetBoolResponse


def digest(data):
    """Digest of a message without its sequence number, which publishers set."""
    return hashlib.sha256(data[4:]).hexdigest()


def say(text):
    print(text, flush=True)


def image(index):
    width, height = 640, 480
    data = bytes((7 * i + index) & 0xFF for i in range(1024)) * (width * height * 3 // 1024)
    message = Image(height=height, width=width, encoding="rgb8", step=3 * width, data=data)
    message.header.frame_id = "camera"
    message.header.stamp = rospy.Time(1600000000 + index, 5)
    return message


def publish(name, latched):
    publisher = rospy.Publisher(name, String, queue_size=10, latch=latched)
    if latched:
        publisher.publish("kept")
        say("published")
        rospy.spin()
    index = 0
    while not rospy.is_shutdown():
        publisher.publish(f"hello {index}")
        index += 1
        rospy.sleep(0.05)


def publish_images(name):
    publisher = rospy.Publisher(name, Image, queue_size=2)
    index = 0
    while not rospy.is_shutdown():
        message = image(index)
        if publisher.get_num_connections():
            buffer = BytesIO()
            message.serialize(buffer)
            publisher.publish(message)
            say(f"sent {digest(buffer.getvalue())}")
            index += 1
        rospy.sleep(0.1)


def serve(name):
    def answer(request):
        if request.data:
            return SetBoolResponse(True, "done")
        raise rospy.ServiceException("not so")

    rospy.Service(name, SetBool, answer)
    say("ready")
    rospy.spin()


def call(name, data):
    rospy.wait_for_service(name)
    try:
        answer = rospy.ServiceProxy(name, SetBool)(data)
        say(f"answer {answer.success} {answer.message}")
    except rospy.ServiceException as error:
        say(f"error {error}")


def main():
    what, name = sys.argv[1:3]
    rospy.init_node("peer_" + what, anonymous=True, disable_signals=True)
    if what == "publish":
        publish(name, False)
    elif what == "latch":
        publish(name, True)
    elif what == "publish_images":
        publish_images(name)
    elif what == "listen":
        rospy.Subscriber(name, String, lambda m: say(f"heard {m.data}"))
        rospy.spin()
    elif what == "listen_raw":
        rospy.Subscriber(name, rospy.AnyMsg, lambda m: say(f"heard {digest(m._buff)}"))
        rospy.spin()
    elif what == "serve":
        serve(name)
    elif what == "call":
        call(name, True)
        call(name, False)
    elif what == "log":
        while not rospy.is_shutdown():
            rospy.loginfo("a trifle")
            rospy.logwarn("a warning")
            rospy.sleep(0.1)
    else:
        sys.exit(f"{what}: no such thing")


try:
    main()
except KeyboardInterrupt:
    pass
