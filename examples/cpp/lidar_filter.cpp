// Keeps the near part of each scan: reads it where the laser wrote it, writes the result where subscribers read it.
//
//     build/lidar_filter MAXIMUM-RANGE     from /scan to /scan/near, until none has come for a second

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <limits>

#include "ropewalk/msg/sensor_msgs/LaserScan.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::sensor_msgs::LaserScan;

int main(int argc, char** argv) {
    const float far = argc > 1 ? std::strtof(argv[1], nullptr) : 5.0F;
    auto node = ropewalk::Node::create("lidar_filter").value();
    auto scans = node.subscriber<LaserScan>("/scan").value();
    auto near = node.publisher<LaserScan>("/scan/near").value();

    ropewalk::Timeout patience = 30s;
    ropewalk::Loan<LaserScan> out;
    while (auto taken = scans.take(patience)) {
        const auto& scan = *taken;
        patience = 1s;
        out->header.stamp = scan->header.stamp;
        out->header.frame_id = scan->header.frame_id;
        out->angle_min = scan->angle_min;
        out->angle_max = scan->angle_max;
        out->angle_increment = scan->angle_increment;
        out->range_min = scan->range_min;
        out->range_max = far;
        out->ranges.resize(scan->ranges.size());
        if (auto ready = near.allocate(out); !ready) {
            std::cerr << "left out: " << ready.error().text() << "\n";
            continue;
        }
        std::size_t kept = 0;
        for (std::size_t i = 0; i < scan->ranges.size(); i++) {
            bool is_near = scan->ranges[i] <= far;
            kept += is_near;
            out->ranges[i] = is_near ? scan->ranges[i] : std::numeric_limits<float>::infinity();
        }
        if (auto published = near.publish(out); !published) {
            std::cerr << published.error().text() << "\n";
            return 1;
        }
        std::cout << kept << " of " << scan->ranges.size() << " are near\n";
    }
}
