// Correct and incorrect use of the C++ interface.

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>
#include <optional>

#include "ropewalk/msg/sensor_msgs/Image.hpp"
#include "ropewalk/msg/sensor_msgs/PointCloud2.hpp"
#include "ropewalk/msg/std_msgs/String.hpp"
#include "ropewalk/msg/std_srvs/SetBool.hpp"
#include "ropewalk/msg/visualization_msgs/MarkerArray.hpp"
#include "ropewalk/ropewalk.hpp"

using namespace std::chrono_literals;
using ropewalk::msg::sensor_msgs::Image;
using ropewalk::msg::sensor_msgs::PointCloud2;
using ropewalk::msg::std_srvs::SetBool;
using ropewalk::msg::visualization_msgs::MarkerArray;
namespace std_msgs = ropewalk::msg::std_msgs;

// A std_msgs/String with a different field, as an old program would have it.
struct OldString {
    std::string text;
    template <class Self, class Visitor>
    static void ropewalk_fields(Self& self, Visitor& visit) {
        visit("text", self.text);
    }
};
// A type whose stated sum does not match its definition.
struct WrongString : OldString {};

namespace ropewalk {
template <>
struct Type<OldString> {
    static constexpr const char* name = "std_msgs/String";
    static constexpr const char* md5 = nullptr;
    static constexpr std::uint32_t flavour = ROPEWALK_FLAVOUR_ROS1;
    static const char* definition() { return "string text"; }
};
template <>
struct Type<WrongString> : Type<OldString> {
    static constexpr const char* md5 = "00000000000000000000000000000000";
};
}  // namespace ropewalk

// Long enough for any machine: it bounds hanging, not speed.
constexpr auto LONG = 60s;

