// Nodes, publishers and subscribers.
#pragma once

#include "wait.hpp"

namespace ropewalk {

using PublisherOptions = ropewalk_publisher_options;
using Published = ropewalk_published;

/// How a subscriber queues and waits: the fields of `ropewalk_subscriber_options`.
struct SubscriberOptions : ropewalk_subscriber_options {
    SubscriberOptions() : ropewalk_subscriber_options(ropewalk_subscriber_options_default()) {}
    SubscriberOptions& with_depth(std::uint32_t messages) { return depth = messages, *this; }
    SubscriberOptions& with_max_held(std::uint32_t messages) { return max_held = messages, *this; }
    SubscriberOptions& with_wait_set(const WaitSet& set) { return wait_set = set.handle(), *this; }
};

namespace detail {

inline std::string text(const std::function<ropewalk_status(char*, std::size_t, std::size_t*)>& call) {
    std::size_t len = 0;
    std::string text;
    // The text may grow in the meantime, when another peer is refused.
    while (call(text.data(), text.size(), &len) == ROPEWALK_STATUS_BUFFER_TOO_SMALL) text.resize(len);
    text.resize(len > 0 ? len - 1 : 0);
    return text;
}

/// Creates the type of a class from its generated code.
template <class T, class = void>
struct MakeType {
    static ropewalk_status make(ropewalk_type** out) {
        return ropewalk_type_from_definition(Type<T>::name, Type<T>::definition(), Type<T>::flavour, Type<T>::md5, out);
    }
};

template <class T>
Result<TypeHandle> type() {
    ropewalk_type* out = nullptr;
    auto status = MakeType<T>::make(&out);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return TypeHandle(out);
}

}  // namespace detail

/// The sending end of a topic. Any thread may use it.
template <class T>
class Publisher {
public:
    explicit Publisher(ropewalk_publisher* handle) : handle_(handle) {}

    /// Reserves a block for the message, whose bulk fields can then be filled in place.
    Result<void> allocate(Loan<T>& message) { return message.allocate(handle(), ropewalk_publisher_loan); }

    /// Publishes an allocated message. Never blocks. If the message is not well-formed, it stays allocated.
    Result<Published> publish(Loan<T>& message) {
        return message.finish([this](ropewalk_loan* loan) { return send(loan); });
    }
    Result<Published> publish(Loan<T>&& message) { return publish(message); }

    /// Publishes a complete message, which is copied into a block: for small messages.
    Result<Published> publish(const T& message) {
        auto loan = detail::copied(message, handle(), ropewalk_publisher_loan);
        if (!loan) return loan.error();
        return send(loan->release());
    }

    /// Blocks until `n` subscribers are connected. Returns an error that is `empty()` after `timeout`.
    Result<void> wait_for_subscribers(std::size_t n, Timeout timeout = forever) {
        return detail::done(ropewalk_publisher_wait_for_subscribers(handle(), n, detail::nanoseconds(timeout)));
    }
    std::size_t subscriber_count() const {
        std::size_t count = 0;
        ropewalk_publisher_subscriber_count(handle(), &count);
        return count;
    }
    /// Why recent subscribers were refused, one per line.
    std::string refusals() const {
        return detail::text([this](auto* b, auto c, auto* l) { return ropewalk_publisher_refusals(handle(), b, c, l); });
    }
    const ropewalk_publisher* handle() const noexcept { return handle_.get(); }

private:
    Result<Published> send(ropewalk_loan* loan) {
        Published published{};
        auto status = ropewalk_publisher_publish(handle(), loan, &published);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return published;
    }

    detail::Handle<ropewalk_publisher, ropewalk_publisher_free> handle_;
};

/// The receiving end of a topic. Any thread may use it.
template <class T>
class Subscriber {
public:
    explicit Subscriber(ropewalk_subscriber* handle) : handle_(handle) {}

    /// Takes the oldest waiting message, waiting for one at most `timeout`. Returns an error that is `empty()` if none
    /// arrived.
    Result<Message<T>> take(Timeout timeout = Timeout::zero()) {
        ropewalk_message* message = nullptr;
        auto status = ropewalk_subscriber_take(handle(), detail::nanoseconds(timeout), &message);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Message<T>::from(message);
    }

