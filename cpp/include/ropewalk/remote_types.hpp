// The simplest messages of remote control as structures, encoded as protocol buffers
// (crates/remote/proto/robot_remote_control.proto documents the units). For the other messages, and your own, use
// the code that your protocol buffer library generates from that file: robots and controllers accept its classes
// directly.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace ropewalk {
namespace remote {

/// Since 1970, UTC.
struct TimeStamp {
    std::uint32_t secs = 0, nsecs = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.secs), visit(2, self.nsecs);
    }
};

struct Header {
    TimeStamp timestamp;
    /// The frame that values are given in.
    std::string frame;
    std::uint32_t seq = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.timestamp), visit(2, self.frame), visit(3, self.seq);
    }
};

struct Vector3 {
    float x = 0, y = 0, z = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.x), visit(2, self.y), visit(3, self.z);
    }
};

struct Position {
    double x = 0, y = 0, z = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.x), visit(2, self.y), visit(3, self.z);
    }
};

/// A unit quaternion. All zero: not set.
struct Orientation {
    double x = 0, y = 0, z = 0, w = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.x), visit(2, self.y), visit(3, self.z), visit(4, self.w);
    }
};

struct Pose {
    std::optional<Header> header;
    Position position;
    Orientation orientation;
    /// Rotation about z, for robots in a plane, if there is no orientation.
    float orientation2d = 0;
    /// Empty, or 6 x 6 in row-major order.
    std::vector<float> covariance;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.position), visit(3, self.orientation);
        visit(4, self.orientation2d), visit(5, self.covariance);
    }
};

/// Metres and radians per second.
struct Twist {
    std::optional<Header> header;
    Vector3 linear, angular;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.linear), visit(3, self.angular);
    }
};

struct GoTo {
    std::optional<Header> header;
    double max_forward_speed = 0;
    Pose waypoint_pose;
    double waypoint_max_forward_speed = 0;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.max_forward_speed), visit(3, self.waypoint_pose);
        visit(4, self.waypoint_max_forward_speed);
    }
};

/// Each array is empty or has one element per name.
struct JointState {
    std::optional<Header> header;
    std::vector<std::string> name;
    std::vector<double> position, velocity, effort, acceleration;
    std::vector<std::uint64_t> tics;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.name), visit(3, self.position), visit(4, self.velocity);
        visit(5, self.effort), visit(6, self.acceleration), visit(7, self.tics);
    }
};

/// Each array is empty or has one element per name.
struct JointCommand : JointState {
    std::vector<double> kp_gain, kd_gain;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        JointState::ropewalk_proto(self, visit);
        visit(8, self.kp_gain), visit(9, self.kd_gain);
    }
};

struct RobotName {
    std::string value;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.value);
    }
};

struct RobotState {
    std::optional<Header> header;
    std::vector<std::string> state, state_name;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.state), visit(3, self.state_name);
    }
};

/// Levels: 1 fatal, 2 error, 3 warn, 4 info, 5 debug.
struct LogMessage {
    std::optional<Header> header;
    std::uint32_t level = 0;
    std::string message;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.level), visit(3, self.message);
    }
};

/// A question of the robot; the answer is a `Permission` with the same `requestuid`.
struct PermissionRequest {
    std::optional<Header> header;
    /// For people.
    std::string description;
    std::string requestuid;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.description), visit(3, self.requestuid);
    }
};

struct Permission {
    std::optional<Header> header;
    std::string requestuid;
    bool granted = false;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.header), visit(2, self.requestuid), visit(3, self.granted);
    }
};

struct File {
    /// The identifier under which controllers request it.
    std::string identifier;
    /// Its path on the robot.
    std::string path;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.identifier), visit(2, self.path);
    }
};

/// The files that the robot shares.
struct FileDefinition {
    std::vector<File> file;
    /// One per file: 0 or 1.
    std::vector<std::uint64_t> is_folder;
    template <class Self, class Visitor>
    static void ropewalk_proto(Self& self, Visitor& visit) {
        visit(1, self.file), visit(2, self.is_folder);
    }
};

namespace detail {

/// Writes fields. Zero or empty fields are left out, as in protocol buffers 3; nested messages are always written.
class ProtoWriter {
public:
    void operator()(std::uint32_t field, const std::uint32_t& value) {
        if (value != 0) key(field, 0), varint(value);
    }
    void operator()(std::uint32_t field, const bool& value) {
        if (value) key(field, 0), varint(1);
    }
    void operator()(std::uint32_t field, const float& value) { fixed(field, value, 5); }
    void operator()(std::uint32_t field, const double& value) { fixed(field, value, 1); }
    void operator()(std::uint32_t field, const std::string& value) {
        if (!value.empty()) bytes(field, value);
    }
    void operator()(std::uint32_t field, const std::vector<std::string>& values) {
        for (const auto& value : values) bytes(field, value);
    }
    void operator()(std::uint32_t field, const std::vector<float>& values) { packed(field, values); }
    void operator()(std::uint32_t field, const std::vector<double>& values) { packed(field, values); }
    void operator()(std::uint32_t field, const std::vector<std::uint64_t>& values) {
        if (values.empty()) return;
        ProtoWriter inner;
        for (auto value : values) inner.varint(value);
        bytes(field, inner.out);
    }
    template <class Message>
    void operator()(std::uint32_t field, const std::optional<Message>& message) {
        if (message) (*this)(field, *message);
    }
    template <class Message>
    void operator()(std::uint32_t field, const std::vector<Message>& messages) {
        for (const auto& message : messages) (*this)(field, message);
    }
    template <class Message>
    auto operator()(std::uint32_t field, const Message& message)
        -> decltype(Message::ropewalk_proto(message, *this)) {
        ProtoWriter inner;
        Message::ropewalk_proto(message, inner);
        bytes(field, inner.out);
    }

