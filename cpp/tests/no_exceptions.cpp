// Everything compiles and works without exceptions and run-time type information.

#include <cstdio>

#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/msg/std_srvs/SetBool.hpp"
#include "ropewalk/remote.hpp"
#include "ropewalk/ropewalk.hpp"

using ropewalk::msg::sensor_msgs::Image;
using ropewalk::msg::std_srvs::SetBool;

int main() {
    auto node = ropewalk::Node::create("plain").value();
    auto subscriber = node.subscriber<Image>("/image").value();
    auto publisher = node.publisher<Image>("/image").value();
    publisher.wait_for_subscribers(1).value();
    ropewalk::Loan<Image> image;
    image->data.resize(1000);
    publisher.allocate(image).value();
    for (auto& byte : image->data) byte = 7;
    (void)publisher.publish(image).value();
    auto message = subscriber.take(ropewalk::forever).value();
    auto server = node.server<SetBool>("/switch").value();
    auto serving = std::move(server).callback([](const SetBool::Request&) -> ropewalk::Result<SetBool::Response> {
        return ropewalk::Error(ROPEWALK_STATUS_REJECTED, "stuck");
    });
    auto client = node.client<SetBool>("/switch").value();
    client.wait_for_server().value();
    auto answer = client.call(SetBool::Request(), std::chrono::seconds(60));
    auto robot = ropewalk::remote::Robot::create(node, "rover").value();
    auto stuck = [](const ropewalk::remote::Twist&, const ropewalk::remote::CommandInfo&) -> ropewalk::Result<void> {
        return ropewalk::remote::reject("stuck");
    };
    robot.on(ropewalk::remote::command::Twist, stuck).value();
    auto desk = ropewalk::remote::Controller::create(node, "desk", "rover").value();
    desk.wait_until_found().value();
    auto outcome = desk.command(ropewalk::remote::command::Twist, {}).value();
    bool good = outcome.text() == "rejected: stuck" && message->data.size() == 1000 && message->data[999] == 7 &&
                answer.status() == ROPEWALK_STATUS_REJECTED;
    std::printf("without exceptions: %s\n", good ? "done" : "failed");
    return good ? 0 : 1;
}
