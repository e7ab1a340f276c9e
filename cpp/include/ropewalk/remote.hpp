// Robots, which receive commands and send telemetry, and controllers, which send commands and receive telemetry, on one
// host or, over links, on several: docs/guide/remote.md.
#pragma once

#include <future>
#include <tuple>
#include <vector>

#include "node.hpp"
#include "remote_types.hpp"

namespace ropewalk {
namespace remote {

/// The body of a command or of telemetry, encoded as protocol buffers, if it is not a structure.
using Bytes = std::string;

/// A kind of command: its name and the type of its body: `Bytes`, a structure of `remote_types.hpp`, or a class of a
/// protocol buffer library (anything with `SerializeAsString` and `ParseFromArray`).
template <class Body = Bytes>
struct CommandKind {
    const char* name;
    /// The subsystem that your own kind moves, such as "base"; null: none, or the one that the library's kind moves.
    const char* moves = nullptr;
    /// The same kind with another class for its body.
    template <class Other>
    constexpr CommandKind<Other> as() const {
        return {name, moves};
    }
};

/// A kind of telemetry, like `CommandKind`.
template <class Body = Bytes>
struct TelemetryKind {
    const char* name;
    template <class Other>
    constexpr TelemetryKind<Other> as() const {
        return {name};
    }
};

namespace command {
inline constexpr CommandKind<remote::Permission> Permission{"robot_remote_control.Permission"};
inline constexpr CommandKind<remote::Pose> TargetPose{"robot_remote_control.TargetPose"};
inline constexpr CommandKind<remote::Twist> Twist{"robot_remote_control.Twist"};
inline constexpr CommandKind<JointCommand> Joints{"robot_remote_control.Joints"};
inline constexpr CommandKind<> SimpleAction{"robot_remote_control.SimpleAction"};
inline constexpr CommandKind<> ComplexAction{"robot_remote_control.ComplexAction"};
inline constexpr CommandKind<remote::GoTo> GoTo{"robot_remote_control.GoTo"};
inline constexpr CommandKind<> RobotTrajectory{"robot_remote_control.RobotTrajectory"};
}  // namespace command

namespace telemetry {
inline constexpr TelemetryKind<Pose> CurrentPose{"robot_remote_control.CurrentPose"};
inline constexpr TelemetryKind<remote::JointState> JointState{"robot_remote_control.JointState"};
inline constexpr TelemetryKind<remote::JointState> ControllableJoints{"robot_remote_control.ControllableJoints"};
inline constexpr TelemetryKind<> SimpleActions{"robot_remote_control.SimpleActions"};
inline constexpr TelemetryKind<> ComplexActions{"robot_remote_control.ComplexActions"};
inline constexpr TelemetryKind<remote::RobotName> RobotName{"robot_remote_control.RobotName"};
inline constexpr TelemetryKind<remote::RobotState> RobotState{"robot_remote_control.RobotState"};
inline constexpr TelemetryKind<remote::LogMessage> LogMessage{"robot_remote_control.LogMessage"};
inline constexpr TelemetryKind<> VideoStreams{"robot_remote_control.VideoStreams"};
inline constexpr TelemetryKind<> SimpleSensor{"robot_remote_control.SimpleSensor"};
inline constexpr TelemetryKind<> WrenchState{"robot_remote_control.WrenchState"};
inline constexpr TelemetryKind<> Map{"robot_remote_control.Map"};
inline constexpr TelemetryKind<> Poses{"robot_remote_control.Poses"};
inline constexpr TelemetryKind<> Transforms{"robot_remote_control.Transforms"};
inline constexpr TelemetryKind<remote::PermissionRequest> PermissionRequest{"robot_remote_control.PermissionRequest"};
inline constexpr TelemetryKind<> PointCloud{"robot_remote_control.PointCloud"};
inline constexpr TelemetryKind<> ImuValues{"robot_remote_control.ImuValues"};
inline constexpr TelemetryKind<> ContactPoints{"robot_remote_control.ContactPoints"};
inline constexpr TelemetryKind<Twist> CurrentTwist{"robot_remote_control.CurrentTwist"};
inline constexpr TelemetryKind<> CurrentAcceleration{"robot_remote_control.CurrentAcceleration"};
inline constexpr TelemetryKind<> CameraInformation{"robot_remote_control.CameraInformation"};
inline constexpr TelemetryKind<> Image{"robot_remote_control.Image"};
inline constexpr TelemetryKind<> ImageLayers{"robot_remote_control.ImageLayers"};
inline constexpr TelemetryKind<> Odometry{"robot_remote_control.Odometry"};
inline constexpr TelemetryKind<> ControllableFrames{"robot_remote_control.ControllableFrames"};
inline constexpr TelemetryKind<remote::FileDefinition> FileDefinition{"robot_remote_control.FileDefinition"};
inline constexpr TelemetryKind<> RobotModelInformation{"robot_remote_control.RobotModelInformation"};
inline constexpr TelemetryKind<> InterfaceOptions{"robot_remote_control.InterfaceOptions"};
inline constexpr TelemetryKind<> ChannelsDefinition{"robot_remote_control.ChannelsDefinition"};
inline constexpr TelemetryKind<> LaserScan{"robot_remote_control.LaserScan"};
}  // namespace telemetry

/// Origin and age of a command.
struct CommandInfo {
    /// The controller's name, or the robot's own name if the robot itself stops a subsystem that lost its controller.
    std::string controller;
    /// Number of the controller's run; 0: the robot itself.
    std::uint64_t controller_id = 0;
    /// Increases with each request of its controller.
    std::uint64_t sequence = 0;
    /// Upper bound of its age when it arrived; none if unknown.
    std::optional<std::chrono::nanoseconds> age;
};

/// Metadata of a telemetry value.
struct TelemetryInfo {
    std::uint8_t channel = 0;
    /// Number of the value within its kind and channel, assigned by the robot, starting at 1.
    std::uint64_t sequence = 0;
    /// How many values of this kind and channel are missing since the first one received.
    std::uint64_t lost = 0;
};

/// The outcome of a command.
struct Outcome {
    ropewalk_outcome what = ROPEWALK_OUTCOME_UNREACHABLE;
    /// Why it was not executed, for people.
    std::string reason;

