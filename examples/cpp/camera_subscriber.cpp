// Reads images where their publisher drew them, until none has come for a second.
//
//     build/camera_publisher &  build/camera_subscriber

#include <chrono>
#include <iostream>
#include <numeric>

#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::sensor_msgs::Image;

int main() {
    auto node = ropewalk::Node::create("viewer").value();
    auto subscriber = node.subscriber<Image>("/camera/image").value();
    ropewalk::Timeout patience = 30s;
    while (auto taken = subscriber.take(patience)) {
        const auto& image = *taken;
        // In place: these are the publisher's bytes.
        const auto& pixels = image->data;
        auto sum = std::accumulate(pixels.begin(), pixels.end(), std::uint64_t{0});
        std::cout << "picture " << image.info().sequence << ": " << pixels.size() << " pixels, mean "
                  << sum / pixels.size() << "\n";
        patience = 1s;
    }
}
