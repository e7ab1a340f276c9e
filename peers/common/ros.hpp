// Code shared by the peers on ROS 1.
#pragma once

#include <ros/callback_queue.h>
#include <ros/ros.h>

#include "peer.hpp"

namespace peer {

// Registering with a missing master would wait forever.
inline void start_ros(const std::string& system, const Orchestrator& orchestrator, const std::string& name) {
    int argc = 0;
    ros::init(argc, nullptr, name, ros::init_options::NoSigintHandler | ros::init_options::NoRosout | ros::init_options::AnonymousName);
    for (int tries = 0; !ros::master::check(); ++tries) {
        if (tries == 100) fail(1, "%s: no master at %s: start roscore there or set ROS_MASTER_URI", system.c_str(), ros::master::getURI().c_str());
        if (!orchestrator.pause_ms(100)) exit(0);
    }
}

// The answer to `version`, for a program whose subscribers are woken.
inline int ros_version(const std::string& system) {
    Options options;
    options.system = system;
    return version(options, std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." + std::to_string(ROS_VERSION_PATCH), {"block"});
}

// Runs callbacks on this thread. Not by ros::spin(), which busy-loops from the request to shut down until the shutdown
// is done: at SCHED_FIFO two of these would take both processors of a small machine from the master that they wait for.
inline void spin_until_stop(const Orchestrator& orchestrator) {
    while (!orchestrator.stopped()) ros::getGlobalCallbackQueue()->callAvailable(ros::WallDuration(0.05));
}

}  // namespace peer
