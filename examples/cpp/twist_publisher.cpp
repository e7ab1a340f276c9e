// Publishes small messages.
//
//     build/twist_subscriber & build/twist_publisher

#include <chrono>
#include <iostream>
#include <thread>

#include "ropewalk/msg/geometry_msgs/Twist.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::geometry_msgs::Twist;

int main() {
    auto node = ropewalk::Node::create("joystick").value();
    auto publisher = node.publisher<Twist>("/cmd_vel").value();
    (void)publisher.wait_for_subscribers(1, 30s);
    Twist twist;
    for (int i = 0; i < 20; i++) {
        twist.linear.x = i / 10.0;
        if (auto published = publisher.publish(twist); !published) {
            std::cerr << published.error().text() << "\n";
            return 1;
        }
        std::this_thread::sleep_for(20ms);
    }
}