    bool executed() const noexcept { return what == ROPEWALK_OUTCOME_EXECUTED; }
    /// For people: `rejected: the battery is low`.
    std::string text() const {
        const char* names[] = {"executed", "rejected", "expired", "unreachable", "unreachable, maybe executed"};
        std::string text = names[what <= ROPEWALK_OUTCOME_MAYBE_EXECUTED ? what : ROPEWALK_OUTCOME_UNREACHABLE];
        return reason.empty() ? text : text + ": " + reason;
    }
};

/// The holder of the right to move.
struct Right {
    /// The number of a controller's run (`Controller::id`); 0: nobody.
    std::uint64_t holder = 0;
    std::string holder_name;
    /// Whether the asking controller holds it.
    bool mine = false;
};

/// A file that a robot shares.
struct FileInfo {
    /// Path relative to the shared folder; empty if a single file is shared.
    std::string path;
    /// Size in bytes.
    std::uint64_t size = 0;
};

/// Progress of a download.
struct Progress {
    /// As in `FileInfo`.
    std::string path;
    /// Bytes received, and bytes of the whole file.
    std::uint64_t done = 0, size = 0;
};

/// How to reach a robot or controller over ZeroMQ (docs/guide/remote-zmq.md):
/// `Zmq::own("tcp://0.0.0.0:7010").curve("rover.key", "controllers")`. If other hosts can reach the address, it needs
/// keys, or `insecure()`.
class Zmq {
public:
    /// Talks to Ropewalk's own ends. `address` is `tcp://IP:PORT` or `ipc:///PATH`; for a robot also `tcp://IP:*` for
    /// any port.
    static Zmq own(std::string address) { return Zmq(false, std::move(address), {}); }
    /// Version 6 of Robot Remote Control, for controllers of other vendors: a robot at ports 7001 and 7002 of this
    /// host.
    static Zmq plain_v6() { return plain_v6({}, {}); }
    /// Version 6, with addresses for requests and telemetry: neither encrypted nor authenticated.
    static Zmq plain_v6(std::string requests, std::string telemetry) {
        return Zmq(true, std::move(requests), std::move(telemetry));
    }

