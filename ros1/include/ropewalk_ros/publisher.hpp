// Publishers whose messages are in shared memory.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <ros/ros.h>

#include "bus.hpp"
#include "offer.hpp"
#include "types.hpp"
#include "wire.hpp"

namespace ropewalk_ros {

/// Options of a publisher.
struct AdvertiseOptions {
    /// Number of messages that wait for one subscriber through ROS.
    std::uint32_t queue_size = 1;
    /// Whether the last message is kept for late joiners.
    bool latch = false;
    /// Whether nodes without Ropewalk can subscribe too. They cost nothing while there are none, unless the topic is
    /// latched.
    bool plain = true;
    /// Called when the number of subscribers has increased or decreased, on the node's callback queue. Those of this
    /// host are counted ten times a second. The argument is NULL for them, and given for subscribers through ROS.
    std::function<void(const ros::SingleSubscriberPublisher*)> connected;
    std::function<void(const ros::SingleSubscriberPublisher*)> disconnected;
    /// Connection callbacks are skipped once it is gone.
    ros::VoidConstPtr tracked_object;
    /// Shared memory, and the policy when it is short.
    ropewalk::PublisherOptions memory = ropewalk_publisher_options_default();
};

/// Publishes messages of roscpp's type `M`: to subscribers on this host's bus in shared memory, to others through ROS.
/// Copies share one publisher, which ends with the last of them. Any thread may use it.
template <class M>
class Publisher {
public:
    /// The type of `M`'s definition, with bulk fields in shared memory.
    using Type = Shared<M>;
    /// A message to publish: set its sizes, allocate, fill in place, publish.
    using Loan = ropewalk::Loan<Type>;

    Publisher() = default;
    Publisher(ros::NodeHandle& nh, const std::string& topic, AdvertiseOptions options = {})
        : impl_(std::make_shared<Impl>(nh, topic, std::move(options))) {
        impl_->watch_bus(nh);
    }

    /// Reserves a block for the message, whose bulk fields can then be filled in place. Without a bus, allocates
    /// ordinary memory. If it fails, ROS_ERROR reports why.
    ropewalk::Result<void> allocate(Loan& message) const {
        if (!impl_) return none();
        if (impl_->bus) {
            ropewalk::Result<void> ready = impl_->bus->allocate(message);
            if (ready) return ready;
            return tell(std::move(ready));
        }
        const ropewalk::detail::Places<ropewalk_place> nowhere{};
        ropewalk::detail::Bind bind(nowhere);
        Type::ropewalk_fields(*message, bind);
        return {};
    }

    /// Publishes a message that was allocated and filled: nothing is copied. Never blocks. If it fails, the message
    /// stays allocated, and ROS_ERROR reports why.
    ropewalk::Result<void> publish(Loan& message) const {
        if (!impl_) return none();
        if constexpr (detail::has_header<Type>) message->header.seq = impl_->sequence++;
        if (auto sent = through_ros(*message); !sent) return tell(sent);
        if (!impl_->bus) return {};
        auto done = impl_->bus->publish(message);
        return done ? ropewalk::Result<void>() : tell(done.error());
    }
    ropewalk::Result<void> publish(Loan&& message) const { return publish(message); }

    /// Publishes a copy of a roscpp message. The publisher counts its `header.seq`, as in ROS.
    ropewalk::Result<void> publish(const M& message) const {
        if constexpr (detail::Copy<M>::direct) {
            const auto& bulk = detail::Copy<M>::bulk(message);
            return publish(message, bulk.data(), bulk.size());
        } else {
            if (!impl_) return none();
            if (wanted(impl_->remote)) impl_->remote.publish(message);
            if (wanted(impl_->plain)) impl_->plain.publish(message);
            if (!impl_->bus || !bus_wants()) return {};
            auto done = detail::Copy<M>::publish(*impl_->bus, message, impl_->sequence++);
            return done ? done : tell(done);
        }
    }
    ropewalk::Result<void> publish(const boost::shared_ptr<const M>& message) const { return publish(*message); }
    ropewalk::Result<void> publish(const boost::shared_ptr<M>& message) const { return publish(*message); }

    /// As above, with the content of the bulk field (an image's pixels, a cloud's points) from separate memory: `n`
    /// bytes.
    ropewalk::Result<void> publish(const M& message, const std::uint8_t* data, std::size_t n) const {
        if (!impl_) return none();
        if (!bus_wants() && !wanted(impl_->remote) && !wanted(impl_->plain)) return {};
        Loan loan;
        detail::Copy<M>::in(message, n, *loan);
        if (auto ready = allocate(loan); !ready) return ready;
        if (n > 0) std::memcpy(loan->data.data(), data, n);
        return publish(loan);
    }

