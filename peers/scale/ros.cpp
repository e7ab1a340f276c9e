// The nodes of `ropewalk bench scale` on roscpp.
#include <sensor_msgs/Image.h>
#include <sensor_msgs/LaserScan.h>
#include <std_msgs/Header.h>

#include <memory>

#include "../common/ros.hpp"
#include "scale.hpp"

namespace {

ros::TransportHints hints() { return ros::TransportHints().tcpNoDelay(); }

std_msgs::Header& header(std_msgs::Header& message) { return message; }
template <class M>
std_msgs::Header& header(M& message) {
    return message.header;
}

void shape(std_msgs::Header& message, uint64_t bytes) {
    const std::string text = "Hello World";
    while (message.frame_id.size() < bytes) message.frame_id += text[message.frame_id.size() % text.size()];
}

void shape(sensor_msgs::LaserScan& message, uint64_t bytes) { message.ranges.assign((bytes - 52) / 4, 1.0f); }

void shape(sensor_msgs::Image& message, uint64_t bytes) {
    message.encoding = "mono8";
    message.height = 1;
    message.width = message.step = static_cast<uint32_t>(bytes - 42);
    message.data.assign(bytes - 42, 7);
}

template <class M>
void send(const scale::Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    const auto queue = static_cast<uint32_t>(o.queue);
    ros::Publisher publisher = node.advertise<M>(o.publish, queue);
    scale::Log log(o);
    std::vector<ros::Subscriber> subscribers;
    for (size_t i = 0; i < o.answers.size(); ++i) {
        const boost::function<void(const boost::shared_ptr<M const>&)> callback = [&log, i](const boost::shared_ptr<M const>& message) {
            const uint64_t now = peer::now_ns();
            log.receive(now, header(const_cast<M&>(*message)).stamp.sec, i);
        };
        subscribers.push_back(node.subscribe<M>(o.answers[i], queue, callback, ros::VoidConstPtr(), hints()));
    }
    ros::AsyncSpinner spinner(1);
    spinner.start();
    M message;
    shape(message, o.bytes);
    scale::run_sender(o, orchestrator, log, [&](uint32_t number) {
        header(message).stamp.sec = number;
        publisher.publish(message);
        return true;
    });
    spinner.stop();
}

template <class M>
void echo(const scale::Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    const auto queue = static_cast<uint32_t>(o.queue);
    std::vector<ros::Publisher> publishers;
    std::vector<ros::Subscriber> subscribers;
    uint64_t echoed = 0;
    for (const scale::Way& way : o.ways) publishers.push_back(node.advertise<M>(way.output, queue));
    for (size_t i = 0; i < o.ways.size(); ++i) {
        const boost::function<void(const boost::shared_ptr<M const>&)> callback = [&, i](const boost::shared_ptr<M const>& message) {
            publishers[i].publish(*message);
            ++echoed;
        };
        subscribers.push_back(node.subscribe<M>(o.ways[i].input, queue, callback, ros::VoidConstPtr(), hints()));
    }
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    peer::say("{\"echoed\": " + std::to_string(echoed) + "}");
}

template <class M>
void run(const scale::Options& o, const peer::Orchestrator& orchestrator) {
    if (o.command == "send") send<M>(o, orchestrator);
    else echo<M>(o, orchestrator);
}

}  // namespace

int main(int argc, char** argv) {
    const scale::Options o = scale::parse(argc, argv, {"roscpp"});
    if (o.command == "version")
        return scale::version(o, std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." + std::to_string(ROS_VERSION_PATCH));
    peer::Orchestrator orchestrator;
    peer::start_ros(o.system, orchestrator, "ropewalk_scale_" + o.command);
    if (o.bytes < 128) run<std_msgs::Header>(o, orchestrator);
    else if (o.bytes < 100000) run<sensor_msgs::LaserScan>(o, orchestrator);
    else run<sensor_msgs::Image>(o, orchestrator);
    ros::shutdown();
}
