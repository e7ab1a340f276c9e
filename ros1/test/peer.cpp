// The nodes of this package's test: `peer WHAT TOPIC [ARGUMENT]`. Each prints the messages that it receives, one per
// line.
#include <cstdio>
#include <deque>
#include <string>

#include <image_transport/image_transport.h>
#include <ros/callback_queue.h>
#include <ros/ros.h>
#include <ropewalk/msg/sensor_msgs/LaserScan.hpp>
#include <ropewalk_ros/ropewalk_ros.hpp>
#include <sensor_msgs/LaserScan.h>

ROPEWALK_ROS_TYPE(sensor_msgs, LaserScan)

namespace {

using ropewalk_ros::View;

void say(const std::string& text) {
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

std::uint8_t pixel(std::uint32_t seed, std::size_t i) { return static_cast<std::uint8_t>(seed * 7 + i * 31 + i / 251); }

/// What a listener says of an image: all fields, and a sum of the pixels.
template <class Image>
std::string text(const Image& image) {
    std::uint32_t sum = 0;
    for (auto byte : image.data) sum = sum * 31 + byte;
    return "seq " + std::to_string(image.header.seq) + " stamp " + std::to_string(image.header.stamp.sec) + "." + std::to_string(image.header.stamp.nsec) + " " +
           image.header.frame_id + " " + std::to_string(image.width) + "x" + std::to_string(image.height) + " " + image.encoding + " step " + std::to_string(image.step) + " " +
           std::to_string(image.data.size()) + " bytes sum " + std::to_string(sum);
}

template <class Cloud>
std::string cloud_text(const Cloud& cloud) {
    std::uint32_t sum = 0;
    for (auto byte : cloud.data) sum = sum * 31 + byte;
    std::string fields;
    for (const auto& field : cloud.fields) fields += field.name + "@" + std::to_string(field.offset) + ":" + std::to_string(field.datatype) + "x" + std::to_string(field.count) + " ";
    return "cloud " + std::to_string(cloud.width) + " " + fields + "dense " + std::to_string(cloud.is_dense) + " sum " + std::to_string(sum);
}

sensor_msgs::Image image_of(std::uint32_t number) {
    sensor_msgs::Image image;
    image.header.stamp = ros::Time(1000 + number, 5);
    image.header.frame_id = "camera";
    image.width = 640;
    image.height = 480;
    image.step = 640;
    image.encoding = "mono8";
    image.data.resize(640 * 480);
    for (std::size_t i = 0; i < image.data.size(); i++) image.data[i] = pixel(number, i);
    return image;
}

sensor_msgs::PointCloud2 cloud_of(std::uint32_t number) {
    sensor_msgs::PointCloud2 cloud;
    cloud.header.frame_id = "lidar";
    cloud.height = 1;
    cloud.width = 1000;
    cloud.point_step = 16;
    cloud.row_step = 16000;
    cloud.is_dense = true;
    cloud.fields.resize(2);
    cloud.fields[0].name = "x";
    cloud.fields[0].datatype = 7;
    cloud.fields[0].count = 1;
    cloud.fields[1].name = "intensity";
    cloud.fields[1].offset = 12;
    cloud.fields[1].datatype = 7;
    cloud.fields[1].count = 1;
    cloud.data.resize(16000);
    for (std::size_t i = 0; i < cloud.data.size(); i++) cloud.data[i] = pixel(number, i);
    return cloud;
}

/// Publishes by `f` ten times a second while the node runs.
template <class F>
void repeat(F f) {
    ros::WallRate rate(10);
    for (std::uint32_t i = 1; ros::ok(); i++) {
        f(i);
        ros::spinOnce();
        rate.sleep();
    }
}

int run(const std::string& what, const std::string& topic, const std::string& argument) {
    ros::NodeHandle nh;
    if (what == "transport_publish") {  // any node that uses image_transport
        image_transport::ImageTransport transport(nh);
        auto status = [](const char* change) {
            return [change](const image_transport::SingleSubscriberPublisher& to) { say(std::string(change) + " " + std::to_string(to.getNumSubscribers())); };
        };
        auto publisher = transport.advertise(topic, 4, image_transport::SubscriberStatusCallback(status("joined")), image_transport::SubscriberStatusCallback(status("left")),
                                             ros::VoidPtr(), argument == "latch");
        if (argument == "latch") {  // one image, as soon as somebody listens: image_transport sends none before
            while (ros::ok() && publisher.getNumSubscribers() == 0) ros::getGlobalCallbackQueue()->callAvailable(ros::WallDuration(0.05));
            publisher.publish(image_of(1));
            ros::spin();
        }
        repeat([&](std::uint32_t i) { publisher.publish(image_of(i)); });
    } else if (what == "transport_listen") {
        image_transport::ImageTransport transport(nh);
        // The transport comes from the parameter ~image_transport.
        boost::function<void(const sensor_msgs::ImageConstPtr&)> hear = [](const sensor_msgs::ImageConstPtr& image) { say("heard " + text(*image)); };
        auto subscriber = transport.subscribe(topic, 4, hear);
        say("transport " + subscriber.getTransport());
        ros::spin();
    } else if (what == "publish") {  // in place
        ropewalk_ros::AdvertiseOptions options;
        options.queue_size = 4;
        options.connected = [](const ros::SingleSubscriberPublisher* to) { say(std::string("joined ") + (to ? "through ROS" : "the bus")); };
        options.disconnected = [](const ros::SingleSubscriberPublisher* to) { say(std::string("left ") + (to ? "ROS" : "the bus")); };
        ropewalk_ros::Publisher<sensor_msgs::Image> publisher(nh, topic, options);
        say(publisher.on_bus() ? "on the bus" : "through ROS");
        repeat([&](std::uint32_t number) {
            ropewalk_ros::Publisher<sensor_msgs::Image>::Loan image;
            image->header.stamp = ropewalk_ros::time(ros::Time(1000 + number, 5));
            image->header.frame_id = "camera";
            image->width = 640;
            image->height = 480;
            image->step = 640;
            image->encoding = "mono8";
            image->data.resize(640 * 480);
            if (!publisher.allocate(image)) return;
            for (std::size_t i = 0; i < image->data.size(); i++) image->data[i] = pixel(number, i);
            (void)publisher.publish(image);
        });
    } else if (what == "listen") {  // views
        auto subscriber = ropewalk_ros::subscribe<sensor_msgs::Image>(nh, topic, 4, [](const View<sensor_msgs::Image>& image) { say("heard " + text(*image)); });
        ros::spin();
    } else if (what == "listen_async") {  // copies, by several threads, and ended from within a callback
        ros::AsyncSpinner spinner(3);
        ropewalk_ros::Subscriber<sensor_msgs::Image> subscriber;
        std::atomic<int> heard{0};
        ropewalk_ros::Subscriber<sensor_msgs::Image>::OnMessage hear = [&](const sensor_msgs::ImageConstPtr& image) {
            say("heard " + text(*image));
            if (++heard == 3) subscriber.shutdown();
            if (heard > 3) say("after the end");
        };
        subscriber = ropewalk_ros::Subscriber<sensor_msgs::Image>(nh, topic, hear);
        spinner.start();
        while (ros::ok() && heard < 3) ros::WallDuration(0.05).sleep();
        ros::WallDuration(0.5).sleep();
        say("ended");
    } else if (what == "keep") {  // views that stay as they are while the publisher goes on
        std::deque<std::pair<View<sensor_msgs::Image>, std::string>> kept;
        auto subscriber = ropewalk_ros::subscribe<sensor_msgs::Image>(nh, topic, 4, [&](const View<sensor_msgs::Image>& image) { kept.emplace_back(image, text(*image)); });
        ros::WallDuration wait(0.05);
        while (ros::ok() && kept.size() < 16) {
            ros::spinOnce();
            wait.sleep();
        }
        subscriber.shutdown();
        ros::WallDuration(0.5).sleep();
        bool same = true;
        for (const auto& [image, before] : kept) same &= text(*image) == before;
        say(same ? "all as they were" : "changed");
    } else if (what == "pair") {  // publisher and subscriber in one process
        ropewalk_ros::Publisher<sensor_msgs::Image> publisher = ropewalk_ros::advertise<sensor_msgs::Image>(nh, topic, 4);
        auto subscriber = ropewalk_ros::subscribe<sensor_msgs::Image>(nh, topic, 4, [](const View<sensor_msgs::Image>& image) { say("heard " + text(*image)); });
        repeat([&](std::uint32_t i) { (void)publisher.publish(image_of(i)); });
    } else if (what == "publish_clouds") {
        auto publisher = ropewalk_ros::advertise<sensor_msgs::PointCloud2>(nh, topic, 4);
        repeat([&](std::uint32_t i) { (void)publisher.publish(cloud_of(i)); });
    } else if (what == "listen_clouds") {
        ropewalk_ros::SubscribeOptions options;
        ropewalk_ros::Subscriber<sensor_msgs::PointCloud2>::OnMessage copy = [](const sensor_msgs::PointCloud2ConstPtr& cloud) { say("copied " + cloud_text(*cloud)); };
        ropewalk_ros::Subscriber<sensor_msgs::PointCloud2> copies(nh, topic, copy, options);
        auto views = ropewalk_ros::subscribe<sensor_msgs::PointCloud2>(nh, topic, 4, [](const View<sensor_msgs::PointCloud2>& cloud) { say("viewed " + cloud_text(*cloud)); });
        ros::spin();
    } else if (what == "publish_scans") {  // a type that is copied by way of its serialization
        auto publisher = ropewalk_ros::advertise<sensor_msgs::LaserScan>(nh, topic, 4);
        repeat([&](std::uint32_t i) {
            sensor_msgs::LaserScan scan;
            scan.header.frame_id = "laser";
            scan.ranges.assign(720, static_cast<float>(i));
            (void)publisher.publish(scan);
        });
    } else if (what == "listen_scans") {
        ropewalk_ros::Subscriber<sensor_msgs::LaserScan>::OnMessage copy = [](const sensor_msgs::LaserScanConstPtr& scan) {
            say("copied " + scan->header.frame_id + " " + std::to_string(scan->ranges.size()) + (scan->ranges.at(719) > 0 ? " far" : " near"));
        };
        ropewalk_ros::Subscriber<sensor_msgs::LaserScan> copies(nh, topic, copy);
        ros::spin();
    } else if (what == "plain") {  // a node that knows nothing of Ropewalk
        boost::function<void(const sensor_msgs::ImageConstPtr&)> hear = [](const sensor_msgs::ImageConstPtr& image) { say("heard " + text(*image)); };
        auto subscriber = nh.subscribe<sensor_msgs::Image>(topic, 4, hear);
        ros::spin();
    } else {
        return 2;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string what = argv[1], topic = argv[2], argument = argc > 3 ? argv[3] : "";
    ros::init(argc, argv, what, ros::init_options::AnonymousName);
    return run(what, topic, argument);
}