static void expect(bool good, const char* what, int line) {
    if (good) return;
    std::cerr << "line " << line << ": " << what << "\n";
    std::exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static bool has(const std::string& text, const char* part) {
    if (text.find(part) != std::string::npos) return true;
    std::cerr << "\"" << text << "\" has no \"" << part << "\"\n";
    return false;
}

static ropewalk::Node node() { return ropewalk::Node::create("api").value(); }

template <class T>
struct Ends {
    ropewalk::Publisher<T> publisher;
    ropewalk::Subscriber<T> subscriber;
};

template <class T>
static Ends<T> ends(const char* topic, const ropewalk::SubscriberOptions& options = {}) {
    auto n = node();
    Ends<T> ends{n.publisher<T>(topic).value(), n.subscriber<T>(topic, options).value()};
    ends.publisher.wait_for_subscribers(1, LONG).value();
    return ends;
}

// As in the paper's Fig. 6: set sizes, allocate, fill in place, publish.
static void written_in_place() {
    auto [publisher, subscriber] = ends<Image>("/in_place");
    EXPECT(subscriber.take().error().empty());
    ropewalk::Loan<Image> image;
    image->data.resize(100000);
    EXPECT(image->data.data() == nullptr);
    publisher.allocate(image).value();
    EXPECT(reinterpret_cast<std::uintptr_t>(image->data.data()) % 64 == 0);
    // Texts may still be set.
    image->header.frame_id = "a name that is longer than before";
    for (std::size_t i = 0; i < image->data.size(); i++) image->data[i] = static_cast<std::uint8_t>(i);
    EXPECT(publisher.publish(image)->queued_to == 1);
    // It keeps its fields, without the block.
    EXPECT(!image.allocated() && image->data.size() == 100000 && image->data.data() == nullptr);

    auto message = subscriber.take(LONG).value();
    EXPECT(message->header.frame_id == "a name that is longer than before");
    EXPECT(message->data.size() == 100000 && message->data[99999] == static_cast<std::uint8_t>(99999));
    EXPECT(message.info().part_count == 1);
    // It outlives both ends, and moving it moves no element.
    auto* place = message->data.data();
    auto moved = std::move(message);
    publisher = ends<Image>("/other").publisher;
    subscriber = ends<Image>("/other").subscriber;
    EXPECT(moved->data.data() == place && moved->data[255] == 255);
    EXPECT(!message);
}

static void nested_and_small_fields() {
    auto [publisher, subscriber] = ends<MarkerArray>("/markers");
    MarkerArray array;
    for (std::size_t n : {0u, 3u, 1000u}) {
        array.markers.emplace_back();
        auto& marker = array.markers.back();
        marker.ns = "n";
        std::vector<ropewalk::msg::geometry_msgs::Point> points(n);
        for (std::size_t i = 0; i < n; i++) points[i].y = static_cast<double>(i);
        marker.points.assign(points);
    }
    (void)publisher.publish(array).value();
    auto message = subscriber.take(LONG).value();
    EXPECT(message->markers.size() == 3 && message.info().part_count == 1);
    EXPECT(message->markers[0].points.empty() && message->markers[1].points[2].y == 2);
    EXPECT(message->markers[2].points.size() == 1000 && message->markers[2].points[999].y == 999);
}

static void bad_use_of_loans() {
    auto [publisher, subscriber] = ends<Image>("/loans");
    ropewalk::Loan<Image> image;
    auto unallocated = publisher.publish(image);
    EXPECT(has(unallocated.error().text(), "allocate it first"));
    image->data.resize(1000);
    EXPECT(has(publisher.publish(*image).error().text(), "sized but not allocated"));
    publisher.allocate(image).value();
    image->data.resize(2000);
    EXPECT(has(publisher.publish(image).error().text(), "not allocated"));
    // A refusal loses nothing: allocate again.
    publisher.allocate(image).value();
    image->header.frame_id = std::string(10000, 'x');
    EXPECT(has(publisher.publish(image).error().text(), "set texts and sizes before"));
    publisher.allocate(image).value();
    (void)publisher.publish(image).value();
    EXPECT(subscriber.take(LONG).value()->header.frame_id.size() == 10000);
    image->data.resize(std::size_t{1} << 40);
    auto huge = publisher.allocate(image);
    EXPECT(huge.status() == ROPEWALK_STATUS_CONTENT || huge.status() == ROPEWALK_STATUS_MEMORY);
    image->data.resize(std::size_t{1} << 30);
    auto large = publisher.allocate(image);
    EXPECT(large.status() == ROPEWALK_STATUS_MEMORY && has(large.error().text(), "memory_limit"));
    // A dropped loan is returned: this is many more than fit the memory.
    image->data.resize(100 << 20);
    for (int i = 0; i < 100; i++) publisher.allocate(image).value();
}

static void holding_too_many() {
    auto options = ropewalk::SubscriberOptions().with_max_held(2);
    auto [publisher, subscriber] = ends<std_msgs::String>("/held", options);
    std_msgs::String text;
    for (int i = 0; i < 3; i++) (void)publisher.publish(text).value();
    std::vector<ropewalk::Message<std_msgs::String>> held;
    for (int i = 0; i < 2; i++) held.push_back(subscriber.take(LONG).value());
    auto third = subscriber.take(LONG);
    EXPECT(third.status() == ROPEWALK_STATUS_HOLD_LIMIT && has(third.error().text(), "max_held"));
    held.clear();
    EXPECT(subscriber.take(LONG).ok());
}

static void other_types_are_refused() {
    auto n = node();
    auto wrong = n.publisher<WrongString>("/types");
    EXPECT(wrong.status() == ROPEWALK_STATUS_TYPE && has(wrong.error().text(), "generate the code again"));
    EXPECT(n.publisher<Image>("no name").status() == ROPEWALK_STATUS_INVALID_ARGUMENT);
    EXPECT(ropewalk::Node::create("a/b").status() == ROPEWALK_STATUS_INVALID_ARGUMENT);

    auto publisher = n.publisher<std_msgs::String>("/types").value();
    auto subscriber = n.subscriber<OldString>("/types").value();
    while (subscriber.refusals().empty() || publisher.refusals().empty()) std::this_thread::sleep_for(5ms);
    EXPECT(has(subscriber.refusals(), "MD5") && has(publisher.refusals(), "992ce8a1687cec8c8bd883ec73ca41d1"));
    EXPECT(publisher.subscriber_count() == 0);
#if defined(__cpp_exceptions)
    try {
        (void)n.publisher<WrongString>("/types").value();
        EXPECT(false);
    } catch (const ropewalk::Exception& e) {
        EXPECT(e.error().status() == ROPEWALK_STATUS_TYPE);
    }
#endif
}

#if defined(__cpp_exceptions)
static void callbacks_go_on() {
    auto [publisher, subscriber] = ends<std_msgs::String>("/callback");
    std::atomic<int> heard{0};
    auto f = [&heard](auto message) {
        if (message->data == "throw") throw std::runtime_error("as told");
        if (message->data == "seven") throw 7;
        heard++;
    };
    auto callback = std::move(subscriber).callback(f);
    std_msgs::String text;
    for (auto* word : {"", "throw", "seven", "throw", ""}) {
        text.data = word;
        (void)publisher.publish(text).value();
    }
    while (heard < 2) std::this_thread::sleep_for(1ms);
    EXPECT(callback.errors() == 3 && callback.error().empty() && callback.is_running());

    auto ending = ends<std_msgs::String>("/ending");
    auto options = ropewalk::CallbackOptions().with_end_on_error(true);
    auto ended = std::move(ending.subscriber).callback(f, options);
    text.data = "throw";
    (void)ending.publisher.publish(text).value();
    while (ended.is_running()) std::this_thread::sleep_for(1ms);
    EXPECT(has(ended.error(), "it threw: as told") && ended.errors() == 1);
}

// An exception of a server's function goes to the client, and the next request is answered.
static void servers_go_on() {
    auto n = node();
    std::atomic<int> asked{0};
    auto f = [&asked](const SetBool::Request&) -> ropewalk::Result<SetBool::Response> {
        if (asked == 6) asked++, throw std::runtime_error("\xff is not UTF-8");
        if (asked++ % 2 == 0) throw 7;
        return SetBool::Response();
    };
    auto serving = n.server<SetBool>("/odd").value().callback(f);
    auto client = n.client<SetBool>("/odd").value();
    client.wait_for_server(LONG).value();
    for (int i = 0; i < 3; i++) {
        EXPECT(has(client.call({}, LONG).error().text(), "the server threw something"));
        EXPECT(client.call({}, LONG).ok());
    }
    EXPECT(has(client.call({}, LONG).error().text(), "\xef\xbf\xbd is not UTF-8"));
    // It is counted after the client has received it.
    while (serving.errors() < 4) std::this_thread::sleep_for(1ms);
    EXPECT(serving.errors() == 4 && serving.is_running());
}
#endif

// A callback that its own function destroys, replaces or stops.
static void callbacks_end_themselves() {
    for (int how = 0; how < 3; how++) {
        auto [publisher, subscriber] = ends<std_msgs::String>("/itself");
        struct Shared {
            std::mutex mutex;
            std::optional<ropewalk::Callback> callback;
            std::atomic<int> heard{0};
            std::shared_ptr<int> alive = std::make_shared<int>(0);
        } shared;
        std::weak_ptr<int> alive = shared.alive;
        auto f = [&shared, how, keeps = std::move(shared.alive)](auto) {
            std::lock_guard<std::mutex> lock(shared.mutex);
            if (how == 0) shared.callback.reset();
            if (how == 1) *shared.callback = std::move(ends<std_msgs::String>("/idle").subscriber).callback([](auto) {});
            if (how == 2) shared.callback->stop();
            shared.heard++;
        };
        {
            std::lock_guard<std::mutex> lock(shared.mutex);
            shared.callback = std::move(subscriber).callback(std::move(f));
        }
        (void)publisher.publish(std_msgs::String()).value();
        // Its thread ends, and what the function holds is freed.
        while (!alive.expired()) std::this_thread::sleep_for(1ms);
        EXPECT(shared.heard == 1);
        std::lock_guard<std::mutex> lock(shared.mutex);
        EXPECT(how != 1 || shared.callback->is_running());
    }
    // A callback that waits forever can also be stopped.
    auto idle = std::move(ends<std_msgs::String>("/idle").subscriber).callback([](auto) {});
}

static void wait_sets() {
    auto n = node();
    auto set = n.wait_set().value();
    auto options = ropewalk::SubscriberOptions().with_wait_set(set);
    auto a = n.subscriber<std_msgs::String>("/a", options).value();
    auto b = n.subscriber<std_msgs::String>("/b", options).value();
    auto publisher = n.publisher<std_msgs::String>("/b").value();
    publisher.wait_for_subscribers(1, LONG).value();
    EXPECT(set.wait(0s).error().empty());
    (void)publisher.publish(std_msgs::String()).value();
    set.wait(LONG).value();
    EXPECT(a.take().error().empty() && b.take().ok() && set.fd() >= 0);
    std::thread other([&set] { set.interrupt(); });
    EXPECT(set.wait(ropewalk::forever).error().empty());
    other.join();
}

static void services() {
    auto n = node();
    auto client = n.client<SetBool>("/switch").value();
    EXPECT(client.call({}, LONG).status() == ROPEWALK_STATUS_NO_PEER);
    auto server = n.server<SetBool>("/switch").value();
    auto serving = std::move(server).callback([](const SetBool::Request& request) -> ropewalk::Result<SetBool::Response> {
        if (!request.data) throw std::runtime_error("a fault");
        SetBool::Response response;
        response.success = 1;
        response.message = "on";
        return response;
    });
    client.wait_for_server(LONG).value();
    SetBool::Request request;
    request.data = 1;
    auto answer = client.call(request, LONG).value();
    EXPECT(answer->success == 1 && answer->message == "on");
    request.data = 0;
    auto thrown = client.call(request, LONG);
    EXPECT(thrown.status() == ROPEWALK_STATUS_REJECTED && has(thrown.error().text(), "the server threw: a fault"));

    auto other = n.server<SetBool>("/silent").value();
    auto asker = n.client<SetBool>("/silent").value();
    asker.wait_for_server(LONG).value();
    auto pending = asker.send(request, LONG).value();
    EXPECT(pending.poll().error().empty());
    { auto unanswered = other.take(LONG).value(); }
    EXPECT(!pending.wait().ok());
    EXPECT(asker.call(request, 10ms).status() == ROPEWALK_STATUS_TIMEOUT);
}

// After a publisher is killed, taken messages stay readable, and its successor is found; killing a subscriber costs
// nothing. Forks before any handle is created, since forked handles fail.
static void dead_peers() {
    pid_t child = fork();
    if (child == 0) {
        auto [publisher, subscriber] = ends<Image>("/dead");
        auto second = node().subscriber<Image>("/alive").value();
        for (;;) {
            ropewalk::Loan<Image> image;
            image->data.resize(1 << 20);
            if (publisher.allocate(image)) {
                std::memset(image->data.data(), 5, image->data.size());
                (void)publisher.publish(image);
            }
            (void)second.take(1ms);
        }
    }
    auto n = node();
    auto subscriber = n.subscriber<Image>("/dead").value();
    auto publisher = n.publisher<Image>("/alive").value();
    publisher.wait_for_subscribers(1, LONG).value();
    auto held = subscriber.take(LONG).value();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT(held->data.size() == 1 << 20);
    for (auto byte : held->data) EXPECT(byte == 5);
    while (publisher.subscriber_count() > 0) std::this_thread::sleep_for(5ms);
    // All of the memory is available again.
    ropewalk::Loan<Image> image;
    image->data.resize(200 << 20);
    publisher.allocate(image).value();
}

static void forked_handles() {
    auto [publisher, subscriber] = ends<Image>("/forked");
    ropewalk::Loan<Image> image;
    image->data.resize(5000);
    publisher.allocate(image).value();
    std::memset(image->data.data(), 3, 5000);
    (void)publisher.publish(image).value();
    auto held = subscriber.take(LONG).value();
    pid_t child = fork();
    if (child == 0) {
        bool good = held->data[4999] == 3 && subscriber.take().status() == ROPEWALK_STATUS_FORKED &&
                    publisher.allocate(image).status() == ROPEWALK_STATUS_FORKED;
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
    EXPECT(held->data[0] == 3);
}

int main() {
    dead_peers();
    forked_handles();
    written_in_place();
    nested_and_small_fields();
    bad_use_of_loans();
    holding_too_many();
    other_types_are_refused();
#if defined(__cpp_exceptions)
    callbacks_go_on();
    servers_go_on();
#endif
    callbacks_end_themselves();
    wait_sets();
    services();
    std::cout << "C++: done\n";
}
