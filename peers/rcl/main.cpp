// A node of ROS 2 in C++ as rclcpp creates it, over rcl's C API (rclcpp is not available as a wheel): it waits, takes
// and publishes as rclcpp's executors and publishers do, without their own overhead. rclpy/run selects the middleware.
// With `-loans` messages are borrowed and taken on loan; with PEER_RMW=1, too, by rmw's own functions without rcl's.
// With `-take-loaned` they are published as usual, and taken on loan as for callbacks that take a `const` message.
#include <rcl/error_handling.h>
#include <rcl/rcl.h>
#include <rmw/rmw.h>

#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <sensor_msgs/msg/image.hpp>

#include "peer.hpp"

namespace {

using sensor_msgs::msg::Image;

void must(rcl_ret_t code, const char* what) {
    if (code != RCL_RET_OK) peer::fail(1, "%s: %s", what, rcl_get_error_string().str);
}

void must_rmw(rmw_ret_t code, const char* what) {
    if (code != RMW_RET_OK) peer::fail(1, "%s: %s", what, rcl_get_error_string().str);
}

bool below_rcl() { return getenv("PEER_RMW") != nullptr; }

bool loans(const peer::Options& o) { return o.system == "rcl-ropewalk-loans"; }

bool takes_loans(const peer::Options& o) { return loans(o) || o.system == "rcl-ropewalk-take-loaned"; }

struct Node {
    explicit Node(const char* name) {
        // The processes of a cell share a folder; other programs on this machine may use DDS.
        const char* folder = getenv("ROPEWALK_RUNTIME_DIR");
        const size_t domain = 1 + std::hash<std::string>{}(folder ? folder : "") % 100;
        auto options = rcl_get_zero_initialized_init_options();
        must(rcl_init_options_init(&options, allocator), "rcl_init_options_init");
        must(rcl_init_options_set_domain_id(&options, domain), "rcl_init_options_set_domain_id");
        must(rcl_init(0, nullptr, &options, &context), "rcl_init");
        must(rcl_init_options_fini(&options), "rcl_init_options_fini");
        auto of_node = rcl_node_get_default_options();
        of_node.enable_rosout = false;
        must(rcl_node_init(&node, (name + std::to_string(getpid())).c_str(), "", &context, &of_node), "rcl_node_init");
    }
    ~Node() {
        must(rcl_node_fini(&node), "rcl_node_fini");
        must(rcl_shutdown(&context), "rcl_shutdown");
        must(rcl_context_fini(&context), "rcl_context_fini");
    }
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    rcl_allocator_t allocator = rcl_get_default_allocator();
    rcl_context_t context = rcl_get_zero_initialized_context();
    rcl_node_t node = rcl_get_zero_initialized_node();
    const rosidl_message_type_support_t* type = rosidl_typesupport_cpp::get_message_type_support_handle<Image>();
};

void describe(Image& image, const peer::Options& o) {
    image.encoding = "mono8";
    image.header.frame_id = "camera";
    image.height = 1;
    image.width = image.step = static_cast<uint32_t>(o.size);
    image.data.resize(o.size);
}

void publish(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    Node node("publisher");
    auto options = rcl_publisher_get_default_options();
    options.qos.depth = o.depth ? o.depth : 32;
    auto publisher = rcl_get_zero_initialized_publisher();
    must(rcl_publisher_init(&publisher, &node.node, node.type, o.topic.c_str(), &options), "rcl_publisher_init");
    for (size_t count = 0; count < o.subscribers && orchestrator.pause_ms(5);)
        must(rcl_publisher_get_subscription_count(&publisher, &count), "rcl_publisher_get_subscription_count");
    Image own;
    describe(own, o);
    void* loan = nullptr;
    auto* const lowest = rcl_publisher_get_rmw_handle(&publisher);
    const bool below = below_rcl();
    peer::ready_and_go(orchestrator);
    peer::send_all(
        o, orchestrator,
        [&]() -> uint8_t* {
            if (!loans(o)) return own.data.data();
            loan = nullptr;
            if (below) must_rmw(rmw_borrow_loaned_message(lowest, node.type, &loan), "rmw_borrow_loaned_message");
            else must(rcl_borrow_loaned_message(&publisher, node.type, &loan), "rcl_borrow_loaned_message");
            auto& image = *static_cast<Image*>(loan);
            describe(image, o);
            return image.data.data();
        },
        [&] {
            if (loans(o) && below) must_rmw(rmw_publish_loaned_message(lowest, loan, nullptr), "rmw_publish_loaned_message");
            else if (loans(o)) must(rcl_publish_loaned_message(&publisher, loan, nullptr), "rcl_publish_loaned_message");
            else must(rcl_publish(&publisher, &own, nullptr), "rcl_publish");
            return true;
        });
    orchestrator.wait_stop();
    must(rcl_publisher_fini(&publisher, &node.node), "rcl_publisher_fini");
}

void subscribe(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    Node node("subscriber");
    auto options = rcl_subscription_get_default_options();
    options.qos.depth = o.depth ? o.depth : 32;
    auto subscription = rcl_get_zero_initialized_subscription();
    must(rcl_subscription_init(&subscription, &node.node, node.type, o.topic.c_str(), &options), "rcl_subscription_init");
    auto guard = rcl_get_zero_initialized_guard_condition();
    must(rcl_guard_condition_init(&guard, &node.context, rcl_guard_condition_get_default_options()), "rcl_guard_condition_init");
    auto set = rcl_get_zero_initialized_wait_set();
    must(rcl_wait_set_init(&set, 1, 1, 0, 0, 0, 0, &node.context, node.allocator), "rcl_wait_set_init");
    peer::say("ready");
    std::thread stopper([&] {
        orchestrator.wait_stop();
        must(rcl_trigger_guard_condition(&guard), "rcl_trigger_guard_condition");
    });
    const auto receive = [&](const Image& image) {
        if (image.data.size() != o.size) peer::fail(1, "an image of another size: give each cell its own --topic");
        if (log.receive(image.data.data())) peer::say("done");
    };
    auto* const lowest = rcl_subscription_get_rmw_handle(&subscription);
    auto* const lowest_guard = rcl_guard_condition_get_rmw_handle(&guard);
    auto* const lowest_set = rmw_create_wait_set(rcl_context_get_rmw_context(&node.context), 2);
    while (takes_loans(o) && below_rcl() && !orchestrator.stopped()) {
        void* subscriptions[] = {lowest->data};
        void* guards[] = {lowest_guard->data};
        rmw_subscriptions_t of_set = {1, subscriptions};
        rmw_guard_conditions_t guards_of_set = {1, guards};
        must_rmw(rmw_wait(&of_set, &guards_of_set, nullptr, nullptr, nullptr, lowest_set, nullptr), "rmw_wait");
        if (!subscriptions[0]) continue;
        rmw_message_info_t info = rmw_get_zero_initialized_message_info();
        void* loan = nullptr;
        bool taken = false;
        must_rmw(rmw_take_loaned_message_with_info(lowest, &loan, &taken, &info, nullptr), "rmw_take_loaned_message_with_info");
        if (!taken) continue;
        receive(*static_cast<const Image*>(loan));
        must_rmw(rmw_return_loaned_message_from_subscription(lowest, loan), "rmw_return_loaned_message_from_subscription");
    }
    while (!orchestrator.stopped()) {
        must(rcl_wait_set_clear(&set), "rcl_wait_set_clear");
        must(rcl_wait_set_add_subscription(&set, &subscription, nullptr), "rcl_wait_set_add_subscription");
        must(rcl_wait_set_add_guard_condition(&set, &guard, nullptr), "rcl_wait_set_add_guard_condition");
        must(rcl_wait(&set, -1), "rcl_wait");
        if (!set.subscriptions[0]) continue;
        rmw_message_info_t info = rmw_get_zero_initialized_message_info();
        if (takes_loans(o)) {
            void* loan = nullptr;
            const rcl_ret_t code = rcl_take_loaned_message(&subscription, &loan, &info, nullptr);
            if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) continue;
            must(code, "rcl_take_loaned_message");
            receive(*static_cast<const Image*>(loan));
            must(rcl_return_loaned_message_from_subscription(&subscription, loan), "rcl_return_loaned_message_from_subscription");
        } else {
            // As rclcpp, which creates a message for each callback.
            Image image;
            const rcl_ret_t code = rcl_take(&subscription, &image, &info, nullptr);
            if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) continue;
            must(code, "rcl_take");
            receive(image);
        }
    }
    stopper.join();
    must_rmw(rmw_destroy_wait_set(lowest_set), "rmw_destroy_wait_set");
    must(rcl_wait_set_fini(&set), "rcl_wait_set_fini");
    must(rcl_guard_condition_fini(&guard), "rcl_guard_condition_fini");
    must(rcl_subscription_fini(&subscription, &node.node), "rcl_subscription_fini");
    log.print();
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o =
        peer::parse(argc, argv, {{"rcl-ropewalk", "rcl-ropewalk-loans", "rcl-ropewalk-take-loaned", "rcl-fastdds", "rcl-fastdds-udp"}, {"publish", "subscribe"}});
    if (o.command == "version") return peer::version(o, rmw_get_implementation_identifier(), {"block"});
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    if (o.command == "publish") publish(o, orchestrator);
    if (o.command == "subscribe") subscribe(o, orchestrator);
}
