// The two processes of the Robot Remote Control paper's experiment (section 3.1) on roscpp: a twist by a service call
// or a topic, and a random string by a topic, there and back. README.md describes the protocol.
#include <geometry_msgs/Twist.h>
#include <ros/ros.h>
#include <std_msgs/UInt16.h>
#include <std_msgs/UInt8MultiArray.h>

#include <condition_variable>
#include <functional>
#include <mutex>

#include "ros.hpp"

// A service of a twist and a uint16, without generated code: its MD5 sum only has to be equal at both
// ends.
namespace bench {
struct Drive {
    using Request = geometry_msgs::Twist;
    using Response = std_msgs::UInt16;
};
constexpr const char* SUM = "6f0c2d1e5b7a49388d1f0a2b3c4d5e6f";
}  // namespace bench

namespace ros {
namespace service_traits {
template <>
struct MD5Sum<bench::Drive> {
    static const char* value() { return bench::SUM; }
};
template <>
struct DataType<bench::Drive> {
    static const char* value() { return "ropewalk_bench/Drive"; }
};
}  // namespace service_traits
}  // namespace ros

namespace {

constexpr uint32_t QUEUE = 10;
constexpr double UNREACHABLE = -3;
// Lower numbers are probes.
constexpr uint64_t FIRST = uint64_t{1} << 32;
constexpr uint64_t NUMBER = 8;
const std::string SERVICE = "/bench/drive", THERE = "/bench/there", BACK = "/bench/back";

struct Arguments {
    std::string command, system;
    uint64_t count = 1, warm_up = 0, budget_ms = 3600000, patience_ms = 60000, bytes = NUMBER;
};

Arguments parse(int argc, char** argv) {
    static const std::vector<std::string> commands = {"version", "call", "serve", "say", "echo", "throw", "repeat"};
    static const std::vector<std::string> systems = {"tcpros", "nodelay"};
    Arguments a;
    a.command = argc > 1 ? argv[1] : "";
    if (!peer::contains(commands, a.command)) peer::fail(2, "first argument '%s': give one of %s", a.command.c_str(), peer::joined(commands).c_str());
    for (int i = 2; i < argc; i += 2) {
        const std::string option = argv[i];
        if (!peer::contains({"--system", "--count", "--warm-up", "--budget-ms", "--patience-ms", "--bytes"}, option)) peer::fail(2, "unknown option %s", option.c_str());
        if (i + 1 == argc) peer::fail(2, "%s needs a value", option.c_str());
        const char* value = argv[i + 1];
        constexpr uint64_t day_ms = 86400000;
        if (option == "--system") a.system = value;
        else if (option == "--count") a.count = peer::parse_number(option, value, 1, 10000);
        else if (option == "--warm-up") a.warm_up = peer::parse_number(option, value, 0, 10000);
        else if (option == "--budget-ms") a.budget_ms = peer::parse_number(option, value, 1, day_ms);
        else if (option == "--patience-ms") a.patience_ms = peer::parse_number(option, value, 1, day_ms);
        else a.bytes = peer::parse_number(option, value, NUMBER, 1u << 25);
    }
    if (!peer::contains(systems, a.system)) peer::fail(2, "--system '%s': this program serves %s", a.system.c_str(), peer::joined(systems).c_str());
    return a;
}

uint64_t random_word(uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

geometry_msgs::Twist random_twist(uint64_t number) {
    uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
    geometry_msgs::Twist twist;
    for (double* value : {&twist.linear.x, &twist.linear.y, &twist.linear.z, &twist.angular.x, &twist.angular.y, &twist.angular.z})
        *value = static_cast<double>(random_word(state) >> 40) / (1 << 24) - 0.5;
    return twist;
}

// Times of one run, in ms. `once(n)` executes repetition n, and returns its duration or a code for why it has
// none.
void measure(const Arguments& a, const peer::Orchestrator& orchestrator, const std::function<double(uint64_t)>& once) {
    peer::ready_and_go(orchestrator);
    std::string values;
    const uint64_t begin = peer::now_ns();
    for (uint64_t n = 0; n < a.warm_up + a.count && !orchestrator.stopped(); ++n) {
        if (n > a.warm_up && peer::now_ns() - begin > a.budget_ms * 1000000) break;
        const double ms = once(n);
        if (n < a.warm_up) continue;
        char text[32];
        snprintf(text, sizeof text, "%s%.6f", values.empty() ? "" : ", ", ms);
        values += text;
    }
    peer::say("{\"values\": [" + values + "]}");
    orchestrator.wait_stop();
}

double ms_since(uint64_t begin) { return static_cast<double>(peer::now_ns() - begin) / 1e6; }

void call(const Arguments& a, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    while (!ros::service::exists(SERVICE, false) && orchestrator.pause_ms(20)) {}
    measure(a, orchestrator, [&](uint64_t n) {
        const geometry_msgs::Twist twist = random_twist(n);
        std_msgs::UInt16 answer;
        const uint64_t begin = peer::now_ns();
        // As ros::service::call does: nothing outlives the call.
        ros::ServiceClientOptions options(ros::names::resolve(SERVICE), bench::SUM, false, ros::M_string());
        ros::ServiceClient client = node.serviceClient(options);
        return client.call(twist, answer, std::string(bench::SUM)) ? ms_since(begin) : UNREACHABLE;
    });
}

void serve(const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    ros::AdvertiseServiceOptions options;
    options.init<bench::Drive>(SERVICE, [](geometry_msgs::Twist&, std_msgs::UInt16& answer) {
        answer.data = 1;
        return true;
    });
    const ros::ServiceServer server = node.advertiseService(options);
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
}

ros::TransportHints hints(const Arguments& a) {
    return a.system == "nodelay" ? ros::TransportHints().tcpNoDelay() : ros::TransportHints();
}

// The last message that came back.
template <typename Message>
class Back {
public:
    void came(const boost::shared_ptr<const Message>& message) {
        const std::lock_guard<std::mutex> lock(mutex_);
        at_ns_ = peer::now_ns();
        message_ = message;
        changed_.notify_all();
    }

    // Returns the message that `wanted` accepts, and its arrival time; null if that takes too long.
    boost::shared_ptr<const Message> wait(uint64_t patience_ms, uint64_t& at_ns, const std::function<bool(const Message&)>& wanted) {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto there = [&] { return message_ && wanted(*message_); };
        if (!changed_.wait_for(lock, std::chrono::milliseconds(patience_ms), there)) return nullptr;
        at_ns = at_ns_;
        return message_;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    boost::shared_ptr<const Message> message_;
    uint64_t at_ns_ = 0;
};

// Sends messages and waits until each is back. `make(n)` creates the n-th, `number` reads a message's
// number.
template <typename Message>
void there_and_back(const Arguments& a, const peer::Orchestrator& orchestrator, const std::function<Message(uint64_t)>& make, const std::function<uint64_t(const Message&)>& number) {
    ros::NodeHandle node;
    Back<Message> back;
    const boost::function<void(const boost::shared_ptr<const Message>&)> callback = [&](const boost::shared_ptr<const Message>& m) { back.came(m); };
    const ros::Publisher publisher = node.advertise<Message>(THERE, QUEUE);
    const ros::Subscriber subscriber = node.subscribe<Message>(BACK, QUEUE, callback, ros::VoidConstPtr(), hints(a));
    ros::AsyncSpinner spinner(1);
    spinner.start();
    while ((publisher.getNumSubscribers() == 0 || subscriber.getNumPublishers() == 0) && orchestrator.pause_ms(5)) {}
    // Both directions are open when one message has come back.
    uint64_t at = 0;
    for (bool open = false; !open && !orchestrator.stopped();) {
        publisher.publish(make(0));
        open = back.wait(500, at, [](const Message&) { return true; }) != nullptr;
    }
    measure(a, orchestrator, [&](uint64_t n) {
        const Message message = make(FIRST + n);
        const uint64_t begin = peer::now_ns();
        publisher.publish(message);
        const auto came = back.wait(a.patience_ms, at, [&](const Message& m) { return number(m) == number(message); });
        if (!came) return UNREACHABLE;
        if (!(*came == message)) peer::fail(1, "remote: message %llu came back changed", static_cast<unsigned long long>(n));
        return static_cast<double>(at - begin) / 1e6;
    });
    spinner.stop();
}

template <typename Message>
void send_back(const Arguments& a, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    const ros::Publisher publisher = node.advertise<Message>(BACK, QUEUE);
    const boost::function<void(const boost::shared_ptr<const Message>&)> callback = [&](const boost::shared_ptr<const Message>& m) { publisher.publish(m); };
    const ros::Subscriber subscriber = node.subscribe<Message>(THERE, QUEUE, callback, ros::VoidConstPtr(), hints(a));
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
}

using Block = std_msgs::UInt8MultiArray;

uint64_t block_number(const Block& block) {
    uint64_t number = 0;
    if (block.data.size() >= NUMBER) memcpy(&number, block.data.data(), NUMBER);
    return number;
}

Block random_block(uint64_t number, uint64_t bytes) {
    Block block;
    block.data.resize(number < FIRST ? NUMBER : bytes);
    uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
    for (uint64_t at = 0; at + NUMBER <= block.data.size(); at += NUMBER) {
        const uint64_t word = random_word(state);
        memcpy(block.data.data() + at, &word, NUMBER);
    }
    memcpy(block.data.data(), &number, NUMBER);
    return block;
}

// A twist has no number of its own: its first value distinguishes it.
uint64_t twist_number(const geometry_msgs::Twist& twist) {
    uint64_t number;
    memcpy(&number, &twist.linear.x, sizeof number);
    return number;
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments a = parse(argc, argv);
    if (a.command == "version") return peer::ros_version(a.system);
    peer::Orchestrator orchestrator;
    peer::start_ros(a.system, orchestrator, "ropewalk_remote_" + a.command);
    if (a.command == "call") call(a, orchestrator);
    else if (a.command == "serve") serve(orchestrator);
    else if (a.command == "say") there_and_back<geometry_msgs::Twist>(a, orchestrator, random_twist, twist_number);
    else if (a.command == "echo") send_back<geometry_msgs::Twist>(a, orchestrator);
    else if (a.command == "throw") there_and_back<Block>(a, orchestrator, [&](uint64_t n) { return random_block(n, a.bytes); }, block_number);
    else send_back<Block>(a, orchestrator);
    ros::shutdown();
}
