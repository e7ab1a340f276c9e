// Subscribers that read messages where their publishers wrote them.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <boost/make_shared.hpp>
#include <ros/callback_queue_interface.h>
#include <ros/ros.h>

#include "bus.hpp"
#include "offer.hpp"
#include "types.hpp"
#include "wire.hpp"

namespace ropewalk_ros {

/// A message of roscpp's type `M`, read where its publisher wrote it. It may be kept: the memory is not reused before
/// the last copy of the pointer is gone. Fields are named as in `M`; times are `ropewalk::Time` (`ropewalk_ros::time`
/// converts).
template <class M>
using View = boost::shared_ptr<const Shared<M>>;

/// Options of a subscriber.
struct SubscribeOptions {
    /// Number of waiting messages per publisher; a newer one replaces the oldest.
    std::uint32_t queue_size = 1;
    /// Number of views per publisher that may be kept at a time; at least `queue_size`.
    std::uint32_t max_held = 16;
    /// For messages through ROS.
    ros::TransportHints hints;
    /// Callbacks are skipped once it is gone.
    ros::VoidConstPtr tracked_object;
};

/// Receives from the publishers of one topic, from each over the transport that both share: the bus, or ROS. Callbacks
/// run on the node handle's callback queue, one at a time per transport. Copies share one subscriber, which ends with
/// the last of them.
template <class M>
class Subscriber {
public:
    using Type = Shared<M>;
    using OnView = std::function<void(const View<M>&)>;
    using OnMessage = std::function<void(const boost::shared_ptr<const M>&)>;

    Subscriber() = default;
    /// Calls `f` with views: nothing is copied.
    Subscriber(ros::NodeHandle& nh, const std::string& topic, OnView f, SubscribeOptions options = {}) : Subscriber(nh, topic, std::move(options), std::move(f), {}) {}
    /// Calls `f` with roscpp messages, each a copy.
    Subscriber(ros::NodeHandle& nh, const std::string& topic, OnMessage f, SubscribeOptions options = {}) : Subscriber(nh, topic, std::move(options), {}, std::move(f)) {}

    /// Publishers on the bus, and those through ROS.
    std::uint32_t getNumPublishers() const { return impl_ ? impl_->publishers() : 0; }
    /// The resolved name.
    std::string getTopic() const { return impl_ ? impl_->topic : std::string(); }
    /// After it returns no callback starts; one that was running in another thread has ended.
    void shutdown() {
        if (impl_) impl_->end();
        impl_.reset();
    }
    explicit operator bool() const { return impl_ != nullptr; }
    /// Messages received and lost on the bus.
    ropewalk_subscriber_stats stats() const { return impl_ && impl_->bus ? impl_->bus->stats() : ropewalk_subscriber_stats{}; }

private:
    Subscriber(ros::NodeHandle& nh, const std::string& topic, SubscribeOptions options, OnView on_view, OnMessage on_message) {
        auto impl = std::make_shared<Impl>(nh, topic, std::move(options), std::move(on_view), std::move(on_message));
        impl->begin();
        // It ends with the last copy, whichever thread runs callbacks at that moment.
        impl_ = std::shared_ptr<Impl>(impl.get(), [impl](Impl*) mutable {
            impl->end();
            impl.reset();
        });
    }

    struct Impl : std::enable_shared_from_this<Impl> {
        Impl(ros::NodeHandle& n, const std::string& name, SubscribeOptions o, OnView view, OnMessage message)
            : nh(n), topic(n.resolveName(name)), options(std::move(o)), on_view(std::move(view)), on_message(std::move(message)) {
            queue = static_cast<ros::CallbackQueueInterface*>(nh.getCallbackQueue());
            tracked = options.tracked_object;
            is_tracked = options.tracked_object != nullptr;
            options.tracked_object.reset();
        }

