// Commands a robot and prints the outcome of each command.
//
//     build/robot & build/controller

#include <chrono>
#include <iostream>
#include <thread>

#include "ropewalk/remote.hpp"

using namespace std::chrono_literals;
namespace remote = ropewalk::remote;

int main() {
    auto node = ropewalk::Node::create("desk").value();
    auto desk = remote::Controller::create(node, "desk", "rover").value();
    desk.on(remote::telemetry::CurrentTwist, [](const remote::Twist& moves, const remote::TelemetryInfo& info) {
        if (info.sequence % 20 == 0) std::cout << "it moves at " << moves.linear.x << " m/s" << std::endl;
    }).value();
    if (!desk.wait_until_found(30s)) {
        std::cerr << "there is no robot\n";
        return 1;
    }

    // Valid for a second: the robot does not execute a command that arrives later.
    remote::Twist twist;
    for (float speed : {0.5F, 2.0F}) {
        twist.linear.x = speed;
        auto outcome = desk.command(remote::command::Twist, twist, 1s).value();
        std::cout << speed << " m/s: " << outcome.text() << std::endl;
    }
    // The first controller that moves the robot holds the right to, until it releases the right or is lost.
    std::cout << "it is moved by " << desk.right("base").value().holder_name << std::endl;

    // Without blocking: sends a command, and polls for its outcome.
    twist.linear.x = 0.25F;
    auto sent = desk.send(remote::command::Twist, twist, 1s).value();
    auto outcome = sent.poll();
    for (; !outcome; outcome = sent.poll()) std::this_thread::sleep_for(1ms);
    std::cout << "0.25 m/s: " << outcome->text() << std::endl;
    std::this_thread::sleep_for(1s);
}
