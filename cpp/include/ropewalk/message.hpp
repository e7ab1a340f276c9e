// Messages that were taken, and loans to fill.
#pragma once

#include <chrono>
#include <memory>

#include "codec.hpp"

namespace ropewalk {

/// How long to wait; `forever` has no limit.
using Timeout = std::chrono::nanoseconds;
inline constexpr Timeout forever{-1};

namespace detail {

/// Owns a C handle.
template <class T, void (*Free)(T*)>
struct Freer {
    void operator()(T* handle) const { Free(handle); }
};
template <class T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Freer<T, Free>>;

using MessageHandle = Handle<ropewalk_message, ropewalk_message_free>;
using LoanHandle = Handle<ropewalk_loan, ropewalk_loan_free>;
using TypeHandle = Handle<ropewalk_type, ropewalk_type_free>;
using ServiceTypeHandle = Handle<ropewalk_service_type, ropewalk_service_type_free>;
using InterruptHandle = Handle<ropewalk_interrupt, ropewalk_interrupt_free>;

inline std::int64_t nanoseconds(Timeout timeout) { return timeout.count(); }

template <class T, class Visitor>
[[gnu::cold, gnu::noinline]] Error not_a(const Visitor& visitor) {
    return Error(ROPEWALK_STATUS_CONTENT, std::string("the message is not a ") + Type<T>::name + ": " + visitor.error());
}

/// Reads a taken message into `value`.
template <class T>
[[gnu::noinline]] Result<void> read(const ropewalk_message* message, T& value) {
    Places<ropewalk_bytes> places;
    auto status = ropewalk_message_content(message, &places.control, places.parts.data(), MAX_PARTS, &places.count);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    Read reader(places);
    walk_fields(value, reader);
    reader.finish();
    if (reader.failed()) return not_a<T>(reader);
    return {};
}

/// Prefetches the code of `read` whenever the subscriber wakes. The lengths of its straight paths are estimates.
template <class T>
void fetch_when_woken(const ropewalk_subscriber* subscriber) {
    constexpr std::size_t READ = 1600, TEXT = 704;
    ropewalk_subscriber_fetch_when_woken(subscriber, reinterpret_cast<const void*>(&read<T>), READ);
    ropewalk_subscriber_fetch_when_woken(subscriber, reinterpret_cast<const void*>(&Read::text_of<char>), TEXT);
}

/// Reserves a block: `Loan` is the C function of a publisher, client or server.
template <class Owner>
using Lend = ropewalk_status (*)(const Owner*, std::size_t, const std::size_t*, std::size_t, ropewalk_loan**);

/// Texts may grow by this many bytes after their block was allocated.
constexpr std::size_t SLACK = 256;

template <class T, class Owner>
Result<LoanHandle> lend(const T& value, const Owner* owner, Lend<Owner> lend, std::size_t slack) {
    Measure measure;
    walk_fields(value, measure);
    if (measure.failed()) return not_a<T>(measure);
    ropewalk_loan* loan = nullptr;
    auto status = lend(owner, measure.control_len + slack, measure.part_lens.data(), measure.part_count, &loan);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return LoanHandle(loan);
}

/// Returns the addresses to which a loan is written.
inline Result<void> locate(const ropewalk_loan* loan, Places<ropewalk_place>& places) {
    return done(ropewalk_loan_content(loan, &places.control, places.parts.data(), MAX_PARTS, &places.count));
}

/// Writes `value` into its block.
template <class T>
Result<void> write(const T& value, ropewalk_loan* loan, const Places<ropewalk_place>& places) {
    Write writer(places);
    walk_fields(value, writer);
    if (!writer.failed()) writer.finish();
    if (writer.failed()) return not_a<T>(writer);
    if (writer.at == places.control.len) return {};
    return done(ropewalk_loan_shrink_control(loan, writer.at));
}

/// Returns a block that contains the whole message.
template <class T, class Owner>
Result<LoanHandle> copied(const T& value, const Owner* owner, Lend<Owner> reserve) {
    auto loan = lend(value, owner, reserve, 0);
    if (!loan) return loan.error();
    Places<ropewalk_place> places;
    if (auto located = locate(loan->get(), places); !located) return located.error();
    if (auto written = write(value, loan->get(), places); !written) return written.error();
    return loan;
}

}  // namespace detail

/// A message that was taken, read where its publisher wrote it. Its publisher does not reuse the block before the
/// message is destroyed. It outlives subscriber and node. A moved-from message is empty and must not be accessed.
template <class T>
class Message {
public:
    const T& operator*() const { return *checked(); }
    const T* operator->() const { return checked(); }
    explicit operator bool() const noexcept { return handle_ != nullptr; }

