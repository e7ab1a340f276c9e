// A node on plain rcl that learns its types at run time. It takes dynamic messages from `there/<type>`, serializes them and publishes them on
// `back/<type>`. It exits when its standard input ends. It is a library, since the wheels' rcl needs Python's symbols.
#include <poll.h>
#include <rcl/allocator.h>
#include <rcl/dynamic_message_type_support.h>
#include <rcl/error_handling.h>
#include <rcl/init.h>
#include <rcl/init_options.h>
#include <rcl/node.h>
#include <rcl/publisher.h>
#include <rcl/subscription.h>
#include <rcutils/types/uint8_array.h>
#include <rosidl_dynamic_typesupport/dynamic_message_type_support_struct.h>
#include <rosidl_runtime_c/string_functions.h>
#include <rosidl_runtime_c/type_description/field__functions.h>
#include <rosidl_runtime_c/type_description/individual_type_description__functions.h>
#include <rosidl_runtime_c/type_description/type_description__functions.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include <builtin_interfaces/msg/time.h>
#include <geometry_msgs/msg/pose_stamped.h>
#include <sensor_msgs/msg/laser_scan.h>
#include <std_msgs/msg/string.h>
#include <test_msgs/msg/basic_types.h>
#include <test_msgs/msg/nested.h>

namespace {

void must(int code, const char* what) {
    if (code == 0) return;
    std::fprintf(stderr, "%s: error %d: %s\n", what, code, rcl_get_error_string().str);
    std::exit(1);
}

using Text = rosidl_runtime_c__String;
using Individual = rosidl_runtime_c__type_description__IndividualTypeDescription;

/// Empty texts in generated descriptions are null, which rcl does not accept.
void copy(const Text& from, Text& to) {
    if (!rosidl_runtime_c__String__assign(&to, from.data == nullptr ? "" : from.data)) must(1, "a copy");
}

void copy(const Individual& from, Individual& to) {
    copy(from.type_name, to.type_name);
    if (!rosidl_runtime_c__type_description__Field__Sequence__init(&to.fields, from.fields.size)) must(1, "a copy");
    for (std::size_t i = 0; i < from.fields.size; i++) {
        const auto& old = from.fields.data[i];
        auto& field = to.fields.data[i];
        copy(old.name, field.name);
        copy(old.default_value, field.default_value);
        copy(old.type.nested_type_name, field.type.nested_type_name);
        field.type.type_id = old.type.type_id;
        field.type.capacity = old.type.capacity;
        field.type.string_capacity = old.type.string_capacity;
    }
}

/// Makes a type as if the description of `known` had come from another node.
int learn(const char* library, const rosidl_message_type_support_t* known, rosidl_message_type_support_t* learned) {
    const auto* from = known->get_type_description_func(known);
    auto* description = rosidl_runtime_c__type_description__TypeDescription__create();
    copy(from->type_description, description->type_description);
    auto& others = description->referenced_type_descriptions;
    const std::size_t count = from->referenced_type_descriptions.size;
    if (!rosidl_runtime_c__type_description__IndividualTypeDescription__Sequence__init(&others, count)) must(1, "a copy");
    for (std::size_t i = 0; i < count; i++) copy(from->referenced_type_descriptions.data[i], others.data[i]);
    auto allocator = rcl_get_default_allocator();
    const int code = rcl_dynamic_message_type_support_handle_init(library, description, &allocator, learned);
    rosidl_runtime_c__type_description__TypeDescription__destroy(description);
    return code;
}

struct Topic {
    rosidl_message_type_support_t learned = rosidl_get_zero_initialized_message_type_support_handle();
    rcl_subscription_t there = rcl_get_zero_initialized_subscription();
    rcl_publisher_t back = rcl_get_zero_initialized_publisher();

    Topic(rcl_node_t& node, const std::string& name, const rosidl_message_type_support_t* known) {
        must(learn(nullptr, known, &learned), "learning");
        auto of_subscription = rcl_subscription_get_default_options();
        auto of_publisher = rcl_publisher_get_default_options();
        of_subscription.qos.depth = of_publisher.qos.depth = 100;
        must(rcl_subscription_init(&there, &node, &learned, ("there/" + name).c_str(), &of_subscription), "subscribing");
        must(rcl_publisher_init(&back, &node, known, ("back/" + name).c_str(), &of_publisher), "advertising");
    }

    /// Returns whether there was a message.
    bool pass() {
        auto* message = static_cast<const rosidl_dynamic_message_type_support_impl_t*>(learned.data)->dynamic_message;
        must(rosidl_dynamic_typesupport_dynamic_data_clear_all_values(message), "clearing");
        rmw_message_info_t info = rmw_get_zero_initialized_message_info();
        const int code = rcl_take_dynamic_message(&there, message, &info, nullptr);
        if (code == RCL_RET_SUBSCRIPTION_TAKE_FAILED) {
            rcl_reset_error();
            return false;
        }
        must(code, "taking");
        auto allocator = rcl_get_default_allocator();
        rcutils_uint8_array_t bytes = rcutils_get_zero_initialized_uint8_array();
        must(rcutils_uint8_array_init(&bytes, 0, &allocator), "a buffer");
        must(rosidl_dynamic_typesupport_dynamic_data_serialize(message, &bytes), "serializing");
        must(rcl_publish_serialized_message(&back, &bytes, nullptr), "publishing");
        must(rcutils_uint8_array_fini(&bytes), "freeing");
        return true;
    }

    void end(rcl_node_t& node) {
        must(rcl_subscription_fini(&there, &node), "a subscription's end");
        must(rcl_publisher_fini(&back, &node), "a publisher's end");
        // Keep the type: Jazzy's rosidl_dynamic_typesupport_fastrtps ends the process when it is dropped.
    }
};

}  // namespace

extern "C" int run() {
    auto allocator = rcl_get_default_allocator();
    rcl_init_options_t options = rcl_get_zero_initialized_init_options();
    must(rcl_init_options_init(&options, allocator), "options");
    rcl_context_t context = rcl_get_zero_initialized_context();
    must(rcl_init(0, nullptr, &options, &context), "init");
    rcl_node_t node = rcl_get_zero_initialized_node();
    const auto of_node = rcl_node_get_default_options();
    must(rcl_node_init(&node, "dynamic", "", &context, &of_node), "a node");

    rosidl_message_type_support_t none = rosidl_get_zero_initialized_message_type_support_handle();
    if (learn("no_such_library", ROSIDL_GET_MSG_TYPE_SUPPORT(std_msgs, msg, String), &none) == 0) return 1;
    rcl_reset_error();

    std::deque<Topic> topics;
#define TOPIC(package, type) topics.emplace_back(node, #package "_msg_" #type, ROSIDL_GET_MSG_TYPE_SUPPORT(package, msg, type))
    TOPIC(builtin_interfaces, Time);
    TOPIC(std_msgs, String);
    TOPIC(geometry_msgs, PoseStamped);
    TOPIC(sensor_msgs, LaserScan);
    TOPIC(test_msgs, BasicTypes);
    TOPIC(test_msgs, Nested);
    std::puts("ready");
    std::fflush(stdout);
    pollfd input = {0, POLLIN, 0};
    for (bool busy = true; busy || poll(&input, 1, 2) == 0;) {
        busy = false;
        for (auto& topic : topics) busy = topic.pass() || busy;
    }
    for (auto& topic : topics) topic.end(node);
    must(rcl_node_fini(&node), "the node's end");
    must(rcl_shutdown(&context), "shutdown");
    must(rcl_context_fini(&context), "the context's end");
    must(rcl_init_options_fini(&options), "the options' end");
    return 0;
}
