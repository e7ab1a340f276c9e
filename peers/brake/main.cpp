// The parts of the robot of `ropewalk bench brake` on ROS 1 (roscpp); README.md describes their arguments and
// output. `tcpros` is roscpp's default transport; with `nodelay` the subscribers also request TCP_NODELAY.
#include <geometry_msgs/Twist.h>
#include <sensor_msgs/Image.h>

#include <algorithm>
#include <map>

#include "ros.hpp"
#include "scene.hpp"

namespace {

constexpr size_t kMost = 10000;  // maximum number of images whose times are kept

struct Options {
    std::string command, system, topic, application;
    uint32_t queue = 1;
    uint64_t watchers = 0, event_us = 0, end_ms = 0;
    brake::Region roi;
    brake::Color color = brake::red;

    std::string image_topic() const { return topic + "/image"; }
    std::string command_topic() const { return topic + "/cmd_vel"; }

    ros::TransportHints hints() const {
        return system == "nodelay" ? ros::TransportHints().tcpNoDelay() : ros::TransportHints();
    }
};

brake::Region parse_roi(const std::string& text) {
    const size_t x = text.find('x');
    if (x == std::string::npos) peer::fail(2, "--roi %s: give WIDTHxHEIGHT", text.c_str());
    brake::Region roi;
    roi.width = static_cast<int>(peer::parse_number("--roi", text.substr(0, x).c_str(), 64, brake::kWidth));
    roi.height = static_cast<int>(peer::parse_number("--roi", text.substr(x + 1).c_str(), 112, brake::kHeight));
    if (roi.width % 2 || roi.height % 2) peer::fail(2, "--roi %s: give even numbers", text.c_str());
    return roi;
}

Options parse(int argc, char** argv) {
    static const std::map<std::string, std::vector<std::string>> needs = {
        {"version", {}},
        {"check", {"--roi"}},
        {"camera", {"--topic", "--queue", "--watchers", "--roi", "--application", "--event-us", "--end-ms"}},
        {"logger", {"--topic", "--queue"}},
        {"recognizer", {"--topic", "--queue", "--roi", "--color"}},
    };
    const std::string command = argc > 1 ? argv[1] : "";
    const auto known = needs.find(command);
    if (known == needs.end()) peer::fail(2, "first argument '%s': give version, check, camera, logger or recognizer", command.c_str());
    std::map<std::string, std::string> given;
    for (int i = 2; i < argc; i += 2) {
        if (argv[i] != std::string("--system") && !peer::contains(known->second, argv[i])) peer::fail(2, "unknown option %s", argv[i]);
        if (i + 1 == argc) peer::fail(2, "%s needs a value", argv[i]);
        given[argv[i]] = argv[i + 1];
    }
    for (const auto& name : known->second)
        if (!given.count(name)) peer::fail(2, "%s is missing", name.c_str());
    const auto number = [&](const char* name, uint64_t low, uint64_t high) {
        return given.count(name) ? peer::parse_number(name, given[name].c_str(), low, high) : low;
    };
    Options o;
    o.command = command;
    o.system = given["--system"];
    if (o.system != "tcpros" && o.system != "nodelay") peer::fail(2, "--system '%s': this program serves tcpros, nodelay", o.system.c_str());
    if (given.count("--topic")) o.topic = given["--topic"];
    o.queue = static_cast<uint32_t>(number("--queue", 1, 64));
    o.watchers = number("--watchers", 1, 64);
    o.event_us = number("--event-us", 1, 60000000);
    o.end_ms = number("--end-ms", 1, 120000);
    if (given.count("--roi")) o.roi = parse_roi(given["--roi"]);
    if (given.count("--application")) o.application = given["--application"];
    if (!o.application.empty() && o.application != "straight" && o.application != "turn")
        peer::fail(2, "--application %s: give straight or turn", o.application.c_str());
    if (given.count("--color")) {
        const auto name = std::find(std::begin(brake::kNames), std::end(brake::kNames), given["--color"]);
        if (name == std::end(brake::kNames)) peer::fail(2, "--color %s: give red, yellow or green", given["--color"].c_str());
        o.color = static_cast<brake::Color>(name - std::begin(brake::kNames));
    }
    return o;
}

int check(const Options& o) {
    std::vector<uint8_t> image(brake::kBytes);
    brake::Scene().draw(image.data(), 77, 963, brake::red);
    uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
    for (uint8_t byte : image) hash = (hash ^ byte) * 0x100000001b3u;
    char text[64];
    snprintf(text, sizeof text, "{\"hash\": \"%016llx\", \"found\": {", static_cast<unsigned long long>(hash));
    std::string line = text;
    for (auto color : {brake::red, brake::yellow, brake::green}) {
        const brake::Match m = brake::Recognizer(color, o.roi).find(image.data());
        line += std::string(color ? ", \"" : "\"") + brake::kNames[color] + "\": " + peer::numbers({m.sum, static_cast<uint64_t>(m.x), static_cast<uint64_t>(m.y)});
    }
    line += "}, \"columns\": [";
    for (int degrees = -35; degrees < 35; ++degrees) line += (degrees > -35 ? "," : "") + std::to_string(*brake::column(degrees));
    snprintf(text, sizeof text, "], \"entry\": %.1f}", std::round(brake::entry_degrees(o.roi.width) * 1e6));
    peer::say(line + text);
    return 0;
}

// The first image in which the light is visible or recognized, as JSON.
std::string first_json(uint64_t sequence, const char* a, uint64_t a_ns, const char* b = nullptr, uint64_t b_ns = 0) {
    std::string text = "{\"sequence\": " + std::to_string(sequence) + ", \"" + a + "\": " + std::to_string(a_ns);
    if (b) text += ", \"" + std::string(b) + "\": " + std::to_string(b_ns);
    return text + "}";
}

// The view this many seconds after the event.
struct View {
    std::optional<int> column;
    brake::Color lit = brake::red;
    bool red = false;  // whether the red light can be recognized

