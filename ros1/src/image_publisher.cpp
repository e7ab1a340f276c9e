#include "image_publisher.hpp"

#include <pluginlib/class_list_macros.hpp>

namespace ropewalk_ros {

void ImagePublisher::advertiseImpl(ros::NodeHandle& nh, const std::string& base_topic, uint32_t queue_size, const image_transport::SubscriberStatusCallback& connected,
                                   const image_transport::SubscriberStatusCallback& disconnected, const ros::VoidPtr& tracked_object, bool latch) {
    AdvertiseOptions options;
    options.queue_size = queue_size;
    options.latch = latch;
    // The transport `raw` is for these.
    options.plain = false;
    options.tracked_object = tracked_object;
    options.connected = status(connected, tracked_object);
    options.disconnected = status(disconnected, tracked_object);
    int limit = 0;
    if (nh.getParam(nh.resolveName(base_topic) + "/ropewalk/memory_limit", limit)) {
        if (limit > 0) {
            options.memory.memory_limit = static_cast<uint64_t>(limit) << 20;
        } else {
            ROS_ERROR("ropewalk: the parameter %s/ropewalk/memory_limit is %d: write MiB of shared memory, such as 1024", nh.resolveName(base_topic).c_str(), limit);
        }
    }
    publisher_ = Publisher<sensor_msgs::Image>(nh, base_topic, std::move(options));
}

std::function<void(const ros::SingleSubscriberPublisher*)> ImagePublisher::status(const image_transport::SubscriberStatusCallback& user, const ros::VoidPtr& tracked_object) {
    if (!user) return {};
    bool is_tracked = tracked_object != nullptr;
    return [this, user, is_tracked, tracked = boost::weak_ptr<void>(tracked_object)](const ros::SingleSubscriberPublisher* to) {
        auto alive = tracked.lock();
        if (is_tracked && !alive) return;
        boost::function<void(const sensor_msgs::Image&)> publish_to;
        if (to != nullptr) {
            publish_to = [to](const sensor_msgs::Image& image) { to->publish(image); };
        } else {
            // Every subscriber on the bus receives it: it cannot be sent to one of them alone.
            publish_to = [this](const sensor_msgs::Image& image) { (void)publisher_.publish(image); };
        }
        user(image_transport::SingleSubscriberPublisher(to ? to->getSubscriberName() : "ropewalk", getTopic(), [this] { return getNumSubscribers(); }, publish_to));
    };
}

}  // namespace ropewalk_ros

PLUGINLIB_EXPORT_CLASS(ropewalk_ros::ImagePublisher, image_transport::PublisherPlugin)
