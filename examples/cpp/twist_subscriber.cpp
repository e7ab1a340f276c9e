// Receives messages in a callback, on a thread of its own, until the fastest speed has arrived.
//
//     build/twist_subscriber & build/twist_publisher

#include <future>
#include <iostream>
#include <utility>

#include "ropewalk/msg/geometry_msgs/Twist.hpp"
#include "ropewalk/ropewalk.hpp"

using ropewalk::msg::geometry_msgs::Twist;

int main() {
    auto node = ropewalk::Node::create("base").value();
    auto subscriber = node.subscriber<Twist>("/cmd_vel").value();
    std::promise<void> fastest;
    auto callback = std::move(subscriber).callback([&](ropewalk::Message<Twist> twist) {
        std::cout << "speed " << twist->linear.x << std::endl;
        if (twist->linear.x >= 1.9) fastest.set_value();
    });
    fastest.get_future().wait();
}
