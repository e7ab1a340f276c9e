// This process's membership of its host's bus.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <ros/console.h>
#include <ros/this_node.h>
#include <ropewalk/ropewalk.hpp>

namespace ropewalk_ros {

/// The bus that the environment names, shared by all publishers and subscribers of this process. Without a bus, topics
/// go only through ROS.
class Bus {
public:
    /// Returns this process's bus, created if nobody has it. Reports with ROS_ERROR why there is none.
    static std::shared_ptr<Bus> join() {
        static std::mutex mutex;
        static std::weak_ptr<Bus> current;
        std::lock_guard<std::mutex> lock(mutex);
        auto bus = current.lock();
        if (!bus) current = bus = std::shared_ptr<Bus>(new Bus());
        return bus;
    }

    /// NULL if there is no bus.
    ropewalk::Node* node() { return node_ ? &*node_ : nullptr; }

    /// Equal for two processes exactly if they share a bus, as part of a ROS name; `none` if there is no bus.
    const std::string& identity() const { return identity_; }

private:
    Bus() {
        auto node = ropewalk::Node::create(node_name());
        if (!node) {
            ROS_ERROR("ropewalk: %s. Until then messages go through ROS, copied", node.error().text().c_str());
            return;
        }
        auto identity = identify();
        if (identity.empty()) {
            ROS_ERROR("ropewalk: cannot examine the bus's folder %s: set ROPEWALK_RUNTIME_DIR to a folder of this user. "
                      "Until then messages go through ROS, copied", folder().c_str());
            return;
        }
        node_ = std::move(*node);
        identity_ = std::move(identity);
    }

    /// ROS's name of this node, in characters that names of nodes on the bus may have.
    static std::string node_name() {
        auto name = ros::this_node::getName();
        name.erase(0, name.find_first_not_of('/'));
        for (auto& letter : name) {
            if (!std::isalnum(static_cast<unsigned char>(letter))) letter = '_';
        }
        if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "_");
        return name.substr(0, 64);
    }

    static std::string set(const char* name) {
        const char* value = std::getenv(name);
        return value ? value : "";
    }

    /// The bus's folder (docs/guide/bus.md).
    static std::string folder() {
        if (auto folder = set("ROPEWALK_RUNTIME_DIR"); !folder.empty()) return folder;
        if (auto folder = set("XDG_RUNTIME_DIR"); !folder.empty()) return folder + "/ropewalk";
        return "/tmp/ropewalk-" + std::to_string(getuid());
    }

    /// Processes that share a bus see the same folder, under any path and in any container: the kernel, the folder's
    /// device and number, the domain.
    static std::string identify() {
        std::string boot;
        std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
        struct stat status {};
        if (boot.empty() || stat(folder().c_str(), &status) != 0) return {};
        auto domain = set("ROPEWALK_DOMAIN");
        auto all = boot + ":" + std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" +
                   std::to_string(domain.empty() ? 0 : std::strtoul(domain.c_str(), nullptr, 10));
        // FNV-1a: this is a name, not a secret.
        std::uint64_t hash = 0xcbf29ce484222325;
        for (unsigned char byte : all) hash = (hash ^ byte) * 0x100000001b3;
        char text[17];
        std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
        return text;
    }

    std::optional<ropewalk::Node> node_;
    std::string identity_ = "none";
};

}  // namespace ropewalk_ros
