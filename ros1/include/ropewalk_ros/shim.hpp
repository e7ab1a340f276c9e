// Puts plain roscpp nodes on the bus without a change of code: compile them with
//
//     g++ -include ropewalk_ros/shim.hpp …
//
// or include this header after all of ROS's headers. `ros::NodeHandle`, `ros::Publisher` and `ros::Subscriber` then
// mean the classes below, which share messages of known types (`Twin`) in memory and leave all others to roscpp. Each
// side copies once, since roscpp's messages own their arrays. To copy nothing, use `ropewalk_ros::Publisher` and views.
// Decision 230 has the reasons.
#pragma once

#include <ros/ros.h>

// Headers with classes of these names must be included before they are renamed.
#if __has_include(<image_transport/image_transport.h>)
#include <image_transport/image_transport.h>
#endif
#if __has_include(<nodelet/nodelet.h>)
#include <nodelet/nodelet.h>
#endif
#if __has_include(<message_filters/subscriber.h>)
#include <message_filters/subscriber.h>
#endif

#include "ropewalk_ros.hpp"

namespace ropewalk_ros {
namespace shim {

template <class M, class = void>
inline constexpr bool is_shared = false;
template <class M>
inline constexpr bool is_shared<M, std::void_t<typename Twin<M>::type>> = true;

/// Like `ros::Publisher`.
class Publisher {
public:
    Publisher() = default;
    Publisher(const ros::Publisher& plain) : plain_(plain) {}
    template <class M>
    explicit Publisher(const ropewalk_ros::Publisher<M>& shared)
        : shared_(std::make_shared<ropewalk_ros::Publisher<M>>(shared)), kind_(&typeid(M)), state_(std::make_shared<Of<M>>(shared)) {}

    template <class M>
    void publish(const boost::shared_ptr<M>& message) const {
        if constexpr (is_shared<std::remove_const_t<M>>) {
            if (shared_) return publish(*message);
        }
        plain_.publish(message);
    }
    template <class M>
    void publish(const M& message) const {
        if constexpr (is_shared<M>) {
            if (shared_) {
                if (*kind_ != typeid(M)) return wrong(ros::message_traits::DataType<M>::value());
                // Failures are logged.
                return (void)static_cast<const ropewalk_ros::Publisher<M>*>(shared_.get())->publish(message);
            }
        }
        if (shared_) return wrong(ros::message_traits::DataType<M>::value());
        plain_.publish(message);
    }
    void shutdown() {
        plain_.shutdown();
        shared_.reset();
        state_.reset();
    }
    std::string getTopic() const { return state_ ? state_->topic() : plain_.getTopic(); }
    uint32_t getNumSubscribers() const { return state_ ? state_->subscribers() : plain_.getNumSubscribers(); }
    bool isLatched() const { return state_ ? state_->latched() : plain_.isLatched(); }
    operator void*() const { return state_ ? const_cast<Publisher*>(this) : static_cast<void*>(plain_); }
    bool operator==(const Publisher& other) const { return plain_ == other.plain_ && shared_ == other.shared_; }
    bool operator!=(const Publisher& other) const { return !(*this == other); }
    bool operator<(const Publisher& other) const { return shared_ != other.shared_ ? shared_ < other.shared_ : plain_ < other.plain_; }

private:
    struct State {
        virtual ~State() = default;
        virtual std::string topic() const = 0;
        virtual uint32_t subscribers() const = 0;
        virtual bool latched() const = 0;
    };
    template <class M>
    struct Of : State {
        explicit Of(const ropewalk_ros::Publisher<M>& p) : publisher(p) {}
        std::string topic() const override { return publisher.getTopic(); }
        uint32_t subscribers() const override { return publisher.getNumSubscribers(); }
        bool latched() const override { return publisher.isLatched(); }
        ropewalk_ros::Publisher<M> publisher;
    };

    void wrong(const char* kind) const {
        ROS_ERROR_THROTTLE(1, "ropewalk: a %s was published on %s, which was advertised as another type", kind, getTopic().c_str());
    }

    ros::Publisher plain_;
    std::shared_ptr<void> shared_;
    const std::type_info* kind_ = nullptr;
    std::shared_ptr<State> state_;
};

/// Like `ros::Subscriber`.
class Subscriber {
public:
    Subscriber() = default;
    Subscriber(const ros::Subscriber& plain) : plain_(plain) {}
    template <class M>
    explicit Subscriber(ropewalk_ros::Subscriber<M> shared) : shared_(std::make_shared<Of<M>>(std::move(shared))) {}

    void shutdown() {
        plain_.shutdown();
        if (shared_) shared_->end();
        shared_.reset();
    }
    std::string getTopic() const { return shared_ ? shared_->topic() : plain_.getTopic(); }
    uint32_t getNumPublishers() const { return shared_ ? shared_->publishers() : plain_.getNumPublishers(); }
    operator void*() const { return shared_ ? shared_.get() : static_cast<void*>(plain_); }
    bool operator==(const Subscriber& other) const { return plain_ == other.plain_ && shared_ == other.shared_; }
    bool operator!=(const Subscriber& other) const { return !(*this == other); }
    bool operator<(const Subscriber& other) const { return shared_ != other.shared_ ? shared_ < other.shared_ : plain_ < other.plain_; }

private:
    struct State {
        virtual ~State() = default;
        virtual void end() = 0;
        virtual std::string topic() const = 0;
        virtual uint32_t publishers() const = 0;
    };
    template <class M>
    struct Of : State {
        explicit Of(ropewalk_ros::Subscriber<M> s) : subscriber(std::move(s)) {}
        void end() override { subscriber.shutdown(); }
        std::string topic() const override { return subscriber.getTopic(); }
        uint32_t publishers() const override { return subscriber.getNumPublishers(); }
        ropewalk_ros::Subscriber<M> subscriber;
    };