    /// Encrypts. `key` is the file with this end's secret key (`make_key`). For a robot, `peers` is the file with the
    /// controllers that may talk to it, one per line: public key, blank, name; for a controller, the file with the
    /// robot's public key.
    Zmq curve(std::string key, std::string peers) const {
        auto with = *this;
        with.key_ = std::move(key), with.peers_ = std::move(peers);
        return with;
    }
    /// Allows other hosts without keys: anyone who can reach the address can command the robot.
    Zmq insecure() const {
        auto with = *this;
        with.insecure_ = true;
        return with;
    }
    /// Bytes of a robot's telemetry that may wait for slow listeners; 64 MiB by default.
    Zmq waiting_bytes(std::size_t most) const {
        auto with = *this;
        with.waiting_bytes_ = most;
        return with;
    }

    /// The C form, valid as long as this object.
    ropewalk_zmq c() const noexcept {
        auto text = [](const std::string& of) { return of.empty() ? nullptr : of.c_str(); };
        return {text(address_), text(telemetry_), text(key_), text(peers_), plain_v6_, insecure_, waiting_bytes_};
    }

private:
    Zmq(bool is_v6, std::string address, std::string telemetry)
        : address_(std::move(address)), telemetry_(std::move(telemetry)), plain_v6_(is_v6) {}

