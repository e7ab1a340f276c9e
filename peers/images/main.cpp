// Images between roscpp nodes: `image-raw` is image_transport with its defaults, `image-ropewalk` is the same code with
// Ropewalk's plugin (`_image_transport:=ropewalk`), `image-view` uses Ropewalk's publisher and subscriber, which copy
// nothing.
#include <image_transport/image_transport.h>
#include <libgen.h>
#include <ropewalk_ros/ropewalk_ros.hpp>

#include "ros.hpp"

namespace {

uint32_t depth(const peer::Options& o) { return o.depth ? static_cast<uint32_t>(o.depth) : 32; }

template <class Image>
void shape(Image& image, const peer::Options& o) {
    image.encoding = "mono8";
    image.header.frame_id = "camera";
    image.height = 1;
    image.width = image.step = static_cast<uint32_t>(o.size);
    image.data.resize(o.size);
}

template <class Image>
const uint8_t* payload(const Image& image, const peer::Options& o) {
    if (image.data.size() != o.size) peer::fail(1, "images: an image of another size: give each cell its own --topic");
    return image.data.data();
}

template <class Publisher>
void wait_links(const Publisher& publisher, const peer::Options& o, const peer::Orchestrator& orchestrator) {
    while (publisher.getNumSubscribers() < o.subscribers && orchestrator.pause_ms(5)) {}
}

// As any node that publishes images: one image is filled repeatedly, because publishing copies or serializes it.
void publish_images(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    image_transport::ImageTransport transport(node);
    image_transport::Publisher publisher = transport.advertise(o.topic, depth(o));
    sensor_msgs::Image image;
    shape(image, o);
    wait_links(publisher, o, orchestrator);
    peer::ready_and_go(orchestrator);
    peer::send_all(o, orchestrator, [&] { return image.data.data(); }, [&] {
        publisher.publish(image);
        return true;
    });
    orchestrator.wait_stop();
}

void subscribe_images(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    ros::NodeHandle node;
    image_transport::ImageTransport transport(node);
    const boost::function<void(const sensor_msgs::ImageConstPtr&)> callback = [&](const sensor_msgs::ImageConstPtr& image) {
        if (log.receive(payload(*image, o))) peer::say("done");
    };
    const image_transport::TransportHints hints(o.system == "image-raw" ? "raw" : "ropewalk");
    const image_transport::Subscriber subscriber = transport.subscribe(o.topic, depth(o), callback, ros::VoidPtr(), hints);
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    log.print();
}

void publish_in_place(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    const auto publisher = ropewalk_ros::advertise<sensor_msgs::Image>(node, o.topic, depth(o));
    if (!publisher.on_bus()) peer::fail(1, "image-view: not on a bus: set ROPEWALK_RUNTIME_DIR");
    ropewalk_ros::Publisher<sensor_msgs::Image>::Loan image;
    wait_links(publisher, o, orchestrator);
    peer::ready_and_go(orchestrator);
    peer::send_all(
        o, orchestrator,
        [&]() -> uint8_t* {
            shape(*image, o);
            return publisher.allocate(image) ? image->data.data() : nullptr;
        },
        [&] { return publisher.publish(image).ok(); });
    orchestrator.wait_stop();
}

void subscribe_views(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    ros::NodeHandle node;
    const auto subscriber = ropewalk_ros::subscribe<sensor_msgs::Image>(node, o.topic, depth(o), [&](const ropewalk_ros::View<sensor_msgs::Image>& image) {
        if (log.receive(payload(*image, o))) peer::say("done");
    });
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    log.print();
}

// pluginlib finds Ropewalk's plugin where the peers' Makefile installs it: next to this program.
void find_plugin() {
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n < 0) peer::fail_errno("/proc/self/exe");
    program[n] = 0;
    const std::string path = std::string(dirname(program)) + "/.ropewalk/share:/usr/share";
    setenv("ROS_PACKAGE_PATH", path.c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o = peer::parse(argc, argv, {{"image-raw", "image-ropewalk", "image-view"}, {"publish", "subscribe"}});
    if (o.command == "version") return peer::ros_version(o.system);
    find_plugin();
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    peer::start_ros(o.system, orchestrator, "ropewalk_bench_" + o.command);
    const bool view = o.system == "image-view";
    if (o.command == "publish") (view ? publish_in_place : publish_images)(o, orchestrator);
    if (o.command == "subscribe") (view ? subscribe_views : subscribe_images)(o, orchestrator);
    ros::shutdown();
}