    ros::Subscriber plain_;
    std::shared_ptr<State> shared_;
};

/// Like `ros::NodeHandle`; everything else is roscpp's.
class NodeHandle : public ros::NodeHandle {
public:
    using ros::NodeHandle::NodeHandle;
    NodeHandle() = default;
    NodeHandle(const ros::NodeHandle& node) : ros::NodeHandle(node) {}

    template <class M>
    Publisher advertise(const std::string& topic, uint32_t queue_size, bool latch = false) {
        return advertise<M>(topic, queue_size, ros::SubscriberStatusCallback(), ros::SubscriberStatusCallback(), ros::VoidConstPtr(), latch);
    }
    template <class M>
    Publisher advertise(const std::string& topic, uint32_t queue_size, const ros::SubscriberStatusCallback& connected,
                        const ros::SubscriberStatusCallback& disconnected = ros::SubscriberStatusCallback(),
                        const ros::VoidConstPtr& tracked_object = ros::VoidConstPtr(), bool latch = false) {
        // Connection callbacks need a ros::SingleSubscriberPublisher, which does not exist on the bus.
        if constexpr (is_shared<M>) {
            if (!connected && !disconnected) return Publisher(ropewalk_ros::advertise<M>(*this, topic, queue_size, latch));
        }
        return ros::NodeHandle::advertise<M>(topic, queue_size, connected, disconnected, tracked_object, latch);
    }
    Publisher advertise(ros::AdvertiseOptions& options) { return ros::NodeHandle::advertise(options); }

    template <class P, class T>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, void (T::*f)(P), T* object, const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<P>(topic, queue_size, [f, object](P message) { (object->*f)(message); }, ros::VoidConstPtr(), hints);
    }
    template <class P, class T>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, void (T::*f)(P) const, T* object, const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<P>(topic, queue_size, [f, object](P message) { (object->*f)(message); }, ros::VoidConstPtr(), hints);
    }
    template <class P, class T>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, void (T::*f)(P), const boost::shared_ptr<T>& object, const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<P>(topic, queue_size, [f, raw = object.get()](P message) { (raw->*f)(message); }, object, hints);
    }
    template <class P>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, void (*f)(P), const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<P>(topic, queue_size, f, ros::VoidConstPtr(), hints);
    }
    template <class M>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, const boost::function<void(const boost::shared_ptr<M const>&)>& f,
                         const ros::VoidConstPtr& tracked_object = ros::VoidConstPtr(), const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<const boost::shared_ptr<M const>&>(topic, queue_size, f, tracked_object, hints);
    }
    template <class M, class P>
    Subscriber subscribe(const std::string& topic, uint32_t queue_size, const boost::function<void(P)>& f,
                         const ros::VoidConstPtr& tracked_object = ros::VoidConstPtr(), const ros::TransportHints& hints = ros::TransportHints()) {
        return listen<P>(topic, queue_size, f, tracked_object, hints);
    }
    Subscriber subscribe(ros::SubscribeOptions& options) { return ros::NodeHandle::subscribe(options); }

private:
    template <class P, class F>
    Subscriber listen(const std::string& topic, uint32_t queue_size, F f, const ros::VoidConstPtr& tracked_object, const ros::TransportHints& hints) {
        using Adapter = ros::ParameterAdapter<P>;
        using M = typename Adapter::Message;
        // roscpp handles messages that may be changed, and events.
        constexpr bool is_plain = std::is_same_v<P, const boost::shared_ptr<M const>&> || std::is_same_v<P, boost::shared_ptr<M const>> || std::is_same_v<P, const M&>;
        if constexpr (is_shared<M> && is_plain) {
            SubscribeOptions options;
            options.queue_size = queue_size;
            options.hints = hints;
            options.tracked_object = tracked_object;
            typename ropewalk_ros::Subscriber<M>::OnMessage call = [f](const boost::shared_ptr<const M>& message) {
                if constexpr (std::is_same_v<P, const M&>) {
                    f(*message);
                } else {
                    f(message);
                }
            };
            return Subscriber(ropewalk_ros::Subscriber<M>(*this, topic, call, options));
        } else {
            return ros::NodeHandle::subscribe<M, P>(topic, queue_size, boost::function<void(P)>(f), tracked_object, hints);
        }
    }
};

}  // namespace shim
}  // namespace ropewalk_ros

namespace ros {
using RopewalkNodeHandle = ropewalk_ros::shim::NodeHandle;
using RopewalkPublisher = ropewalk_ros::shim::Publisher;
using RopewalkSubscriber = ropewalk_ros::shim::Subscriber;
}  // namespace ros

// Libraries with classes of the same names keep theirs.
#if __has_include(<image_transport/image_transport.h>)
namespace image_transport {
using RopewalkPublisher = Publisher;
using RopewalkSubscriber = Subscriber;
}  // namespace image_transport
#endif
#if __has_include(<message_filters/subscriber.h>)
namespace message_filters {
template <class M>
using RopewalkSubscriber = Subscriber<M>;
}  // namespace message_filters
#endif

#define NodeHandle RopewalkNodeHandle
#define Publisher RopewalkPublisher
#define Subscriber RopewalkSubscriber
