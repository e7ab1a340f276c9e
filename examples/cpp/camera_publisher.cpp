// Publishes images without copying them: draws each one where its subscribers read it.
//
//     build/camera_publisher &  build/camera_subscriber

#include <chrono>
#include <iostream>
#include <thread>

#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::sensor_msgs::Image;

int main() {
    constexpr std::size_t width = 1920, height = 1080;
    auto node = ropewalk::Node::create("camera").value();
    auto publisher = node.publisher<Image>("/camera/image").value();

    ropewalk::Loan<Image> image;
    image->header.frame_id = "camera";
    image->width = width;
    image->height = height;
    image->encoding = "mono8";
    image->step = width;
    image->data.resize(width * height);

    (void)publisher.wait_for_subscribers(1, 30s);
    for (std::uint32_t picture = 0; picture < 90; picture++) {
        // The only error at run time: subscribers hold too much, or memory is short.
        if (auto ready = publisher.allocate(image); !ready) {
            std::cerr << "left out: " << ready.error().text() << "\n";
            continue;
        }
        for (std::size_t i = 0; i < image->data.size(); i++) {
            image->data.data()[i] = static_cast<std::uint8_t>(i % width + picture);
        }
        auto published = publisher.publish(image);
        if (!published) {
            std::cerr << published.error().text() << "\n";
            return 1;
        }
        std::cout << "picture " << published->sequence << " to " << published->queued_to << " subscribers\n";
        std::this_thread::sleep_for(33ms);
    }
}