    /// Stamp, sequence, losses.
    ropewalk_message_info info() const {
        ropewalk_message_info info{};
        checked();
        ropewalk_message_get_info(handle_.get(), &info);
        return info;
    }

    /// The handle, for the functions of ropewalk.h.
    const ropewalk_message* handle() const noexcept { return handle_.get(); }

    /// Takes ownership of a handle from a C function.
    static Result<Message> from(ropewalk_message* handle) {
        // Read in its final place: moving costs as much as reading.
        Result<Message> result(std::in_place);
        Message& message = *result;
        message.handle_.reset(handle);
        if (auto read = detail::read(handle, message.value_); !read) result = read.error();
        return result;
    }

    /// Gives up the handle; the message's content is no longer accessible.
    ropewalk_message* release() noexcept {
        value_ = T();
        return handle_.release();
    }

private:
    const T* checked() const {
        if (handle_ == nullptr) detail::misuse("a message was used after it was moved or released");
        return &value_;
    }

    // Destroyed last: `value_` has views into it.
    detail::MessageHandle handle_;
    T value_;
};

/// A message to publish. Set its sizes, allocate it at its publisher, fill it in place, publish it:
///
///     Loan<Image> image;
///     image->data.resize(1920 * 1080);
///     if (auto ready = publisher.allocate(image); !ready) ...
///     std::fill(image->data.begin(), image->data.end(), 0);
///     publisher.publish(image);
///
/// After publishing it keeps its fields, and may be allocated again.
template <class T>
class Loan {
public:
    T& operator*() noexcept { return value_; }
    T* operator->() noexcept { return &value_; }
    const T& operator*() const noexcept { return value_; }
    const T* operator->() const noexcept { return &value_; }
    bool allocated() const noexcept { return handle_ != nullptr; }

    /// Reserves the block, for publishers, clients and servers.
    template <class Owner>
    Result<void> allocate(const Owner* owner, detail::Lend<Owner> lend) {
        drop();
        auto loan = detail::lend(value_, owner, lend, detail::SLACK);
        if (!loan) return loan.error();
        if (auto located = detail::locate(loan->get(), places_); !located) return located.error();
        detail::Bind bind(places_);
        detail::walk_fields(value_, bind);
        handle_ = std::move(*loan);
        rehearse();
        return {};
    }

    /// Writes the control part, passes the block to `send`, and returns the result of `send`.
    template <class Send>
    auto finish(Send send) -> decltype(send(std::declval<ropewalk_loan*>())) {
        if (handle_ == nullptr) {
            return Error(ROPEWALK_STATUS_INVALID_ARGUMENT, "the message has no block: allocate it first");
        }
        if (auto written = detail::write(value_, handle_.get(), places_); !written) return written.error();
        // Send first: the receiver need not wait for the cleanup.
        auto sent = send(handle_.release());
        forget();
        return sent;
    }

    /// Returns the block.
    void drop() {
        if (handle_ == nullptr) return;
        forget();
        handle_.reset();
    }

private:
    /// Writes what `finish` will write, so that its code and the start of the block are in the caches by then. Errors
    /// are left to `finish`. Skipped for large messages, where writing takes longer than fetching the code.
    void rehearse() {
        constexpr std::size_t MUCH = 4096;
        if (places_.control.len > MUCH) return;
        detail::Write writer(places_);
        detail::walk_fields(value_, writer);
    }
    /// Detaches the bulk fields from the block.
    void forget() {
        detail::Release release;
        detail::walk_fields(value_, release);
    }

    detail::LoanHandle handle_;
    T value_;
    detail::Places<ropewalk_place> places_;
};

}  // namespace ropewalk