    View(const Options& o, double seconds) {
        if (o.application == "straight") {
            red = seconds >= 0;
            lit = red ? brake::red : brake::green;
            column = brake::column(0);
            return;
        }
        column = brake::column(brake::kTurn * seconds - brake::entry_degrees(o.roi.width));
        red = column && brake::in_region(*column, o.roi.width);
    }
};

void camera(const Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    ros::Publisher publisher = node.advertise<sensor_msgs::Image>(o.image_topic(), o.queue);
    std::atomic<uint64_t> command{0};
    const boost::function<void(const geometry_msgs::TwistConstPtr&)> heard = [&](const geometry_msgs::TwistConstPtr&) {
        const uint64_t now = peer::now_ns();
        uint64_t none = 0;
        command.compare_exchange_strong(none, now);  // only the first one counts
    };
    const ros::Subscriber commands = node.subscribe<geometry_msgs::Twist>(o.command_topic(), 1, heard, ros::VoidConstPtr(), o.hints());
    ros::AsyncSpinner spinner(1);
    spinner.start();
    while ((publisher.getNumSubscribers() < o.watchers || !commands.getNumPublishers()) && orchestrator.pause_ms(5)) {}

    const brake::Scene scene;
    // publish() serializes at once, so one image serves all.
    sensor_msgs::Image image;
    image.header.frame_id = "camera";
    image.encoding = "rgb8";
    image.width = brake::kWidth;
    image.height = brake::kHeight;
    image.step = brake::kStep;
    image.data.resize(brake::kBytes);
    peer::ready_and_go(orchestrator);

    std::vector<uint64_t> draw_ns = peer::reserved(kMost);
    uint64_t images = 0;
    std::string first = "null";
    const uint64_t start = peer::now_ns();
    for (uint64_t sequence = 0; !orchestrator.stopped(); ++sequence) {
        const timespec due = peer::to_timespec(start + static_cast<uint64_t>(1e9 / 30 * static_cast<double>(sequence)));
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
        const uint64_t now = peer::now_ns();
        if (command || now > start + o.end_ms * 1000000) break;
        const View view(o, static_cast<double>(now - start) / 1e9 - static_cast<double>(o.event_us) / 1e6);
        scene.draw(image.data.data(), static_cast<uint32_t>(sequence) * 5, view.column, view.lit);
        memcpy(image.data.data() + 8, &sequence, 8);
        const uint64_t stamp = peer::now_ns();
        memcpy(image.data.data(), &stamp, 8);
        publisher.publish(image);
        ++images;
        if (draw_ns.size() < kMost) draw_ns.push_back(stamp - now);
        if (view.red && first == "null") first = first_json(sequence, "stamp_ns", stamp);
    }
    std::sort(draw_ns.begin(), draw_ns.end());
    const uint64_t arrived = command;
    peer::say("{\"start_ns\": " + std::to_string(start) + ", \"images\": " + std::to_string(images) + ", \"refused\": 0, \"first\": " + first +
              ", \"command_ns\": " + (arrived ? std::to_string(arrived) : "null") +
              ", \"draw_ns\": " + std::to_string(draw_ns.empty() ? 0 : draw_ns[draw_ns.size() / 2]) + "}");
    orchestrator.wait_stop();
}

// The logger and the recognizers.
void watch(const Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    std::optional<brake::Recognizer> recognizer;
    ros::Publisher command;
    if (o.command == "recognizer") {
        recognizer.emplace(o.color, o.roi);
        if (o.color == brake::red) command = node.advertise<geometry_msgs::Twist>(o.command_topic(), 1);
    }
    std::vector<uint64_t> latency_ns = peer::reserved(kMost), match_ns = peer::reserved(kMost);
    uint64_t images = 0, hits = 0;
    std::string first = "null";
    const boost::function<void(const sensor_msgs::ImageConstPtr&)> callback = [&](const sensor_msgs::ImageConstPtr& image) {
        const uint64_t received = peer::now_ns();
        if (image->data.size() != brake::kBytes) peer::fail(1, "brake: an image of another size: give each trial its own --topic");
        uint64_t stamp, sequence;
        memcpy(&stamp, image->data.data(), 8);
        memcpy(&sequence, image->data.data() + 8, 8);
        ++images;
        if (latency_ns.size() < kMost) latency_ns.push_back(received - stamp);
        if (!recognizer) return;
        const bool hit = recognizer->find(image->data.data()).recognized();
        const uint64_t recognized = peer::now_ns();
        if (match_ns.size() < kMost) match_ns.push_back(recognized - received);
        if (!hit) return;
        if (command) command.publish(geometry_msgs::Twist());
        if (!hits++) first = first_json(sequence, "received_ns", received, "recognized_ns", recognized);
    };
    const ros::Subscriber subscriber = node.subscribe<sensor_msgs::Image>(o.image_topic(), o.queue, callback, ros::VoidConstPtr(), o.hints());
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    peer::say("{\"images\": " + std::to_string(images) + ", \"latency_ns\": " + peer::numbers(latency_ns) + ", \"match_ns\": " + peer::numbers(match_ns) +
              ", \"hits\": " + std::to_string(hits) + ", \"first\": " + first + "}");
}

}  // namespace

int main(int argc, char** argv) {
    const Options o = parse(argc, argv);
    if (o.command == "version") {
        peer::Options reported;
        reported.system = o.system;
        return peer::version(reported, std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." + std::to_string(ROS_VERSION_PATCH), {"block"});
    }
    if (o.command == "check") return check(o);
    peer::Orchestrator orchestrator;
    peer::start_ros(o.system, orchestrator, "ropewalk_brake_" + o.command);
    if (o.command == "camera") camera(o, orchestrator);
    else watch(o, orchestrator);
    ros::shutdown();
}
