// Correct and incorrect use of robots and controllers.

#include "ropewalk/remote.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>

using namespace std::chrono_literals;
using ropewalk::Result;
namespace remote = ropewalk::remote;
namespace command = remote::command;
namespace telemetry = remote::telemetry;
using remote::CommandInfo;
using remote::Zmq;

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
    // A busy machine must not count as a lost peer.
    auto options = ropewalk_robot_options_default();
    options.lost_after_ns = std::chrono::nanoseconds(5s).count();
    return {remote::Robot::create(n, name, options).value(), remote::Controller::create(n, "desk", name).value()};
}

// Like a class from a protocol buffer library.
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
        // Of its exact length, so that a sanitizer sees reads beyond it.
        std::vector<std::uint8_t> exact(from.begin(), from.end());
        return remote::detail::decode(exact.data(), exact.size(), into);
    };
    remote::JointCommand back;
    EXPECT(read(bytes, back) && back.name == joints.name && back.tics == joints.tics && back.kd_gain == joints.kd_gain);
    EXPECT(back.header->frame == "arm" && back.header->timestamp.nsecs == 999999999 && std::signbit(back.position[1]));

    // A twist as other vendors write it: fields in a different order, an unknown one, and doubles one by one.
    remote::Twist turned;
    EXPECT(read(std::string("\x1a\x05\x1d\x00\x00\x80\x3f\x98\x06\x07\x12\x05\x0d\x00\x00\x00\x40", 17), turned));
    EXPECT(turned.angular.z == 1 && turned.linear.x == 2 && !turned.header);
    remote::JointState unpacked;
    EXPECT(read(std::string("\x19\0\0\0\0\0\0\xf0\x3f\x19\0\0\0\0\0\0\0\x40", 18), unpacked));
    EXPECT((unpacked.position == std::vector<double>{1, 2}));
    // A cut encoding is malformed or shorter; a changed one is read or refused.
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
        if (litres.value > 5) return remote::reject("there is not enough in the tank");
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
    EXPECT(controller.command(Spray, Litres{9}, LONG).value().text() == "rejected: there is not enough in the tank");
    EXPECT(controller.command(command::Twist, twist(0.5F), LONG).value().executed());
    auto thrown = controller.command(command::Twist, twist(2), LONG).value();
    EXPECT(thrown.what == ROPEWALK_OUTCOME_REJECTED && has(thrown.reason, "it threw: faster than the wheels turn"));
    EXPECT(has(controller.command(command::Twist, twist(-2), LONG).value().reason, "other than std::exception"));
    // The handler keeps working.
    EXPECT(controller.command(command::Twist, twist(0.1F), LONG).value().executed());
    auto unknown = controller.command(command::SimpleAction, remote::Bytes(), LONG).value();
    EXPECT(unknown.what == ROPEWALK_OUTCOME_REJECTED && has(unknown.reason, "SimpleAction"));

    // Polled; the outcome can be read repeatedly.
    auto sent = controller.send(Spray, Litres{1}, LONG).value();
    Result<remote::Outcome> outcome = sent.poll();
    eventually([&] { return (outcome = sent.poll()).ok(); });
    EXPECT(outcome->executed() && sent.wait().value().executed());
    // Another program's bytes that are not litres are rejected, and so are malformed twists.
    EXPECT(has(controller.command(Spray.as<remote::Bytes>(), std::string("abc"), LONG).value().reason, "malformed"));
    auto none = controller.command(command::Twist.as<remote::Bytes>(), std::string("\xff"));
    EXPECT(none.status() == ROPEWALK_STATUS_CONTENT && has(none.error().text(), "not a valid"));
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
    // The latest value is kept for queries.
    EXPECT(controller.fetch(telemetry::RobotName, LONG).value().value == "values");
    EXPECT(controller.fetch(Tank, LONG, 9).error().empty());
    EXPECT(controller.fetch(telemetry::Map, LONG).status() == ROPEWALK_STATUS_REJECTED);

    remote::Pose pose;
    pose.position.y = 3;
    robot.set(telemetry::CurrentPose, pose).value();
    EXPECT(controller.fetch(telemetry::CurrentPose, LONG).value().position.y == 3);
    auto wrong = robot.set(telemetry::CurrentPose.as<remote::Bytes>(), std::string("\xff"));
    EXPECT(wrong.status() == ROPEWALK_STATUS_CONTENT && has(wrong.error().text(), "not a valid"));
    auto large = robot.set(remote::TelemetryKind<>{"acme.Film"}, std::string(300 << 20, 'x'));
    EXPECT(large.status() == ROPEWALK_STATUS_INVALID_ARGUMENT && has(large.error().text(), "exceeds the limit"));
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
    EXPECT(has(rival.command(command::Twist, twist(1), LONG).value().reason, "desk holds the right to move base"));
    auto asked = rival.right("base").value();
    EXPECT(asked.holder == controller.id() && asked.holder_name == "desk" && !asked.mine);
    EXPECT(rival.request_right("base").status() == ROPEWALK_STATUS_REJECTED);
    EXPECT(rival.take_right_over("base").status() == ROPEWALK_STATUS_REJECTED);
    EXPECT(controller.hand_right_over("base", rival.id()).value().holder == rival.id());
    EXPECT(rival.release_right("base").value().holder == 0);
    EXPECT(controller.request_right("base").value().mine && stopped == 0);
    { auto gone = std::move(controller); }
    eventually([&] { return stopped == 1; });
    // A moved-from controller is refused.
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
    // No callback outlives the robot.
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

