// What a publisher announces about itself through ROS: docs/decisions/230-ros1-nodes-on-the-bus.md.
#pragma once

#include <string>

#include <std_msgs/String.h>

namespace ropewalk_ros {
namespace detail {

/// Each publisher of TOPIC latches on TOPIC/ropewalk which bus it is on. Subscribers on that bus listen there; others
/// listen to the ROS topic that is named after the bus.
struct Offer {
    static constexpr const char* prefix = "ropewalk 1 ";

    static std::string topic(const std::string& base) { return base + "/ropewalk"; }
    static std::string ros_topic(const std::string& base, const std::string& identity) { return topic(base) + "/ros_" + identity; }

    static std_msgs::String write(const std::string& identity) {
        std_msgs::String offer;
        offer.data = prefix + identity;
        return offer;
    }
    /// Returns the identity; empty if it is not an offer.
    static std::string read(const std_msgs::String& offer) {
        const std::string& text = offer.data;
        if (text.rfind(prefix, 0) != 0) return {};
        auto identity = text.substr(std::string(prefix).size());
        bool good = !identity.empty() && identity.size() <= 32 && identity.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == std::string::npos;
        return good ? identity : std::string();
    }
};

/// Returns the lines of a growing list that have not been reported yet.
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
