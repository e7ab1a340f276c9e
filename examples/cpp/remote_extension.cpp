// A user-defined command and telemetry type: a robot that sprays, and a controller that commands it. The library knows
// neither type; robot and controller agree by their names.
//
//     build/remote_extension

#include <chrono>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "ropewalk/remote.hpp"

using namespace std::chrono_literals;
namespace remote = ropewalk::remote;

// Stands for a class that protoc generates from `message Litres { float value = 1; }`, which has these functions, too.
struct Litres {
    float value = 0;
    std::string SerializeAsString() const {
        return '\x0d' + std::string(reinterpret_cast<const char*>(&value), sizeof value);
    }
    bool ParseFromArray(const void* data, int len) {
        auto* bytes = static_cast<const char*>(data);
        if (len != 5 || bytes[0] != '\x0d') return false;
        std::memcpy(&value, bytes + 1, sizeof value);
        return true;
    }
};

// Sprays this amount. Only the controller that holds the right to move the robot may send it.
constexpr remote::CommandKind<Litres> Spray{"acme.Spray", "base"};
// The remaining amount.
constexpr remote::TelemetryKind<Litres> Tank{"acme.Tank"};

int main() {
    auto node = ropewalk::Node::create("sprayer").value();
    auto options = ropewalk_robot_options_default();
    options.start_later = true;
    auto robot = remote::Robot::create(node, "sprayer", options).value();
    Litres left{5};
    robot.on(Spray, [&](const Litres& litres, const remote::CommandInfo&) -> ropewalk::Result<void> {
        if (litres.value > left.value) {
            std::ostringstream text;
            text << "only " << left.value << " l are left";
            return remote::reject(text.str());
        }
        left.value -= litres.value;
        return robot.set(Tank, left);
    }).value();
    robot.start().value();

    auto desk = remote::Controller::create(node, "desk", "sprayer").value();
    desk.wait_until_found(30s).value();
    for (float value : {2.0F, 2.5F, 1.0F}) {
        std::cout << "spray " << value << " l: " << desk.command(Spray, Litres{value}, 10s).value().text() << std::endl;
    }
    std::cout << "left: " << desk.fetch(Tank, 30s).value().value << " l" << std::endl;
}