    std::string address_, telemetry_, key_, peers_;
    bool plain_v6_ = false, insecure_ = false;
    std::size_t waiting_bytes_ = 0;
};

/// Creates a key for one robot or controller, for `Zmq::curve`: writes it to `path`, readable only by its owner, and
/// the public key, which peers get, to `path` with `.pub` appended. Returns the public key. Overwrites nothing.
inline Result<std::string> make_key(const std::string& path) {
    char text[41] = {};
    auto status = ropewalk_zmq_make_key(path.c_str(), text, sizeof text);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return std::string(text);
}

/// The return value of a handler that does not execute a command. The controller gets the text.
inline Error reject(std::string reason) { return Error(ROPEWALK_STATUS_REJECTED, std::move(reason)); }

namespace detail {

using ropewalk::detail::done;
using ropewalk::detail::Handle;
using ropewalk::detail::nanoseconds;

inline const std::string& encode(const Bytes& body) { return body; }
template <class Body>
auto encode(const Body& body) -> decltype(Body::ropewalk_proto(body, std::declval<ProtoWriter&>()), std::string()) {
    ProtoWriter writer;
    Body::ropewalk_proto(body, writer);
    return std::move(writer.out);
}
template <class Body>
auto encode(const Body& body) -> decltype(body.SerializeAsString()) {
    return body.SerializeAsString();
}

inline bool decode(const std::uint8_t* data, std::size_t len, Bytes& body) {
    body.assign(reinterpret_cast<const char*>(data), len);
    return true;
}
template <class Body>
auto decode(const std::uint8_t* data, std::size_t len, Body& body)
    -> decltype(Body::ropewalk_proto(body, std::declval<ProtoReader&>()), bool()) {
    return ProtoReader(data, len).read(body);
}
template <class Body>
auto decode(const std::uint8_t* data, std::size_t len, Body& body) -> decltype(body.ParseFromArray(data, 0)) {
    return len <= 0x7fffffff && body.ParseFromArray(data, static_cast<int>(len));
}

/// Calls `f` and returns a description of what it threw; empty if nothing.
template <class F>
std::string thrown(F&& f) {
#if defined(__cpp_exceptions)
    try {
#endif
        f();
        return {};
#if defined(__cpp_exceptions)
    } catch (const std::exception& e) {
        return std::string("it threw: ") + e.what();
    } catch (...) {
        return "it threw something other than std::exception";
    }
#endif
}

inline void complain(const char* what, const std::string& why) {
    if (!why.empty()) std::fprintf(stderr, "ropewalk: %s: %s\n", what, why.c_str());
}

/// Orders the functions below between threads, also for tools that cannot see the library's own ordering. It orders
/// more than necessary, and nothing waits for it.
inline std::atomic<unsigned> order{0};
inline void ordered() { order.fetch_add(1, std::memory_order_acq_rel); }

inline std::atomic<std::uint64_t> callback_errors{0};

/// A function that the library calls from its threads and frees.
template <class F>
class Called {
public:
    static void* make(F f) {
        auto* made = new Called{std::move(f)};
        ordered();
        return made;
    }
    static void free(void* user) {
        ordered();
        delete static_cast<Called*>(user);
    }
    template <class Use>
    static void call(void* user, Use&& use) {
        ordered();
        use(static_cast<Called*>(user)->f_);
        ordered();
    }
    /// Like `call`; exceptions are logged and counted, and do not propagate.
    template <class Use>
    static void guarded(void* user, const char* what, Use&& use) {
        call(user, [&](F& f) {
            auto why = thrown([&] { use(f); });
            if (why.empty()) return;
            callback_errors++;
            static_cast<Called*>(user)->failures_.note(what, why);
        });
    }

private:
    explicit Called(F f) : f_(std::move(f)) {}
    F f_;
    ropewalk::detail::Failures failures_;
};

inline CommandInfo info(const ropewalk_command& command) {
    CommandInfo info{command.controller, command.controller_id, command.sequence, {}};
    if (command.age_ns >= 0) info.age = std::chrono::nanoseconds(command.age_ns);
    return info;
}

/// Calls a command handler from C.
template <class Body, class F>
bool handle(void* user, const ropewalk_command* command, char* reason, std::size_t capacity) {
    Result<void> done;
    Called<F>::call(user, [&](F& call_it) {
        auto why = thrown([&] {
            Body body;
            if (!decode(command->body, command->len, body)) {
                done = reject("malformed: the body does not decode to the type that its handler takes");
            } else if constexpr (std::is_void_v<std::invoke_result_t<F&, const Body&, const CommandInfo&>>) {
                call_it(body, info(*command));
            } else {
                done = call_it(body, info(*command));
            }
        });
        if (why.empty()) return;
        callback_errors++;
        done = reject("the handler failed: " + why);
    });
    if (done) return true;
    std::snprintf(reason, capacity, "%s", done.error().text().c_str());
    return false;
}

}  // namespace detail

/// Number of exceptions thrown by functions that were passed to this program's robots and controllers.
inline std::uint64_t callback_errors() { return detail::callback_errors; }

/// Robots' settings: `ropewalk_robot_options_default()` has the defaults.
using RobotOptions = ropewalk_robot_options;
using ControllerOptions = ropewalk_controller_options;

/// A robot on this host's bus. Any thread may use it. Its callbacks run on threads of the library, which wait for them;
/// destroying the robot stops it and waits for running callbacks.
class Robot {
public:
    /// Starts a robot called `name`, both on the bus and for people, that can also be reached over `zmq`. With the
    /// option `start_later` it answers nobody before `start`, so that everything can be registered first.
    static Result<Robot> create(const Node& node, const std::string& name,
                                RobotOptions options = ropewalk_robot_options_default(),
                                const std::vector<Zmq>& zmq = {}) {
        return make(node.handle(), name, options, zmq);
    }
    /// As above, only over ZeroMQ.
    static Result<Robot> create(const std::string& name, const std::vector<Zmq>& zmq,
                                RobotOptions options = ropewalk_robot_options_default()) {
        return make(nullptr, name, options, zmq);
    }

    /// Starts to serve controllers, for a robot with the option `start_later`; otherwise does nothing. If it fails, the
    /// robot has ended.
    Result<void> start() { return detail::done(ropewalk_robot_start(handle())); }