        void begin() {
            membership = Bus::join();
            if (auto* node = membership->node()) {
                ropewalk::SubscriberOptions of_bus;
                // 0 is "all" in ROS.
                auto depth = options.queue_size == 0 ? 4096u : std::min(options.queue_size, 4096u);
                of_bus.with_depth(depth).with_max_held(std::min(std::max(options.max_held, depth), 4096u));
                auto made = node->template subscriber<Type>(topic, of_bus);
                if (made) {
                    bus = std::move(*made);
                } else {
                    ROS_ERROR("ropewalk: %s: %s. Until then it comes through ROS, copied", topic.c_str(), made.error().text().c_str());
                }
            }
            std::weak_ptr<Impl> weak = this->shared_from_this();
            boost::function<void(const std_msgs::String::ConstPtr&)> hear = [weak](const std_msgs::String::ConstPtr& offer) {
                if (auto self = weak.lock()) self->hear(*offer);
            };
            offers = nh.subscribe<std_msgs::String>(detail::Offer::topic(topic), 64, hear);
            if (!bus) return;
            watch = nh.createSteadyTimer(ros::WallDuration(1.0), [weak](const ros::SteadyTimerEvent&) {
                auto self = weak.lock();
                if (!self) return;
                self->news.tell(self->bus->refusals(), [&](const std::string& why) {
                    ROS_ERROR("ropewalk: a publisher of %s on the bus is refused: %s", self->topic.c_str(), why.c_str());
                });
            });
            waiter = std::thread([this] { wait(); });
        }

        /// A publisher announces which bus it is on.
        void hear(const std_msgs::String& offer) {
            auto identity = detail::Offer::read(offer);
            if (identity.empty()) {
                ROS_ERROR_THROTTLE(10, "ropewalk: %s: cannot read a publisher's offer (\"%.40s\"): install the same version of ropewalk_ros everywhere",
                                   topic.c_str(), offer.data.c_str());
                return;
            }
            if (bus && identity == membership->identity()) return;
            std::lock_guard<std::mutex> lock(mutex);
            if (stop || through_ros.count(identity) > 0) return;
            if (through_ros.size() >= MAX_HOSTS) {
                ROS_ERROR_THROTTLE(10, "ropewalk: %s: publishers on more than %zu other buses: restart the subscriber", topic.c_str(), MAX_HOSTS);
                return;
            }
            std::weak_ptr<Impl> weak = this->shared_from_this();
            auto name = detail::Offer::ros_topic(topic, identity);
            if (on_view) {
                boost::function<void(const boost::shared_ptr<const detail::Incoming<Type>>&)> take = [weak](const boost::shared_ptr<const detail::Incoming<Type>>& in) {
                    if (auto self = weak.lock()) self->give(View<M>(in, in->message.get()));
                };
                through_ros[identity] = nh.subscribe<detail::Incoming<Type>>(name, options.queue_size, take, ros::VoidConstPtr(), options.hints);
            } else {
                boost::function<void(const boost::shared_ptr<const M>&)> take = [weak](const boost::shared_ptr<const M>& message) {
                    if (auto self = weak.lock()) self->give(message);
                };
                through_ros[identity] = nh.subscribe<M>(name, options.queue_size, take, ros::VoidConstPtr(), options.hints);
            }
        }

        void give(const View<M>& view) {
            auto alive = tracked.lock();
            if (!is_tracked || alive) on_view(view);
        }
        void give(const boost::shared_ptr<const M>& message) {
            auto alive = tracked.lock();
            if (!is_tracked || alive) on_message(message);
        }

        /// Runs on its own thread: when something can be taken, the thread that spins the callback queue takes it.
        void wait() {
            auto turn = boost::make_shared<Turn>(this->weak_from_this());
            while (true) {
                auto status = ropewalk_subscriber_wait_takeable(bus->handle(), -1);
                std::unique_lock<std::mutex> lock(mutex);
                if (stop) return;
                if (status == ROPEWALK_STATUS_EMPTY) continue;
                if (status != ROPEWALK_STATUS_OK) {
                    ROS_ERROR("ropewalk: %s: messages stop arriving over the bus: %s", topic.c_str(), ropewalk_error_message());
                    return;
                }
                due = true;
                lock.unlock();
                queue->addCallback(turn, id());
                lock.lock();
                turned.wait(lock, [this] { return !due || stop; });
                if (stop) return;
            }
        }