static void started_later() {
    auto n = node();
    auto options = ropewalk_robot_options_default();
    options.start_later = true;
    auto robot = remote::Robot::create(n, "later", options).value();
    auto controller = remote::Controller::create(n, "desk", "later").value();
    // However early it asks, it never learns that the command does not exist.
    std::atomic<bool> executed{false};
    std::thread early([&] {
        while (!executed) {
            auto outcome = controller.command(Spray, Litres{1}, 1s).value();
            EXPECT(outcome.what != ROPEWALK_OUTCOME_REJECTED);
            executed = outcome.executed();
            std::this_thread::sleep_for(2ms);
        }
    });
    EXPECT(controller.wait_until_found(100ms).error().empty());
    robot.on(Spray, [](const Litres&, const CommandInfo&) {}).value();
    robot.set(Tank, Litres{7}).value();
    EXPECT(!executed);
    robot.start().value();
    robot.start().value();
    early.join();
    EXPECT(controller.fetch(Tank, LONG).value().value == 7);
}

// The test's own folder.
struct Folder {
    std::filesystem::path path;
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "ropewalk-XXXXXX").string();
        EXPECT(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string operator/(const char* name) const { return (path / name).string(); }
};

static void put(const std::string& path, const std::string& what) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << what;
}

static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

static std::string noise(std::size_t len) {
    std::mt19937 random(7);
    std::string noise(len, 0);
    for (auto& byte : noise) byte = static_cast<char>(random());
    return noise;
}

static void fetched(remote::Robot& robot, remote::Controller& controller) {
    Folder disk;
    auto mesh = noise(1'500'000);
    put(disk / "model/meshes/arm.stl", mesh);
    put(disk / "model/robot.urdf", "<robot/>");
    put(disk / "run.log", "all well");
    put(disk / "secret", "outside");
    robot.share("model", disk / "model").value();
    robot.share("log", disk / "run.log").value();
    auto none = robot.share("none", disk / "none");
    EXPECT(none.status() == ROPEWALK_STATUS_SYSTEM && has(none.error().text(), "none cannot be shared"));
    controller.wait_until_found(LONG).value();
    auto definition = controller.fetch(telemetry::FileDefinition, LONG).value();
    EXPECT(definition.file.size() == 2 && definition.file[1].identifier == "model");
    EXPECT((definition.is_folder == std::vector<std::uint64_t>{0, 1}));
    auto files = controller.files("model").value();
    EXPECT(files.size() == 2 && files[0].path == "meshes/arm.stl" && files[0].size == mesh.size());
    EXPECT(controller.files("log").value().at(0).path.empty());
    auto into = disk / "into";

    // Stopped by a return value or an exception, and resumed: the file is complete, and its checksum matches the
    // robot's.
    auto ended = controller.download("model", "meshes/arm.stl", into, [](const remote::Progress&) { return false; });
    EXPECT(ended.status() == ROPEWALK_STATUS_EMPTY && has(ended.error().text(), "another one resumes it"));
    auto part = std::filesystem::file_size(into + "/meshes/.arm.stl.part");
    EXPECT(part > 0 && part < mesh.size());
    auto threw = controller.download("model", "meshes/arm.stl", into, [](const remote::Progress&) -> bool {
        throw std::runtime_error("as told");
    });
    EXPECT(threw.error().empty());
    std::uint64_t first = 0, last = 0;
    auto arm = controller.download("model", "meshes/arm.stl", into, [&](const remote::Progress& p) {
        EXPECT(p.path == "meshes/arm.stl" && p.size == mesh.size());
        if (first == 0) first = p.done;
        last = p.done;
        return true;
    }).value();
    EXPECT(first > part && last == mesh.size() && arm == into + "/meshes/arm.stl" && content(arm) == mesh);
    // The checksum detects different old content, and the file is fetched again.
    put(into + "/.log.part", "all ill.");
    EXPECT(content(controller.download("log", "", into).value()) == "all well");
    auto all = controller.download_all("model", into + "/all").value();
    EXPECT(all.size() == 2 && content(all[0]) == mesh && content(into + "/all/model/robot.urdf") == "<robot/>");

    // No path leads out of the folder.
    for (auto* path : {"../../secret", "/etc/passwd", "meshes/../../secret"}) {
        auto out = controller.download("model", path, into);
        EXPECT(out.status() == ROPEWALK_STATUS_INVALID_ARGUMENT && has(out.error().text(), "the path"));
    }
    EXPECT(!std::filesystem::exists(disk / "into/secret"));
    auto missing = controller.download("model", "none", into);
    EXPECT(missing.status() == ROPEWALK_STATUS_REJECTED);
    EXPECT(has(controller.download("nothing", "", into).error().text(), "shares no file or folder called"));
    EXPECT(controller.files("nothing").status() == ROPEWALK_STATUS_REJECTED);
    auto nowhere = controller.download("log", "", disk / "run.log");
    EXPECT(nowhere.status() == ROPEWALK_STATUS_SYSTEM && has(nowhere.error().text(), "run.log"));
}

