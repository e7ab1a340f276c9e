// Takes messages of classes that ROS 2 generated and publishes them again: what comes back is compared with what was sent.
#include <cstdio>
#include <ropewalk/ropewalk.hpp>
#include <ropewalk/ros2.hpp>

#include <geometry_msgs/msg/pose_with_covariance_stamped.hpp>
#include <sensor_msgs/msg/image.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <sensor_msgs/msg/laser_scan.hpp>
#include <sensor_msgs/msg/point_cloud2.hpp>
#include <std_msgs/msg/string.hpp>
#include <test_msgs/msg/arrays.hpp>
#include <test_msgs/msg/basic_types.hpp>
#include <test_msgs/msg/bounded_plain_sequences.hpp>
#include <test_msgs/msg/bounded_sequences.hpp>
#include <test_msgs/msg/builtins.hpp>
#include <test_msgs/msg/defaults.hpp>
#include <test_msgs/msg/empty.hpp>
#include <test_msgs/msg/multi_nested.hpp>
#include <test_msgs/msg/nested.hpp>
#include <test_msgs/msg/strings.hpp>
#include <test_msgs/msg/unbounded_sequences.hpp>
#include <test_msgs/msg/w_strings.hpp>

namespace {

template <class T>
ropewalk::Callback echo(ropewalk::Node& node) {
    std::string name = rosidl_generator_traits::name<T>();
    for (auto& c : name) c = c == '/' ? '_' : c;
    auto publisher = std::make_shared<ropewalk::Publisher<T>>(node.publisher<T>("/back/" + name).value());
    auto subscriber = node.subscriber<T>("/there/" + name, ropewalk::SubscriberOptions().with_depth(100)).value();
    return std::move(subscriber).callback([publisher, name](ropewalk::Message<T> message) {
        auto sent = publisher->publish(*message);
        if (!sent) std::fprintf(stderr, "%s: %s\n", name.c_str(), sent.error().text().c_str());
    });
}

template <class... Types>
void echo_all() {
    auto node = ropewalk::Node::create("echo").value();
    std::vector<ropewalk::Callback> callbacks;
    (callbacks.push_back(echo<Types>(node)), ...);
    std::puts("ready");
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
}

}  // namespace

int main() {
    using namespace test_msgs::msg;
    echo_all<Arrays, BasicTypes, BoundedPlainSequences, BoundedSequences, Builtins, Defaults, Empty, MultiNested, Nested, Strings, UnboundedSequences,
             WStrings, std_msgs::msg::String, sensor_msgs::msg::Image, sensor_msgs::msg::PointCloud2, sensor_msgs::msg::LaserScan,
             sensor_msgs::msg::JointState, geometry_msgs::msg::PoseWithCovarianceStamped>();
}
