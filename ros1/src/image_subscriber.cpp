// The subscribing half of image_transport's transport `ropewalk`.
#include <image_transport/subscriber_plugin.h>

#include <pluginlib/class_list_macros.hpp>
#include <ropewalk_ros/subscriber.hpp>

namespace ropewalk_ros {

/// Copies each image once, out of shared memory, since a sensor_msgs::Image owns its pixels.
class ImageSubscriber : public image_transport::SubscriberPlugin {
public:
    std::string getTransportName() const override { return "ropewalk"; }
    std::string getTopic() const override { return subscriber_ ? detail::Offer::topic(subscriber_.getTopic()) : std::string(); }
    uint32_t getNumPublishers() const override { return subscriber_.getNumPublishers(); }
    void shutdown() override { subscriber_.shutdown(); }

protected:
    void subscribeImpl(ros::NodeHandle& nh, const std::string& base_topic, uint32_t queue_size, const Callback& callback, const ros::VoidPtr& tracked_object,
                       const image_transport::TransportHints& hints) override {
        SubscribeOptions options;
        options.queue_size = queue_size;
        options.hints = hints.getRosHints();
        options.tracked_object = tracked_object;
        subscriber_ = Subscriber<sensor_msgs::Image>(nh, base_topic, Subscriber<sensor_msgs::Image>::OnMessage(callback), std::move(options));
    }

private:
    Subscriber<sensor_msgs::Image> subscriber_;
};

}  // namespace ropewalk_ros

PLUGINLIB_EXPORT_CLASS(ropewalk_ros::ImageSubscriber, image_transport::SubscriberPlugin)