    /// Where controllers reach end number `end` of `zmq`, with its actual port, or, with `telemetry`, the address of
    /// version 6's telemetry. Empty before the robot has started, and if there is no such address.
    std::string zmq_address(std::size_t end = 0, bool telemetry = false) const {
        return ropewalk::detail::text(
            [&](auto* b, auto c, auto* l) { return ropewalk_robot_zmq_address(handle(), end, telemetry, b, c, l); });
    }

    /// `f(const Body&, const CommandInfo&)` executes commands of a kind from now on. It returns nothing or a
    /// `Result<void>`: the controller learns that the command was executed, or rejected with the text of the error or
    /// exception. Commands that are expired, repeated, out of order or not allowed do not reach `f`.
    template <class Body, class F>
    Result<void> on(CommandKind<Body> kind, F f) {
        using Called = detail::Called<F>;
        return detail::done(ropewalk_robot_on_command(handle(), kind.name, kind.moves, detail::handle<Body, F>,
                                                      Called::make(std::move(f)), Called::free));
    }

    /// Sets the latest value of a telemetry kind and channel, and sends it to all listeners. Never blocks.
    template <class Body>
    Result<void> set(TelemetryKind<Body> kind, const Body& body, std::uint8_t channel = 0) {
        const auto& bytes = detail::encode(body);
        auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
        return detail::done(ropewalk_robot_set(handle(), kind.name, channel, data, bytes.size()));
    }

    /// Shares a file, or all files below a folder, with controllers, under its own identifier. Links are followed only
    /// if they stay below the folder.
    Result<void> share(const std::string& identifier, const std::string& path) {
        return detail::done(ropewalk_robot_share(handle(), identifier.c_str(), path.c_str()));
    }

    /// Asks the robot's controllers for a permission (`telemetry::PermissionRequest`, answered by
    /// `command::Permission`). The answer is no when the robot stops, and when 64 newer questions are open.
    Result<std::future<bool>> ask_permission(const std::string& description) {
        std::promise<bool> promise;
        auto answer = promise.get_future();
        using Called = detail::Called<std::promise<bool>>;
        auto call = [](void* user, bool granted) {
            Called::call(user, [&](auto& reported) { reported.set_value(granted); });
        };
        auto status = ropewalk_robot_ask_permission(handle(), description.c_str(), call,
                                                    Called::make(std::move(promise)), Called::free);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return answer;
    }

    /// `f(subsystem, controller)` is called when the controller that moved a subsystem is lost. It returns whether the
    /// default action should also run: zero twists, joints that hold. That also runs if `f` throws.
    Result<void> on_link_lost(std::function<bool(const std::string&, const std::string&)> f) {
        using Called = detail::Called<decltype(f)>;
        auto call = [](void* user, const char* subsystem, const char* controller) {
            bool stop = true;
            Called::guarded(user, "on_link_lost", [&](auto& call_it) { stop = call_it(subsystem, controller); });
            return stop;
        };
        return detail::done(ropewalk_robot_on_link_lost(handle(), call, Called::make(std::move(f)), Called::free));
    }

    /// `f(id, name, found)` is called when controllers connect or are lost.
    Result<void> on_controller(std::function<void(std::uint64_t, const std::string&, bool)> f) {
        using Called = detail::Called<decltype(f)>;
        auto call = [](void* user, std::uint64_t id, const char* name, bool found) {
            Called::guarded(user, "on_controller", [&](auto& call_it) { call_it(id, name, found); });
        };
        return detail::done(ropewalk_robot_on_controller(handle(), call, Called::make(std::move(f)), Called::free));
    }

    /// `f(subsystem, by, holder)` decides whether a controller may take the right to move from another. Without it, and
    /// if it throws, the answer is no.
    Result<void> on_take_over(std::function<bool(const std::string&, const std::string&, const std::string&)> f) {
        using Called = detail::Called<decltype(f)>;
        auto call = [](void* user, const char* subsystem, const char* by, const char* holder) {
            bool may = false;
            Called::guarded(user, "on_take_over", [&](auto& call_it) { may = call_it(subsystem, by, holder); });
            return may;
        };
        return detail::done(ropewalk_robot_on_take_over(handle(), call, Called::make(std::move(f)), Called::free));
    }

