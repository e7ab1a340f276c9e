// What a publisher says of itself through ROS: docs/decisions/230-bus-inside-ros.md.
#pragma once

#include <string>

#include <std_msgs/String.h>

namespace ropewalk_ros {
namespace detail {

/// Latched on TOPIC/ropewalk by each publisher of TOPIC: on which bus it is. Who shares that bus listens there; who does not
/// listens to the ROS topic that is named after it.
struct Offer {
    static constexpr const char* prefix = "ropewalk 1 ";

    static std::string topic(const std::string& base) { return base + "/ropewalk"; }
    static std::string ros_topic(const std::string& base, const std::string& identity) { return topic(base) + "/ros_" + identity; }

    static std_msgs::String write(const std::string& identity) {
        std_msgs::String offer;
        offer.data = prefix + identity;
        return offer;
    }
    /// The identity; empty if it is no offer.
    static std::string read(const std_msgs::String& offer) {
        const std::string& text = offer.data;
        if (text.rfind(prefix, 0) != 0) return {};
        auto identity = text.substr(std::string(prefix).size());
        bool good = !identity.empty() && identity.size() <= 32 && identity.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string::npos;
        return good ? identity : std::string();
    }
};

/// Which of the lines of a list that grows were not told yet.
class News {
public:
    template <class Tell>
    void tell(const std::string& lines, const Tell& tell) {
        if (lines == seen_) return;
        std::size_t at = 0;
        while (at < lines.size()) {
            auto end = lines.find('\n', at);
            if (end == std::string::npos) end = lines.size();
            auto line = lines.substr(at, end - at);
            if (!line.empty() && ("\n" + seen_ + "\n").find("\n" + line + "\n") == std::string::npos) tell(line);
            at = end + 1;
        }
        seen_ = lines;
    }

private:
    std::string seen_;
};

}  // namespace detail
}  // namespace ropewalk_ros