        /// Takes one message and passes it to the user.
        void take() {
            auto taken = bus->take();
            if (!taken) {
                // The waiting message may have been replaced in the meantime.
                if (!taken.error().empty() && taken.status() != ROPEWALK_STATUS_HOLD_LIMIT) {
                    ROS_ERROR_THROTTLE(1, "ropewalk: %s: a message cannot be read: %s", topic.c_str(), taken.error().text().c_str());
                }
                return;
            }
            if (on_view) {
                auto kept = boost::make_shared<ropewalk::Message<Type>>(std::move(*taken));
                return give(View<M>(kept, &**kept));
            }
            auto message = boost::make_shared<M>();
            if (auto copied = copy(std::move(*taken), *message); !copied) {
                ROS_ERROR_THROTTLE(1, "ropewalk: %s: a message cannot be read: %s", topic.c_str(), copied.error().text().c_str());
                return;
            }
            give(boost::shared_ptr<const M>(message));
        }

        /// The block is free again when it returns, since the user's function may take long.
        static ropewalk::Result<void> copy(ropewalk::Message<Type> from, M& to) {
            if constexpr (detail::Copy<M>::direct) {
                detail::Copy<M>::out(*from, to);
                return {};
            } else {
                return detail::Copy<M>::out(from, to);
            }
        }

        void done() {
            std::lock_guard<std::mutex> lock(mutex);
            due = false;
            turned.notify_one();
        }

        void end() {
            {
                std::lock_guard<std::mutex> lock(mutex);
                if (std::exchange(stop, true)) return;
                turned.notify_one();
            }
            offers.shutdown();
            watch.stop();
            if (waiter.joinable()) {
                bus->interrupt();
                waiter.join();
            }
            queue->removeByID(id());
            for (auto& [identity, subscriber] : through_ros) subscriber.shutdown();
        }

        std::uint32_t publishers() const {
            auto count = bus ? static_cast<std::uint32_t>(bus->stats().publishers) : 0;
            std::lock_guard<std::mutex> lock(mutex);
            for (const auto& [identity, subscriber] : through_ros) count += subscriber.getNumPublishers();
            return count;
        }

        std::uint64_t id() const { return reinterpret_cast<std::uint64_t>(this); }

        static constexpr std::size_t MAX_HOSTS = 256;

        ros::NodeHandle nh;
        std::string topic;
        SubscribeOptions options;
        OnView on_view;
        OnMessage on_message;
        ros::CallbackQueueInterface* queue;
        boost::weak_ptr<void const> tracked;
        bool is_tracked;
        std::shared_ptr<Bus> membership;
        mutable std::optional<ropewalk::Subscriber<Type>> bus;
        ros::Subscriber offers;
        std::map<std::string, ros::Subscriber> through_ros;
        detail::News news;
        ros::SteadyTimer watch;
        mutable std::mutex mutex;
        std::condition_variable turned;
        bool due = false;
        bool stop = false;
        std::thread waiter;
    };

    /// A message's turn on the callback queue.
    class Turn : public ros::CallbackInterface {
    public:
        explicit Turn(std::weak_ptr<Impl> impl) : impl_(std::move(impl)) {}
        CallResult call() override {
            auto impl = impl_.lock();
            if (!impl) return Invalid;
            struct Done {
                Impl& impl;
                ~Done() { impl.done(); }
            } done{*impl};
            impl->take();
            return Success;
        }

    private:
        std::weak_ptr<Impl> impl_;
    };

    std::shared_ptr<Impl> impl_;
};

/// Calls `f` with views: like `nh.subscribe`, and nothing is copied.
template <class M>
Subscriber<M> subscribe(ros::NodeHandle& nh, const std::string& topic, std::uint32_t queue_size, typename Subscriber<M>::OnView f) {
    SubscribeOptions options;
    options.queue_size = queue_size;
    return Subscriber<M>(nh, topic, std::move(f), std::move(options));
}

/// As above, with a member function.
template <class M, class T>
Subscriber<M> subscribe(ros::NodeHandle& nh, const std::string& topic, std::uint32_t queue_size, void (T::*f)(const View<M>&), T* object) {
    return subscribe<M>(nh, topic, queue_size, [object, f](const View<M>& view) { (object->*f)(view); });
}

}  // namespace ropewalk_ros