    /// The number of the controller that may move a subsystem; none if there is no such controller.
    std::optional<std::uint64_t> holder(const std::string& subsystem) const {
        std::uint64_t id = 0;
        if (ropewalk_robot_holder(handle(), subsystem.c_str(), &id) != ROPEWALK_STATUS_OK) return {};
        return id;
    }

    const ropewalk_robot* handle() const noexcept { return handle_.get(); }

private:
    explicit Robot(ropewalk_robot* handle) : handle_(handle) {}

    static Result<Robot> make(const ropewalk_node* node, const std::string& name, RobotOptions options,
                              const std::vector<Zmq>& zmq) {
        std::vector<ropewalk_zmq> ends;
        for (const auto& end : zmq) ends.push_back(end.c());
        if (!ends.empty()) options.zmq = ends.data(), options.zmq_count = ends.size();
        ropewalk_robot* out = nullptr;
        auto status = ropewalk_robot_new(node, name.c_str(), &options, &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Robot(out);
    }

    detail::Handle<ropewalk_robot, ropewalk_robot_free> handle_;
};

/// A command that was sent. Destroying it discards the outcome; the command stays under way.
class Sent {
public:
    explicit Sent(ropewalk_sent* handle) : handle_(handle) {}

    /// Blocks until the outcome of the command is known. Returns an error that is `empty()` after `timeout`. Do not
    /// call it from a callback of the library.
    Result<Outcome> wait(Timeout timeout = forever) const {
        Outcome outcome;
        auto status = ropewalk_sent_wait(handle_.get(), detail::nanoseconds(timeout), &outcome.what);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        outcome.reason = ropewalk::detail::text(
            [this](auto* b, auto c, auto* l) { return ropewalk_sent_reason(handle_.get(), b, c, l); });
        return outcome;
    }
    /// Like `wait`, without waiting.
    Result<Outcome> poll() const { return wait(Timeout::zero()); }

private:
    detail::Handle<ropewalk_sent, ropewalk_sent_free> handle_;
};

/// Commands one robot and receives its telemetry. Any thread may use it. Its callbacks run on threads of the library,
/// which wait for them; they must not wait for an answer of the same robot. Destroying the controller stops it and
/// waits for running callbacks.
class Controller {
public:
    /// Starts a controller of the robot called `robot` on this bus. `name` is for people.
    static Result<Controller> create(const Node& node, const std::string& name, const std::string& robot,
                                     ControllerOptions options = ropewalk_controller_options_default()) {
        ropewalk_controller* out = nullptr;
        auto status = ropewalk_controller_new(node.handle(), name.c_str(), robot.c_str(), &options, &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Controller(out);
    }
    /// Starts a controller of the robot at `zmq`.
    static Result<Controller> create(const std::string& name, const Zmq& zmq,
                                     ControllerOptions options = ropewalk_controller_options_default()) {
        auto end = zmq.c();
        options.zmq = &end;
        ropewalk_controller* out = nullptr;
        auto status = ropewalk_controller_new(nullptr, name.c_str(), nullptr, &options, &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Controller(out);
    }

    /// Blocks until the robot has answered and described its capabilities. Returns an error that is `empty()` after
    /// `timeout`.
    Result<void> wait_until_found(Timeout timeout = forever) const {
        return detail::done(ropewalk_controller_wait_until_found(handle(), detail::nanoseconds(timeout)));
    }
    /// `f(found)` is called when the robot is found or lost.
    Result<void> on_connection(std::function<void(bool)> f) {
        using Called = detail::Called<decltype(f)>;
        auto call = [](void* user, bool found) {
            Called::guarded(user, "on_connection", [&](auto& call_it) { call_it(found); });
        };
        return detail::done(ropewalk_controller_on_connection(handle(), call, Called::make(std::move(f)), Called::free));
    }
    /// The smoothed time from a heartbeat to its answer; none before the first.
    std::optional<std::chrono::nanoseconds> round_trip() const {
        std::int64_t ns = 0;
        if (ropewalk_controller_round_trip(handle(), &ns) != ROPEWALK_STATUS_OK) return {};
        return std::chrono::nanoseconds(ns);
    }
    /// The number of its run, which identifies it to the robot and to other controllers.
    std::uint64_t id() const { return ropewalk_controller_id(handle()); }

    /// Sends a command, and blocks until its outcome is known: at most for its expiry and the time for the answer.
    template <class Body>
    Result<Outcome> command(CommandKind<Body> kind, const Body& body, Timeout expiry = Timeout::zero()) {
        auto sent = send(kind, body, expiry);
        if (!sent) return sent.error();
        return sent->wait();
    }
    /// Sends a command, which expires after `expiry`: zero means twice the round trip and at least 200 ms; `forever` is
    /// not allowed for commands that move. Never blocks.
    template <class Body>
    Result<Sent> send(CommandKind<Body> kind, const Body& body, Timeout expiry = Timeout::zero()) {
        const auto& bytes = detail::encode(body);
        auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
        ropewalk_sent* out = nullptr;
        auto status = ropewalk_controller_send(handle(), kind.name, data, bytes.size(), detail::nanoseconds(expiry), &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Sent(out);
    }

    /// `f(const Body&, const TelemetryInfo&)` receives each value of a telemetry kind and channel from now on. Its
    /// exceptions are written to standard error.
    template <class Body, class F>
    Result<void> on(TelemetryKind<Body> kind, F f, std::uint8_t channel = 0) {
        using Called = detail::Called<F>;
        auto call = [](void* user, const ropewalk_telemetry* telemetry) {
            Called::guarded(user, telemetry->kind, [&](F& call_it) {
                Body body;
                if (detail::decode(telemetry->body, telemetry->len, body)) {
                    call_it(body, TelemetryInfo{telemetry->channel, telemetry->sequence, telemetry->lost});
                } else {
                    detail::complain(telemetry->kind, "a value does not decode to the type that its callback takes");
                }
            });
        };
        return detail::done(ropewalk_controller_on_telemetry(handle(), kind.name, channel, call,
                                                             Called::make(std::move(f)), Called::free));
    }
    /// The latest value that the robot sent by itself; an error that is `empty()` before the first.
    template <class Body>
    Result<Body> latest(TelemetryKind<Body> kind, std::uint8_t channel = 0) const {
        ropewalk_value* value = nullptr;
        return read<Body>(kind.name, ropewalk_controller_latest(handle(), kind.name, channel, &value), value);
    }
    /// Requests the latest value from the robot, and blocks for it at most `timeout`; an error that is `empty()` if
    /// none has been set yet.
    template <class Body>
    Result<Body> fetch(TelemetryKind<Body> kind, Timeout timeout, std::uint8_t channel = 0) const {
        ropewalk_value* value = nullptr;
        auto ns = detail::nanoseconds(timeout);
        return read<Body>(kind.name, ropewalk_controller_fetch(handle(), kind.name, channel, ns, &value), value);
    }

    /// Returns who may move a subsystem (empty: the whole robot). Blocks for the answer, at most 30 s, like the other
    /// functions here.
    Result<Right> right(const std::string& subsystem) const { return wish(subsystem, ROPEWALK_WISH_ASK); }
    /// Requests the right to move a subsystem; granted if nobody else has it.
    Result<Right> request_right(const std::string& subsystem) { return wish(subsystem, ROPEWALK_WISH_REQUEST); }
    Result<Right> release_right(const std::string& subsystem) { return wish(subsystem, ROPEWALK_WISH_RELEASE); }
    /// Hands the right over to the controller with this number.
    Result<Right> hand_right_over(const std::string& subsystem, std::uint64_t to) {
        return wish(subsystem, ROPEWALK_WISH_HAND_OVER, to);
    }
    /// Takes the right, even from another controller, if the robot permits it.
    Result<Right> take_right_over(const std::string& subsystem) { return wish(subsystem, ROPEWALK_WISH_TAKE_OVER); }

    /// The files that the robot shares under an identifier. Blocks for the answer; do not call it from a callback of
    /// the library. `telemetry::FileDefinition` lists the identifiers.
    Result<std::vector<FileInfo>> files(const std::string& identifier) const {
        std::vector<FileInfo> files;
        auto call = [](void* user, const char* path, std::uint64_t, std::uint64_t size) {
            static_cast<std::vector<FileInfo>*>(user)->push_back({path, size});
            return true;
        };
        auto status = ropewalk_controller_files(handle(), identifier.c_str(), call, &files);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return files;
    }

    /// Called for each piece of a download, on the thread that waits for it. Returning false stops the download;
    /// another one resumes it.
    using OnProgress = std::function<bool(const Progress&)>;

    /// Downloads one file into the folder `into`, under its path there (a single file, whose path is empty, under its
    /// identifier). Blocks until the download is complete and its SHA-256 matches the robot's; returns the path of the
    /// file. An interrupted download resumes where it stopped; an incomplete file is called `.NAME.part`. Nothing
    /// outside of `into` is written. An error that is `empty()` means that `progress` stopped it, or threw. Do not call
    /// it from a callback of the library.
    Result<std::string> download(const std::string& identifier, const std::string& path, const std::string& into,
                                 OnProgress progress = {}) const {
        auto written = fetch_files(identifier, path.c_str(), into, std::move(progress));
        if (!written) return written.error();
        return std::move(written->front());
    }
    /// Like `download`, for all files that are shared under an identifier.
    Result<std::vector<std::string>> download_all(const std::string& identifier, const std::string& into,
                                                  OnProgress progress = {}) const {
        return fetch_files(identifier, nullptr, into, std::move(progress));
    }

    const ropewalk_controller* handle() const noexcept { return handle_.get(); }

private:
    explicit Controller(ropewalk_controller* handle) : handle_(handle) {}

    template <class Body>
    static Result<Body> read(const char* kind, ropewalk_status status, ropewalk_value*& out) {
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        detail::Handle<ropewalk_value, ropewalk_value_free> value(out);
        const std::uint8_t* data = nullptr;
        std::size_t len = 0;
        Body body;
        ropewalk_value_data(value.get(), &data, &len);
        if (!detail::decode(data, len, body)) {
            return Error(ROPEWALK_STATUS_CONTENT, std::string(kind) + ": the value does not decode to the requested class");
        }
        return body;
    }

    Result<std::vector<std::string>> fetch_files(const std::string& identifier, const char* path,
                                                 const std::string& into, OnProgress progress) const {
        auto call = [](void* user, const char* at, std::uint64_t done, std::uint64_t size) {
            bool more = false;
            auto& reported = *static_cast<OnProgress*>(user);
            detail::complain("download", detail::thrown([&] { more = reported(Progress{at, done, size}); }));
            return more;
        };
        ropewalk_value* out = nullptr;
        auto status = ropewalk_controller_download(handle(), identifier.c_str(), path, into.c_str(),
                                                   progress ? +call : nullptr, &progress, &out);
        if (status == ROPEWALK_STATUS_EMPTY) return Error(status, "the download was stopped; another one resumes it");
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        detail::Handle<ropewalk_value, ropewalk_value_free> value(out);
        const std::uint8_t* data = nullptr;
        std::size_t len = 0;
        ropewalk_value_data(value.get(), &data, &len);
        std::vector<std::string> written;
        auto* name = reinterpret_cast<const char*>(data);
        for (auto* end = name + len; name != end; name += written.back().size() + 1) written.emplace_back(name);
        return written;
    }

    Result<Right> wish(const std::string& subsystem, ropewalk_wish wish, std::uint64_t to = 0) const {
        ropewalk_right right{};
        auto status = ropewalk_controller_right(handle(), subsystem.c_str(), wish, to, &right);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Right{right.holder, right.holder_name, right.mine};
    }

    detail::Handle<ropewalk_controller, ropewalk_controller_free> handle_;
};

}  // namespace remote
}  // namespace ropewalk