static void files() {
    auto [robot, controller] = pair("files");
    fetched(robot, controller);
}

static void permissions() {
    std::future<bool> open;
    {
        auto both = pair("permissions");
        auto& robot = both.robot;
        auto& controller = both.controller;
        controller.wait_until_found(LONG).value();
        // Asked before the controller listens, so the question is kept for queries.
        auto may = robot.ask_permission("May I cross the road?").value();
        auto question = controller.fetch(telemetry::PermissionRequest, LONG).value();
        EXPECT(question.description == "May I cross the road?" && may.wait_for(0s) == std::future_status::timeout);
        remote::Permission answer;
        answer.requestuid = question.requestuid, answer.granted = true;
        EXPECT(controller.command(command::Permission, answer, LONG).value().executed());
        EXPECT(may.get());
        EXPECT(has(controller.command(command::Permission, answer, LONG).value().reason, "no question with this number is open"));
        // Answered by any listening controller.
        controller.on(telemetry::PermissionRequest, [&](const remote::PermissionRequest& asked, const auto&) {
            remote::Permission no;
            no.requestuid = asked.requestuid;
            if (asked.description == "And back?") (void)controller.send(command::Permission, no, LONG).value();
        }).value();
        eventually([&] {
            auto back = robot.ask_permission("And back?").value();
            return back.wait_for(1s) == std::future_status::ready && !back.get();
        });
        open = robot.ask_permission("Anybody?").value();
    }
    EXPECT(!open.get());
}

