// Robots and controllers as users have them, rightly and wrongly.

#include "ropewalk/remote.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <iostream>
#include <random>

using namespace std::chrono_literals;
using ropewalk::Result;
namespace remote = ropewalk::remote;
namespace command = remote::command;
namespace telemetry = remote::telemetry;
using remote::CommandInfo;

// Long enough for any machine: it bounds hanging, not speed.
constexpr auto LONG = 60s;

static void expect(bool good, const char* what, int line) {
    if (good) return;
    std::cerr << "line " << line << ": " << what << "\n";
    std::_Exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static bool has(const std::string& text, const char* part) {
    if (text.find(part) != std::string::npos) return true;
    std::cerr << "\"" << text << "\" has no \"" << part << "\"\n";
    return false;
}

template <class Condition>
static void eventually(Condition condition) {
    auto until = std::chrono::steady_clock::now() + LONG;
    while (!condition()) {
        EXPECT(std::chrono::steady_clock::now() < until);
        std::this_thread::sleep_for(2ms);
    }
}

static ropewalk::Node node() { return ropewalk::Node::create("remote").value(); }

struct Pair {
    remote::Robot robot;
    remote::Controller controller;
};

static Pair pair(const char* name) {
    auto n = node();
    // Nobody is lost because the machine is busy.
    auto options = ropewalk_robot_options_default();
    options.lost_after_ns = std::chrono::nanoseconds(5s).count();
    return {remote::Robot::create(n, name, options).value(), remote::Controller::create(n, "desk", name).value()};
}

// What a protocol buffer library makes looks like this.
struct Litres {
    double value = 0;
    std::string SerializeAsString() const { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }
    bool ParseFromArray(const void* data, int len) {
        if (len != sizeof value) return false;
        std::memcpy(&value, data, sizeof value);
        return true;
    }
};
constexpr remote::CommandKind<Litres> Spray{"acme.Spray", "nozzle"};
constexpr remote::TelemetryKind<Litres> Tank{"acme.Tank"};

static remote::Twist twist(float forward) {
    remote::Twist twist;
    twist.linear.x = forward;
    return twist;
}

static void structures() {
    remote::JointCommand joints;
    joints.header.emplace();
    joints.header->frame = "arm";
    joints.header->timestamp = {1, 999999999};
    joints.name = {"a", "", "c"};
    joints.position = {1.5, -0.0, 3};
    joints.tics = {0, 127, 128, ~std::uint64_t{0}};
    joints.kd_gain = {9};
    auto bytes = remote::detail::encode(joints);
    auto read = [](const std::string& from, auto& into) {
        // Of its exact length, so that a tool sees what reads beyond it.
        std::vector<std::uint8_t> exact(from.begin(), from.end());
        return remote::detail::decode(exact.data(), exact.size(), into);
    };
    remote::JointCommand back;
    EXPECT(read(bytes, back) && back.name == joints.name && back.tics == joints.tics && back.kd_gain == joints.kd_gain);
    EXPECT(back.header->frame == "arm" && back.header->timestamp.nsecs == 999999999 && std::signbit(back.position[1]));

    // A twist as other makers write it, fields in another order, with one that is not known, and doubles one by one.
    remote::Twist turned;
    EXPECT(read(std::string("\x1a\x05\x1d\x00\x00\x80\x3f\x98\x06\x07\x12\x05\x0d\x00\x00\x00\x40", 17), turned));
    EXPECT(turned.angular.z == 1 && turned.linear.x == 2 && !turned.header);
    remote::JointState unpacked;
    EXPECT(read(std::string("\x19\0\0\0\0\0\0\xf0\x3f\x19\0\0\0\0\0\0\0\x40", 18), unpacked));
    EXPECT((unpacked.position == std::vector<double>{1, 2}));
    // Cut anywhere it is malformed or shorter; changed anywhere it is read or refused.
    std::mt19937 random(1);
    for (int i = 0; i < 20000; i++) {
        auto mutant = bytes;
        mutant[random() % mutant.size()] = static_cast<char>(random());
        mutant.resize(random() % (mutant.size() + 1));
        remote::JointCommand as_joints;
        remote::Pose as_pose;
        (void)read(mutant, as_joints), (void)read(mutant, as_pose);
    }
    remote::Pose pose;
    EXPECT(!read("\x0a\xff", pose) && !read("\x0b", pose) && !read(std::string("\0", 1), pose));
    EXPECT(!read(std::string(11, '\xff'), pose));
}

static void outcomes() {
    auto [robot, controller] = pair("outcomes");
    std::atomic<double> sprayed{0};
    robot.on(Spray, [&](const Litres& litres, const CommandInfo& info) -> Result<void> {
        EXPECT(info.controller == "desk" && info.controller_id != 0 && info.age);
        if (litres.value > 5) return remote::reject("so much is not in the tank");
        sprayed = litres.value;
        return {};
    }).value();
    robot.on(command::Twist, [](const remote::Twist& twist, const CommandInfo&) {
        if (twist.linear.x > 1) throw std::runtime_error("faster than the wheels turn");
        if (twist.linear.x < -1) throw 7;
    }).value();
    controller.wait_until_found(LONG).value();
    EXPECT(controller.round_trip() && controller.id() != 0);

    EXPECT(controller.command(Spray, Litres{2}, LONG).value().executed() && sprayed == 2);
    EXPECT(controller.command(Spray, Litres{9}, LONG).value().text() == "rejected: so much is not in the tank");
    EXPECT(controller.command(command::Twist, twist(0.5F), LONG).value().executed());
    auto thrown = controller.command(command::Twist, twist(2), LONG).value();
    EXPECT(thrown.what == ROPEWALK_OUTCOME_REJECTED && has(thrown.reason, "it threw: faster than the wheels turn"));
    EXPECT(has(controller.command(command::Twist, twist(-2), LONG).value().reason, "no std::exception"));
    // The handler works on.
    EXPECT(controller.command(command::Twist, twist(0.1F), LONG).value().executed());
    auto unknown = controller.command(command::SimpleAction, remote::Bytes(), LONG).value();
    EXPECT(unknown.what == ROPEWALK_OUTCOME_REJECTED && has(unknown.reason, "SimpleAction"));

    // Polled, and told again as often as it is asked.
    auto sent = controller.send(Spray, Litres{1}, LONG).value();
    Result<remote::Outcome> outcome = sent.poll();
    eventually([&] { return (outcome = sent.poll()).ok(); });
    EXPECT(outcome->executed() && sent.wait().value().executed());
    // Another program's bytes that are no litres are rejected, and so are twists that are none.
    EXPECT(has(controller.command(Spray.as<remote::Bytes>(), std::string("abc"), LONG).value().reason, "malformed"));
    auto none = controller.command(command::Twist.as<remote::Bytes>(), std::string("\xff"));
    EXPECT(none.status() == ROPEWALK_STATUS_CONTENT && has(none.error().text(), "no body of"));
}

static void values() {
    auto [robot, controller] = pair("values");
    std::atomic<int> came{0};
    std::atomic<double> level{0};
    controller.on(Tank, [&](const Litres& litres, const remote::TelemetryInfo& info) {
        EXPECT(info.channel == 2 && info.sequence > 0);
        level = litres.value;
        if (came++ == 0) throw std::runtime_error("as told");
    }, 2).value();
    EXPECT(controller.latest(Tank, 2).error().empty());
    controller.wait_until_found(LONG).value();
    robot.set(Tank, Litres{5}, 2).value();
    eventually([&] { return came == 1; });
    robot.set(Tank, Litres{4}, 2).value();
    eventually([&] { return came == 2 && level == 4; });
    EXPECT(controller.latest(Tank, 2).value().value == 4);
    EXPECT(controller.latest(Tank.as<remote::Twist>(), 2).status() == ROPEWALK_STATUS_CONTENT);
    // Kept to be asked for.
    EXPECT(controller.fetch(telemetry::RobotName, LONG).value().value == "values");
    EXPECT(controller.fetch(Tank, LONG, 9).error().empty());
    EXPECT(controller.fetch(telemetry::Map, LONG).status() == ROPEWALK_STATUS_REJECTED);

    remote::Pose pose;
    pose.position.y = 3;
    robot.set(telemetry::CurrentPose, pose).value();
    EXPECT(controller.fetch(telemetry::CurrentPose, LONG).value().position.y == 3);
    auto wrong = robot.set(telemetry::CurrentPose.as<remote::Bytes>(), std::string("\xff"));
    EXPECT(wrong.status() == ROPEWALK_STATUS_CONTENT && has(wrong.error().text(), "no body of"));
    auto large = robot.set(remote::TelemetryKind<>{"acme.Film"}, std::string(300 << 20, 'x'));
    EXPECT(large.status() == ROPEWALK_STATUS_INVALID_ARGUMENT && has(large.error().text(), "is the most"));
    EXPECT(robot.set(remote::TelemetryKind<>{""}, std::string()).status() == ROPEWALK_STATUS_INVALID_ARGUMENT);
}

static void rights() {
    auto [robot, controller] = pair("rights");
    std::atomic<int> stopped{0}, comings{0}, found{0};
    robot.on(command::Twist, [&](const remote::Twist& twist, const CommandInfo& info) {
        if (info.controller_id == 0 && twist.linear.x == 0) stopped++;
    }).value();
    robot.on_link_lost([](const std::string& subsystem, const std::string& who) -> bool {
        EXPECT(subsystem == "base" && who == "desk");
        throw std::runtime_error("what fails does not keep it moving");
    }).value();
    robot.on_controller([&](std::uint64_t, const std::string&, bool came) { comings += came ? 1 : 0; }).value();
    robot.on_take_over([](const std::string& subsystem, const std::string& by, const std::string& holder) {
        EXPECT(subsystem == "base" && by == "rival" && holder == "desk");
        return false;
    }).value();
    controller.on_connection([&](bool is) { found += is ? 1 : 0; }).value();
    auto rival = remote::Controller::create(node(), "rival", "rights").value();
    controller.wait_until_found(LONG).value();
    rival.wait_until_found(LONG).value();
    eventually([&] { return comings >= 1; });

    EXPECT(!robot.holder("base"));
    EXPECT(controller.command(command::Twist, twist(1), LONG).value().executed());
    EXPECT(robot.holder("base") == controller.id());
    EXPECT(has(rival.command(command::Twist, twist(1), LONG).value().reason, "the right to move base is desk's"));
    auto asked = rival.right("base").value();
    EXPECT(asked.holder == controller.id() && asked.holder_name == "desk" && !asked.mine);
    EXPECT(rival.request_right("base").status() == ROPEWALK_STATUS_REJECTED);
    EXPECT(rival.take_right_over("base").status() == ROPEWALK_STATUS_REJECTED);
    EXPECT(controller.hand_right_over("base", rival.id()).value().holder == rival.id());
    EXPECT(rival.release_right("base").value().holder == 0);
    EXPECT(controller.request_right("base").value().mine && stopped == 0);
    { auto gone = std::move(controller); }
    eventually([&] { return stopped == 1; });
    // What was moved away is refused.
    EXPECT(controller.id() == 0 && controller.request_right("base").status() == ROPEWALK_STATUS_INVALID_ARGUMENT);
    EXPECT(has(controller.send(command::Twist, twist(0)).error().text(), "the controller is NULL"));
}

static void ends() {
    auto n = node();
    auto controller = remote::Controller::create(n, "desk", "ends").value();
    std::atomic<bool> begun{false}, ended{false};
    {
        auto robot = remote::Robot::create(n, "ends").value();
        robot.on(Spray, [&](const Litres&, const CommandInfo&) {
            begun = true;
            std::this_thread::sleep_for(300ms);
            ended = true;
        }).value();
        controller.wait_until_found(LONG).value();
        (void)controller.send(Spray, Litres{1}, LONG).value();
        eventually([&] { return begun.load(); });
    }
    // Nothing that it calls outlives the robot.
    EXPECT(ended);
    auto outcome = controller.command(Spray, Litres{1}, 100ms).value();
    EXPECT(outcome.what == ROPEWALK_OUTCOME_UNREACHABLE || outcome.what == ROPEWALK_OUTCOME_MAYBE_EXECUTED);
    EXPECT(remote::Robot::create(n, "no name").status() == ROPEWALK_STATUS_INVALID_ARGUMENT);
    // A controller whose callback destroys another one.
    auto other = std::make_shared<Result<remote::Controller>>(remote::Controller::create(n, "other", "ends"));
    auto robot = remote::Robot::create(n, "ends").value();
    std::atomic<bool> dropped{false};
    controller.on(Tank, [&](const Litres&, const remote::TelemetryInfo&) {
        if (!dropped) *other = ropewalk::Error(ROPEWALK_STATUS_EMPTY, "");
        dropped = true;
    }).value();
    eventually([&] {
        robot.set(Tank, Litres{1}).value();
        return dropped.load();
    });
}

static void forked() {
    auto [robot, controller] = pair("forked");
    controller.wait_until_found(LONG).value();
    pid_t child = fork();
    if (child == 0) {
        bool good = robot.set(Tank, Litres{1}).status() == ROPEWALK_STATUS_FORKED &&
                    controller.send(Spray, Litres{1}).status() == ROPEWALK_STATUS_FORKED;
        {
            auto gone = std::move(robot);
            auto too = std::move(controller);
        }
        _exit(good ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
    EXPECT(controller.fetch(telemetry::RobotName, LONG).value().value == "forked");
}

int main() {
    structures();
    forked();
    outcomes();
    values();
    rights();
    ends();
    std::cout << "C++ remote: done\n";
}
