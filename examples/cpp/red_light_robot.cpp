// A robot with a camera drives towards a traffic light, which turns red. `red_light_brake` has to watch the images.
//
//     build/red_light_robot & build/red_light_brake

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>

#include "ropewalk/msg/geometry_msgs/Twist.hpp"
#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using ropewalk::msg::geometry_msgs::Twist;
using ropewalk::msg::sensor_msgs::Image;

constexpr std::uint32_t WIDTH = 640, HEIGHT = 480, LAMP = 60;
constexpr int GREEN = 30;  // pictures

// Grey, with a lamp of one colour in the middle.
static void draw(std::uint8_t* rgb, bool red) {
    std::memset(rgb, 90, 3 * WIDTH * HEIGHT);
    for (std::uint32_t y = (HEIGHT - LAMP) / 2; y < (HEIGHT + LAMP) / 2; y++) {
        for (std::uint32_t x = (WIDTH - LAMP) / 2; x < (WIDTH + LAMP) / 2; x++) {
            auto* pixel = rgb + 3 * (y * WIDTH + x);
            pixel[0] = red ? 250 : 20, pixel[1] = red ? 20 : 250, pixel[2] = 20;
        }
    }
}

int main() {
    auto node = ropewalk::Node::create("red_light_robot").value();
    auto pictures = node.publisher<Image>("/camera/image").value();
    auto wheels = node.subscriber<Twist>("/cmd_vel").value();
    pictures.wait_for_subscribers(1, 30s).value();
    wheels.wait_for_publishers(1, 30s).value();

    Clock::time_point turned;
    ropewalk::Loan<Image> image;
    image->width = WIDTH, image->height = HEIGHT, image->step = 3 * WIDTH;
    image->encoding = "rgb8";
    for (int i = 1; i <= 300; i++) {
        bool red = i > GREEN;
        image->header.seq = i;
        image->data.resize(3 * WIDTH * HEIGHT);
        pictures.allocate(image).value();
        draw(image->data.data(), red);
        if (i == GREEN + 1) turned = Clock::now();
        (void)pictures.publish(image).value();
        // It drives until the next image, unless a command stops it.
        if (auto reported = wheels.take(33ms); reported && (*reported)->linear.x == 0) {
            if (!red) {
                std::cerr << "stopped at green\n";
                return 1;
            }
            auto late = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - turned);
            std::cout << "stopped " << static_cast<double>(late.count()) / 1000 << " ms after the light turned red\n";
            return 0;
        }
    }
    std::cerr << "nobody stopped the robot\n";
    return 1;
}