    /// Subscribers on this host's bus, on other hosts, and without Ropewalk.
    std::uint32_t getNumSubscribers() const { return impl_ ? impl_->subscribers() : 0; }
    /// The resolved name.
    std::string getTopic() const { return impl_ ? impl_->topic : std::string(); }
    bool isLatched() const { return impl_ && impl_->options.latch; }
    void shutdown() { impl_.reset(); }
    explicit operator bool() const { return impl_ != nullptr; }
    /// Whether there is a bus; otherwise everything goes through ROS.
    bool on_bus() const { return impl_ && impl_->bus; }

private:
    struct Impl : std::enable_shared_from_this<Impl> {
        Impl(ros::NodeHandle& nh, const std::string& name, AdvertiseOptions o) : topic(nh.resolveName(name)), options(std::move(o)) {
            membership = Bus::join();
            if (auto* node = membership->node()) {
                auto memory = options.memory;
                if (options.latch && memory.history == 0) memory.history = 1;
                auto made = node->template publisher<Type>(topic, memory);
                if (made) {
                    bus = std::move(*made);
                } else {
                    ROS_ERROR("ropewalk: %s: %s. Until then it goes through ROS, copied", topic.c_str(), made.error().text().c_str());
                }
            }
            const std::string identity = bus ? membership->identity() : "none";
            remote = advertise<M>(nh, detail::Offer::ros_topic(topic, identity));
            // Before the plain topic: a subscriber that looks for publishers without Ropewalk then recognizes this one.
            offer = nh.advertise<std_msgs::String>(detail::Offer::topic(topic), 1, true);
            offer.publish(detail::Offer::write(identity));
            if (options.plain) plain = advertise<M>(nh, topic);
        }

        void watch_bus(ros::NodeHandle& nh) {
            if (!bus) return;
            bool counts = options.connected || options.disconnected;
            // A callback may end the publisher.
            auto look = [weak = this->weak_from_this()](const ros::SteadyTimerEvent&) {
                if (auto self = weak.lock()) self->look();
            };
            watch = nh.createSteadyTimer(ros::WallDuration(counts ? 0.1 : 1.0), look);
        }

        template <class T>
        ros::Publisher advertise(ros::NodeHandle& nh, const std::string& name) {
            auto call = [](const auto& f) {
                return f ? ros::SubscriberStatusCallback([f](const ros::SingleSubscriberPublisher& to) { f(&to); }) : ros::SubscriberStatusCallback();
            };
            return nh.advertise<T>(name, options.queue_size, call(options.connected), call(options.disconnected), options.tracked_object, options.latch);
        }

        void look() {
            news.tell(bus->refusals(), [this](const std::string& why) {
                ROS_ERROR("ropewalk: a subscriber of %s on the bus is refused: %s", topic.c_str(), why.c_str());
            });
            auto count = bus->subscriber_count();
            auto before = std::exchange(counted, count);
            for (; before < count; before++) {
                if (options.connected) options.connected(nullptr);
            }
            for (; before > count; before--) {
                if (options.disconnected) options.disconnected(nullptr);
            }
        }

        std::uint32_t subscribers() const {
            auto on_bus = bus ? bus->subscriber_count() : 0;
            return static_cast<std::uint32_t>(on_bus) + remote.getNumSubscribers() + (plain ? plain.getNumSubscribers() : 0);
        }

        std::string topic;
        AdvertiseOptions options;
        std::shared_ptr<Bus> membership;
        mutable std::optional<ropewalk::Publisher<Type>> bus;
        ros::Publisher offer, remote, plain;
        std::atomic<std::uint32_t> sequence{0};
        std::size_t counted = 0;
        detail::News news;
        ros::SteadyTimer watch;
    };

    bool bus_wants() const { return impl_->bus && (impl_->options.latch || impl_->bus->subscriber_count() > 0); }

    static bool wanted(const ros::Publisher& publisher) {
        return publisher && (publisher.isLatched() || publisher.getNumSubscribers() > 0);
    }

    ropewalk::Result<void> through_ros(const Type& message) const {
        try {
            for (const auto* publisher : {&impl_->remote, &impl_->plain}) {
                if (wanted(*publisher)) publisher->publish(detail::Outgoing<Type>{message});
            }
        } catch (const std::exception& e) {
            return ropewalk::Error(ROPEWALK_STATUS_CONTENT, e.what());
        }
        return {};
    }

    ropewalk::Result<void> tell(ropewalk::Result<void> failed) const {
        ROS_ERROR_THROTTLE(1, "ropewalk: %s: a message is not published: %s", impl_->topic.c_str(), failed.error().text().c_str());
        return failed;
    }

    static ropewalk::Error none() { return ropewalk::Error(ROPEWALK_STATUS_INVALID_ARGUMENT, "the publisher is empty or was shut down: advertise it"); }

    std::shared_ptr<Impl> impl_;
};

/// Like `nh.advertise<M>(topic, queue_size, latch)`.
template <class M>
Publisher<M> advertise(ros::NodeHandle& nh, const std::string& topic, std::uint32_t queue_size, bool latch = false) {
    AdvertiseOptions options;
    options.queue_size = queue_size;
    options.latch = latch;
    return Publisher<M>(nh, topic, std::move(options));
}

}  // namespace ropewalk_ros
