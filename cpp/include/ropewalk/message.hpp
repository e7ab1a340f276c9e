// Messages that were taken, and loans that are filled.
#pragma once

#include <chrono>
#include <memory>

#include "codec.hpp"

namespace ropewalk {

/// How long to wait; `forever` waits for ever.
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

/// Reads what was taken into `value`.
template <class T>
Result<void> read(const ropewalk_message* message, T& value) {
    ropewalk_message_info info;
    Read reader;
    auto status = ropewalk_message_get_info(message, &info);
    if (status == ROPEWALK_STATUS_OK) status = ropewalk_message_control(message, &reader.control, &reader.len);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    for (std::size_t i = 0; i < info.part_count; i++) {
        const std::uint8_t* data;
        std::size_t len;
        status = ropewalk_message_part(message, i, &data, &len);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        reader.parts.emplace_back(data, len);
    }
    T::ropewalk_fields(value, reader);
    reader.finish();
    if (reader.failed()) {
        return Error(ROPEWALK_STATUS_CONTENT, std::string("not a ") + Type<T>::name + ": " + reader.error());
    }
    return {};
}

/// Reserves a block: `Loan` is the C function of a publisher, client or server.
template <class Owner>
using Lend = ropewalk_status (*)(const Owner*, std::size_t, const std::size_t*, std::size_t, ropewalk_loan**);

/// Texts may grow by so many bytes after their block was allocated.
constexpr std::size_t SLACK = 256;

template <class T, class Owner>
Result<LoanHandle> lend(const T& value, const Owner* owner, Lend<Owner> lend, std::size_t slack) {
    Measure measure;
    T::ropewalk_fields(value, measure);
    if (measure.failed()) {
        return Error(ROPEWALK_STATUS_CONTENT, std::string("not a ") + Type<T>::name + ": " + measure.error());
    }
    ropewalk_loan* loan = nullptr;
    auto status = lend(owner, measure.control_len + slack, measure.part_lens.data(), measure.part_lens.size(), &loan);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return LoanHandle(loan);
}

/// The data parts of a loan.
inline std::vector<span<std::uint8_t>> parts(const ropewalk_loan* loan) {
    std::vector<span<std::uint8_t>> parts;
    std::uint8_t* data;
    std::size_t len;
    while (parts.size() < MAX_PARTS && ropewalk_loan_part(loan, parts.size(), &data, &len) == ROPEWALK_STATUS_OK) {
        parts.emplace_back(data, len);
    }
    return parts;
}

/// Writes `value` into its block.
template <class T>
Result<void> write(const T& value, ropewalk_loan* loan) {
    Write writer;
    auto status = ropewalk_loan_control(loan, &writer.control, &writer.capacity);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    writer.parts = parts(loan);
    T::ropewalk_fields(value, writer);
    if (!writer.failed()) writer.finish();
    if (writer.failed()) {
        return Error(ROPEWALK_STATUS_CONTENT, std::string("not a ") + Type<T>::name + ": " + writer.error());
    }
    return done(ropewalk_loan_shrink_control(loan, writer.at));
}

}  // namespace detail

/// A message that was taken, read where its publisher wrote it. Its publisher does not reuse the block before it is
/// destroyed. It outlives subscriber and node. Moved from, it is empty, and must not be looked into.
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

    /// For the functions of ropewalk.h.
    const ropewalk_message* handle() const noexcept { return handle_.get(); }

    /// Takes over what a C function gave.
    static Result<Message> from(ropewalk_message* handle) {
        Message message;
        message.handle_.reset(handle);
        auto read = detail::read(handle, message.value_);
        if (!read) return read.error();
        return message;
    }

    /// Gives up the handle; what the message showed is gone.
    ropewalk_message* release() noexcept {
        value_ = T();
        return handle_.release();
    }

private:
    const T* checked() const {
        if (handle_ == nullptr) detail::misuse("a message was used after it was moved or released");
        return &value_;
    }

    // Destroyed last: `value_` has views of it.
    detail::MessageHandle handle_;
    T value_;
};

/// A message to come. Set its sizes, allocate it at its publisher, fill it in place, publish it:
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
        detail::Bind bind;
        for (auto part : detail::parts(loan->get())) bind.parts.push_back(part.data());
        T::ropewalk_fields(value_, bind);
        handle_ = std::move(*loan);
        return {};
    }

    /// Writes the control part and gives up the block, which must then be published.
    Result<ropewalk_loan*> finish() {
        if (handle_ == nullptr) {
            return Error(ROPEWALK_STATUS_INVALID_ARGUMENT, "the message has no block: allocate it before");
        }
        auto written = detail::write(value_, handle_.get());
        if (!written) return written.error();
        forget();
        return handle_.release();
    }

    /// Gives the block back.
    void drop() {
        forget();
        handle_.reset();
    }

private:
    void forget() {
        if (handle_ == nullptr) return;
        detail::Release release;
        T::ropewalk_fields(value_, release);
    }

    detail::LoanHandle handle_;
    T value_;
};

}  // namespace ropewalk
