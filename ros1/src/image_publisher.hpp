// The publishing half of image_transport's transport `ropewalk`.
#pragma once

#include <image_transport/publisher_plugin.h>

#include <ropewalk_ros/publisher.hpp>

namespace ropewalk_ros {

/// Copies each image once, into shared memory, for all subscribers of this host.
class ImagePublisher : public image_transport::PublisherPlugin {
public:
    std::string getTransportName() const override { return "ropewalk"; }
    uint32_t getNumSubscribers() const override { return publisher_.getNumSubscribers(); }
    std::string getTopic() const override { return publisher_ ? detail::Offer::topic(publisher_.getTopic()) : std::string(); }
    // What fails is logged; image_transport's functions tell nothing.
    void publish(const sensor_msgs::Image& image) const override { (void)publisher_.publish(image); }
    void publish(const sensor_msgs::Image& image, const uint8_t* data) const override { (void)publisher_.publish(image, data, std::size_t{image.step} * image.height); }
    void shutdown() override { publisher_.shutdown(); }

protected:
    void advertiseImpl(ros::NodeHandle& nh, const std::string& base_topic, uint32_t queue_size, const image_transport::SubscriberStatusCallback& connected,
                       const image_transport::SubscriberStatusCallback& disconnected, const ros::VoidPtr& tracked_object, bool latch) override;

private:
    std::function<void(const ros::SingleSubscriberPublisher*)> status(const image_transport::SubscriberStatusCallback& user, const ros::VoidPtr& tracked_object);

    Publisher<sensor_msgs::Image> publisher_;
};

}  // namespace ropewalk_ros