    /// Calls `f` with each message, on its own thread. Takes ownership of the subscriber. If `f` throws, only its
    /// current message is lost, unless `options` say otherwise.
    Callback callback(std::function<void(Message<T>)> f, CallbackOptions options = {}) && {
        auto* interrupt = ropewalk_subscriber_interrupt(handle());
        auto self = std::make_shared<Subscriber>(std::move(*this));
        auto step = [self, f = std::move(f)]() -> Result<void> {
            auto taken = self->take(forever);
            if (taken) {
                f(std::move(*taken));
                return {};
            }
            if (taken.status() == ROPEWALK_STATUS_HOLD_LIMIT) {
                return detail::done(ropewalk_subscriber_wait_takeable(self->handle(), -1));
            }
            // A bad message does not end the callback: its publisher is at fault.
            if (taken.status() == ROPEWALK_STATUS_CONTENT) return {};
            return taken.error();
        };
        return Callback(std::move(step), interrupt, options);
    }

    /// Blocks until `n` publishers are connected. Returns an error that is `empty()` after `timeout`.
    Result<void> wait_for_publishers(std::size_t n, Timeout timeout = forever) {
        return detail::done(ropewalk_subscriber_wait_for_publishers(handle(), n, detail::nanoseconds(timeout)));
    }
    /// Ends one wait, from any thread.
    void interrupt() {
        detail::InterruptHandle interrupt(ropewalk_subscriber_interrupt(handle()));
        if (interrupt) ropewalk_interrupt_wake(interrupt.get());
    }
    /// Counters of received and lost messages.
    ropewalk_subscriber_stats stats() const {
        ropewalk_subscriber_stats stats{};
        ropewalk_subscriber_get_stats(handle(), &stats);
        return stats;
    }
    /// Readable while a message can be taken: for select, poll, epoll; -1 if the subscriber was moved from.
    int fd() const {
        int fd = -1;
        ropewalk_subscriber_fd(handle(), &fd);
        return fd;
    }
    /// Why recent publishers were refused, one per line.
    std::string refusals() const {
        return detail::text([this](auto* b, auto c, auto* l) { return ropewalk_subscriber_refusals(handle(), b, c, l); });
    }
    const ropewalk_subscriber* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<ropewalk_subscriber, ropewalk_subscriber_free> handle_;
};

template <class S>
class Client;
template <class S>
class Server;

/// A named member of this host's bus.
class Node {
public:
    /// Creates a node on the bus that `ROPEWALK_RUNTIME_DIR` and `ROPEWALK_DOMAIN` name.
    static Result<Node> create(const std::string& name, const ropewalk_node_options* options = nullptr) {
        ropewalk_node* node = nullptr;
        auto status = ropewalk_node_new(name.c_str(), options, &node);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Node(node);
    }

    /// Creates a publisher on a topic. Returns at once; subscribers connect in the background.
    template <class T>
    Result<Publisher<T>> publisher(const std::string& topic,
                                   PublisherOptions options = ropewalk_publisher_options_default()) {
        auto type = detail::type<T>();
        if (!type) return type.error();
        ropewalk_publisher* out = nullptr;
        auto status = ropewalk_node_publisher(handle(), topic.c_str(), type->get(), &options, &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Publisher<T>(out);
    }

    /// Subscribes to a topic. Publishers of another type are refused, and both sides record why.
    template <class T>
    Result<Subscriber<T>> subscriber(const std::string& topic, const SubscriberOptions& options = SubscriberOptions()) {
        auto type = detail::type<T>();
        if (!type) return type.error();
        ropewalk_subscriber* out = nullptr;
        auto status = ropewalk_node_subscriber(handle(), topic.c_str(), type->get(), &options, &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        detail::fetch_when_woken<T>(out);
        return Subscriber<T>(out);
    }

    /// Creates a client of a service.
    template <class S>
    Result<Client<S>> client(const std::string& service);

    /// Creates a server of a service. With a wait set it wakes that set.
    template <class S>
    Result<Server<S>> server(const std::string& service, const WaitSet* wait_set = nullptr);

    /// Creates a doorbell that several subscribers and servers share.
    Result<WaitSet> wait_set() {
        ropewalk_wait_set* out = nullptr;
        auto status = ropewalk_node_wait_set(handle(), &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return WaitSet(out);
    }

    const ropewalk_node* handle() const noexcept { return handle_.get(); }

private:
    explicit Node(ropewalk_node* handle) : handle_(handle) {}
    detail::Handle<ropewalk_node, ropewalk_node_free> handle_;
};

}  // namespace ropewalk
