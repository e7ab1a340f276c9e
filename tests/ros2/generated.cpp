// Takes messages of classes that ROS 2 generated and publishes them again, and answers requests with another server's answers. The test
// compares what returns with what was sent.
#include <cstdio>
#include <ropewalk/ropewalk.hpp>
#include <ropewalk/ros2.hpp>

#include <geometry_msgs/msg/pose_with_covariance_stamped.hpp>
#include <rcl_interfaces/srv/get_parameters.hpp>
#include <sensor_msgs/msg/image.hpp>
#include <sensor_msgs/msg/joint_state.hpp>
#include <sensor_msgs/msg/laser_scan.hpp>
#include <sensor_msgs/msg/point_cloud2.hpp>
#include <sensor_msgs/srv/set_camera_info.hpp>
#include <std_msgs/msg/string.hpp>
#include <std_srvs/srv/empty.hpp>
#include <std_srvs/srv/set_bool.hpp>
#include <std_srvs/srv/trigger.hpp>
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
#include <test_msgs/srv/arrays.hpp>
#include <test_msgs/srv/basic_types.hpp>
#include <test_msgs/srv/empty.hpp>

namespace {

// A watchdog, not a limit on speed.
constexpr auto LONG = std::chrono::seconds(60);

template <class T>
std::string name_of() {
    std::string name = rosidl_generator_traits::name<T>();
    for (auto& c : name) c = c == '/' ? '_' : c;
    return name;
}

template <class T>
ropewalk::Callback echo(ropewalk::Node& node) {
    const auto name = name_of<T>();
    auto publisher = std::make_shared<ropewalk::Publisher<T>>(node.publisher<T>("/back/" + name).value());
    auto subscriber = node.subscriber<T>("/there/" + name, ropewalk::SubscriberOptions().with_depth(100)).value();
    return std::move(subscriber).callback([publisher, name](ropewalk::Message<T> message) {
        auto sent = publisher->publish(*message);
        if (!sent) std::fprintf(stderr, "%s: %s\n", name.c_str(), sent.error().text().c_str());
    });
}

template <class S>
ropewalk::Callback relay(ropewalk::Node& node) {
    const auto name = name_of<S>();
    auto client = std::make_shared<ropewalk::Client<S>>(node.client<S>("/back/" + name).value());
    return node.server<S>("/there/" + name).value().callback([client](const typename S::Request& request) -> ropewalk::Result<typename S::Response> {
        if (auto found = client->wait_for_server(LONG); !found) return found.error();
        auto answer = client->call(request, LONG);
        if (!answer) return answer.error();
        return **answer;
    });
}

using std_srvs::srv::Trigger;

/// Whether a client learns that there is no server, and why a server rejects a request.
bool reports_errors(ropewalk::Node& node) {
    auto client = node.client<Trigger>("/rejecting").value();
    const Trigger::Request request;
    if (client.call(request, LONG).status() != ROPEWALK_STATUS_NO_PEER) return false;
    auto reject = [](const Trigger::Request&) -> ropewalk::Result<Trigger::Response> { return ropewalk::Error(ROPEWALK_STATUS_REJECTED, "not now"); };
    auto server = node.server<Trigger>("/rejecting").value().callback(reject);
    client.wait_for_server(LONG).value();
    auto rejected = client.call(request, LONG);
    return rejected.status() == ROPEWALK_STATUS_REJECTED && rejected.error().text().find("not now") != std::string::npos;
}

template <class... Messages>
void echo_all(ropewalk::Node& node, std::vector<ropewalk::Callback>& callbacks) {
    (callbacks.push_back(echo<Messages>(node)), ...);
}

template <class... Services>
void relay_all(ropewalk::Node& node, std::vector<ropewalk::Callback>& callbacks) {
    (callbacks.push_back(relay<Services>(node)), ...);
}

}  // namespace

// With an argument, only services.
int main(int argc, char**) {
    using namespace test_msgs::msg;
    namespace srv = test_msgs::srv;
    auto node = ropewalk::Node::create("generated").value();
    std::vector<ropewalk::Callback> callbacks;
    if (argc == 1) {
        echo_all<Arrays, BasicTypes, BoundedPlainSequences, BoundedSequences, Builtins, Defaults, Empty, MultiNested, Nested, Strings, UnboundedSequences,
                 WStrings, std_msgs::msg::String, sensor_msgs::msg::Image, sensor_msgs::msg::PointCloud2, sensor_msgs::msg::LaserScan,
                 sensor_msgs::msg::JointState, geometry_msgs::msg::PoseWithCovarianceStamped>(node, callbacks);
    }
    relay_all<srv::Arrays, srv::BasicTypes, srv::Empty, std_srvs::srv::Empty, std_srvs::srv::SetBool, Trigger, rcl_interfaces::srv::GetParameters,
              sensor_msgs::srv::SetCameraInfo>(node, callbacks);
    std::puts(reports_errors(node) ? "ready" : "errors are not reported");
    std::fflush(stdout);
    while (std::getchar() != EOF) {}
}