static void over_zmq() {
    Folder keys;
    auto rover = remote::make_key(keys / "rover.key").value(), desk = remote::make_key(keys / "desk.key").value();
    remote::make_key(keys / "unknown.key").value();
    EXPECT(rover.size() == 40 && content(keys / "rover.key.pub") == rover + "\n");
    EXPECT(has(remote::make_key(keys / "rover.key").error().text(), "rover.key"));
    put(keys / "controllers", "# who may\n" + desk + " desk\n");

    // Unencrypted only on explicit request.
    auto refused = remote::Robot::create("rover", {Zmq::own("tcp://0.0.0.0:*")});
    EXPECT(refused.status() == ROPEWALK_STATUS_INVALID_ARGUMENT && has(refused.error().text(), "set keys"));
    auto v6_open = Zmq::plain_v6("tcp://0.0.0.0:*", "tcp://0.0.0.0:*");
    EXPECT(has(remote::Robot::create("rover", {v6_open}).error().text(), "set keys"));
    EXPECT(has(remote::Controller::create("desk", Zmq::own("tcp://192.0.2.1:7010")).error().text(), "set keys"));
    EXPECT(has(remote::Controller::create("desk", Zmq::own("rover")).error().text(), "not an address"));
    EXPECT(has(remote::Robot::create("rover", {}).error().text(), "node is NULL"));
    auto half = Zmq::own("tcp://127.0.0.1:*").curve(keys / "rover.key", "");
    EXPECT(has(remote::Robot::create("rover", {half}).error().text(), "alone is not enough"));
    std::filesystem::permissions(keys / "unknown.key", std::filesystem::perms(0644));
    auto known = Zmq::own("tcp://127.0.0.1:1").curve(keys / "unknown.key", keys / "rover.key.pub");
    EXPECT(has(remote::Controller::create("desk", known).error().text(), "chmod 600"));
    std::filesystem::permissions(keys / "unknown.key", std::filesystem::perms(0600));

    auto options = ropewalk_robot_options_default();
    options.lost_after_ns = std::chrono::nanoseconds(5s).count();
    options.start_later = true;
    auto with_keys = Zmq::own("tcp://127.0.0.1:*").curve(keys / "rover.key", keys / "controllers");
    auto v6 = Zmq::plain_v6("tcp://127.0.0.1:*", "tcp://127.0.0.1:*");
    auto robot = remote::Robot::create("rover", {with_keys, v6}, options).value();
    std::atomic<float> speed{0};
    robot.on(command::Twist, [&](const remote::Twist& moves, const CommandInfo&) {
        // The robot itself sends zero once a controller is gone.
        if (moves.linear.x != 0) speed = moves.linear.x;
    }).value();
    EXPECT(robot.zmq_address().empty());
    robot.start().value();
    auto address = robot.zmq_address();
    EXPECT(has(address, "tcp://127.0.0.1:") && robot.zmq_address(0, true).empty() && robot.zmq_address(2).empty());

    auto curve = [&](const char* key, const char* peer) {
        return remote::Controller::create("desk", Zmq::own(address).curve(keys / key, keys / peer)).value();
    };
    {
        auto controller = curve("desk.key", "rover.key.pub");
        controller.wait_until_found(LONG).value();
        EXPECT(controller.command(command::Twist, twist(0.5F), LONG).value().executed() && speed == 0.5F);
        fetched(robot, controller);
    }
    // Wrong keys: one that is not listed, another robot's, and none at all.
    auto unknown = curve("unknown.key", "rover.key.pub"), fooled = curve("desk.key", "unknown.key.pub");
    auto plain = remote::Controller::create("desk", Zmq::own(address)).value();
    for (auto* wrong : {&unknown, &fooled, &plain}) {
        auto outcome = wrong->command(command::Twist, twist(0.25F), 500ms).value();
        EXPECT(has(outcome.text(), "unreachable: ") && speed == 0.5F);
    }
    eventually([&] {
        auto reason = unknown.command(command::Twist, twist(0.25F), 500ms).value().reason;
        return reason.find("allowed keys") != std::string::npos;
    });

    // Version 6, on the same robot.
    auto other = remote::Controller::create("other", Zmq::plain_v6(robot.zmq_address(1), robot.zmq_address(1, true))).value();
    other.wait_until_found(LONG).value();
    eventually([&] { return other.command(command::Twist, twist(0.75F), LONG).value().executed(); });
    EXPECT(speed == 0.75F && other.fetch(telemetry::RobotName, LONG).value().value == "rover");
    auto taken = remote::Robot::create("rival", {Zmq::own(address)});
    EXPECT(taken.status() == ROPEWALK_STATUS_INVALID_ARGUMENT && has(taken.error().text(), "choose another port"));

    // Unless the robot forbids it.
    options.allow_v6_motion = false, options.start_later = false;
    auto careful = remote::Robot::create(node(), "careful", options, {v6}).value();
    careful.on(command::Twist, [](const remote::Twist&, const CommandInfo&) {}).value();
    auto mover = remote::Controller::create("mover", Zmq::plain_v6(careful.zmq_address(), careful.zmq_address(0, true))).value();
    mover.wait_until_found(LONG).value();
    EXPECT(mover.command(command::Twist, twist(1), LONG).value().what == ROPEWALK_OUTCOME_REJECTED);
    auto here = remote::Controller::create(node(), "desk", "careful").value();
    here.wait_until_found(LONG).value();
    EXPECT(here.command(command::Twist, twist(1), LONG).value().executed());
}

int main() {
    structures();
    forked();
    outcomes();
    values();
    rights();
    ends();
    started_later();
    files();
    permissions();
    over_zmq();
    std::cout << "C++ remote: done\n";
}
