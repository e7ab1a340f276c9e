// A robot that follows commands, but not too fast, and stops when its controller is gone.
//
//     build/robot & build/controller

#include <atomic>
#include <chrono>
#include <cmath>
#include <iostream>
#include <thread>

#include "ropewalk/remote.hpp"

using namespace std::chrono_literals;
namespace remote = ropewalk::remote;

int main() {
    auto node = ropewalk::Node::create("rover").value();
    std::atomic<float> speed{0};
    std::atomic<bool> is_over{false};
    // Starts once everything is registered: otherwise an early controller would learn that there is no such command.
    auto options = ropewalk_robot_options_default();
    options.start_later = true;
    auto robot = remote::Robot::create(node, "rover", options).value();

    // Runs on a thread of the library: do slow work on your own.
    auto drive = [&](const remote::Twist& twist, const remote::CommandInfo& info) -> ropewalk::Result<void> {
        // The controller gets this text.
        if (std::abs(twist.linear.x) > 1) return remote::reject("faster than 1 m/s");
        speed = twist.linear.x;
        std::cout << info.controller << " says " << speed << " m/s" << std::endl;
        return {};
    };
    robot.on(remote::command::Twist, drive).value();
    // When its controller is lost, the robot stops before it calls this.
    robot.on_controller([&](std::uint64_t, const std::string&, bool found) {
        if (!found) is_over = true;
    }).value();
    robot.start().value();

    for (int i = 0; i < 1200 && !is_over; i++) {
        remote::Twist moves;
        moves.linear.x = speed;
        robot.set(remote::telemetry::CurrentTwist, moves).value();
        std::this_thread::sleep_for(50ms);
    }
    return is_over ? 0 : 1;
}
