// Searches images for a red light, where the camera drew them, and stops the robot that took them.
//
//     build/red_light_robot & build/red_light_brake

#include <chrono>
#include <iostream>
#include <thread>

#include "ropewalk/msg/geometry_msgs/Twist.hpp"
#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::geometry_msgs::Twist;
using ropewalk::msg::sensor_msgs::Image;

// Share of the pixels in the middle that are red.
static double redness(const Image& image) {
    std::size_t red = 0, all = 0;
    for (std::size_t y = image.height * 3 / 8; y < image.height * 5 / 8; y++) {
        for (std::size_t x = image.width * 3 / 8; x < image.width * 5 / 8; x++, all++) {
            const auto* pixel = image.data.data() + y * image.step + 3 * x;
            red += pixel[0] > 200 && pixel[1] < 80 && pixel[2] < 80;
        }
    }
    return all > 0 ? static_cast<double>(red) / static_cast<double>(all) : 0;
}

int main() {
    auto node = ropewalk::Node::create("red_light_brake").value();
    // An old image is useless: only the newest waits.
    auto newest = ropewalk::SubscriberOptions().with_depth(1);
    auto pictures = node.subscriber<Image>("/camera/image", newest).value();
    auto wheels = node.publisher<Twist>("/cmd_vel").value();
    while (auto taken = pictures.take(30s)) {
        const Image& image = **taken;
        if (image.data.size() < std::size_t{image.step} * image.height || image.step < 3 * image.width) continue;
        if (redness(image) < 0.05) continue;
        (void)wheels.publish(Twist()).value();
        std::cout << "red in picture " << image.header.seq << "\n";
        // Leaves the robot time to take the command.
        std::this_thread::sleep_for(500ms);
        return 0;
    }
    std::cerr << "no picture came\n";
    return 1;
}