    std::string out;

private:
    void varint(std::uint64_t value) {
        for (; value > 127; value >>= 7) out.push_back(static_cast<char>(value | 128));
        out.push_back(static_cast<char>(value));
    }
    void key(std::uint32_t field, std::uint32_t type) { varint(field << 3 | type); }
    void bytes(std::uint32_t field, const std::string& value) {
        key(field, 2), varint(value.size());
        out += value;
    }
    template <class T>
    void fixed(std::uint32_t field, T value, std::uint32_t type) {
        const T zero = 0;
        // Compares the bits: -0 is also a value.
        if (std::memcmp(&value, &zero, sizeof value) == 0) return;
        key(field, type);
        raw(value);
    }
    template <class T>
    void packed(std::uint32_t field, const std::vector<T>& values) {
        if (values.empty()) return;
        key(field, 2), varint(values.size() * sizeof(T));
        for (auto value : values) raw(value);
    }
    template <class T>
    void raw(T value) {
        static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");
        char bytes[sizeof value];
        std::memcpy(bytes, &value, sizeof value);
        out.append(bytes, sizeof value);
    }
};

/// Reads one message: `field` is set before each visit, and only the field with that number reads the data.
class ProtoReader {
public:
    ProtoReader(const std::uint8_t* data, std::size_t len) : at_(data), end_(data + len) {}

    /// Returns false if the bytes are malformed; the message is then partly filled.
    template <class Message>
    bool read(Message& message) {
        while (good_ && at_ != end_) {
            auto key = varint();
            field_ = key >> 3, type_ = key & 7, taken_ = false;
            if (!good_ || field_ == 0 || field_ > 0x1fffffff) return false;
            Message::ropewalk_proto(message, *this);
            if (good_ && !taken_) skip();
        }
        return good_;
    }

    void operator()(std::uint32_t field, std::uint32_t& value) {
        if (takes(field, 0)) value = static_cast<std::uint32_t>(varint());
    }
    void operator()(std::uint32_t field, bool& value) {
        if (takes(field, 0)) value = varint() != 0;
    }
    void operator()(std::uint32_t field, float& value) {
        if (takes(field, 5)) value = raw<float>();
    }
    void operator()(std::uint32_t field, double& value) {
        if (takes(field, 1)) value = raw<double>();
    }
    void operator()(std::uint32_t field, std::string& value) {
        if (!takes(field, 2)) return;
        auto part = bytes();
        value.assign(reinterpret_cast<const char*>(part.at_), part.left());
    }
    void operator()(std::uint32_t field, std::vector<std::string>& values) {
        if (!takes(field, 2)) return;
        auto part = bytes();
        if (good_) values.emplace_back(reinterpret_cast<const char*>(part.at_), part.left());
    }
    void operator()(std::uint32_t field, std::vector<float>& values) {
        repeated(field, values, 5, [](ProtoReader& from) { return from.raw<float>(); });
    }
    void operator()(std::uint32_t field, std::vector<double>& values) {
        repeated(field, values, 1, [](ProtoReader& from) { return from.raw<double>(); });
    }
    void operator()(std::uint32_t field, std::vector<std::uint64_t>& values) {
        repeated(field, values, 0, [](ProtoReader& from) { return from.varint(); });
    }
    template <class Message>
    void operator()(std::uint32_t field, std::optional<Message>& message) {
        if (field != field_ || taken_ || type_ != 2) return;
        if (!message) message.emplace();
        (*this)(field, *message);
    }
    template <class Message>
    void operator()(std::uint32_t field, std::vector<Message>& messages) {
        if (field != field_ || taken_ || type_ != 2) return;
        messages.emplace_back();
        (*this)(field, messages.back());
    }
    template <class Message>
    auto operator()(std::uint32_t field, Message& message) -> decltype(Message::ropewalk_proto(message, *this)) {
        if (takes(field, 2)) good_ = bytes().read(message) && good_;
    }

private:
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    bool takes(std::uint32_t field, std::uint32_t type) {
        if (!good_ || taken_ || field != field_ || type != type_) return false;
        return taken_ = true;
    }
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
            std::uint8_t byte = *at_++;
            value |= static_cast<std::uint64_t>(byte & 127) << shift;
            if (byte < 128) return value;
        }
        good_ = false;
        return 0;
    }
    ProtoReader bytes() {
        auto len = varint();
        if (!good_ || len > left()) {
            good_ = false;
            return ProtoReader(end_, 0);
        }
        at_ += len;
        return ProtoReader(at_ - len, static_cast<std::size_t>(len));
    }
    template <class T>
    T raw() {
        T value = 0;
        if (left() < sizeof value) {
            good_ = false;
            at_ = end_;
            return value;
        }
        std::memcpy(&value, at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    template <class T, class One>
    void repeated(std::uint32_t field, std::vector<T>& values, std::uint32_t type, One one) {
        if (takes(field, type)) {
            values.push_back(one(*this));
        } else if (takes(field, 2)) {
            auto part = bytes();
            while (part.good_ && part.at_ != part.end_) values.push_back(one(part));
            good_ = good_ && part.good_;
        }
    }
    void skip() {
        switch (type_) {
            case 0: (void)varint(); break;
            case 1: (void)raw<double>(); break;
            case 2: (void)bytes(); break;
            case 5: (void)raw<float>(); break;
            default: good_ = false;
        }
    }

    const std::uint8_t *at_, *end_;
    std::uint64_t field_ = 0;
    std::uint32_t type_ = 0;
    bool taken_ = false, good_ = true;
};

}  // namespace detail
}  // namespace remote
}  // namespace ropewalk
