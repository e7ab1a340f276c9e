// The bulk fields of messages: arrays in shared memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "result.hpp"
#include "span.hpp"

namespace ropewalk {

/// ROS 1 `time`, since 1970.
struct Time {
    std::uint32_t sec = 0;
    std::uint32_t nsec = 0;
    /// Converts from nanoseconds since 1970.
    static Time from_nanoseconds(std::uint64_t ns) {
        return {static_cast<std::uint32_t>(ns / 1000000000), static_cast<std::uint32_t>(ns % 1000000000)};
    }
    std::uint64_t nanoseconds() const { return sec * std::uint64_t{1000000000} + nsec; }
};

/// ROS 1 `duration`.
struct Duration {
    std::int32_t sec = 0;
    std::int32_t nsec = 0;
};

namespace detail {

/// Shorter arrays stay in the control part, since a data part of their own costs more than copying
/// (docs/wire/control-part.md).
constexpr std::size_t THRESHOLD = 256;

struct BulkAccess;

}  // namespace detail

/// An array of elements of fixed size. In a taken message it is where its publisher wrote it. In a message to be
/// published, `resize` sets its length, and after `allocate` its elements are filled in place.
template <class T>
class Bulk {
    static_assert(std::is_trivially_copyable_v<T>, "elements of data parts are plain");

public:
    using value_type = T;

    Bulk() = default;
    Bulk(const Bulk&) = delete;
    Bulk& operator=(const Bulk&) = delete;
    Bulk(Bulk&& other) noexcept { *this = std::move(other); }
    Bulk& operator=(Bulk&& other) noexcept {
        own_ = std::move(other.own_);
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
        lifted_ = std::exchange(other.lifted_, false);
        return *this;
    }

    /// Sets the number of elements. They can be written after `allocate`; those of short arrays at once.
    void resize(std::size_t n) {
        own_.clear();
        data_ = nullptr;
        size_ = n;
        lifted_ = false;
        if (n * sizeof(T) < detail::THRESHOLD) own();
    }

    /// Keeps a copy of the elements, which publishing copies again: for small arrays.
    void assign(span<const T> elements) {
        own_.assign(elements.begin(), elements.end());
        data_ = own_.data();
        size_ = own_.size();
        lifted_ = false;
    }

    std::size_t size() const noexcept { return size_; }
    std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    bool empty() const noexcept { return size_ == 0; }
    /// The elements; NULL before `allocate`.
    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    T* begin() noexcept { return data_; }
    T* end() noexcept { return data_ ? data_ + size_ : nullptr; }
    const T* begin() const noexcept { return data_; }
    const T* end() const noexcept { return data_ ? data_ + size_ : nullptr; }
    /// Element `i`; ends the program if there is no such element.
    T& operator[](std::size_t i) {
        check(i);
        return data_[i];
    }
    const T& operator[](std::size_t i) const {
        check(i);
        return data_[i];
    }
    operator span<const T>() const noexcept { return data_ ? span<const T>(data_, size_) : span<const T>(); }
    operator span<T>() noexcept { return data_ ? span<T>(data_, size_) : span<T>(); }

private:
    friend struct detail::BulkAccess;

    void check(std::size_t i) const {
        if (data_ == nullptr) detail::misuse("elements of a bulk field were used before allocate");
        if (i >= size_) detail::misuse("an element beyond the end of a bulk field was used");
    }

    void own() {
        own_.assign(size_, T{});
        data_ = own_.data();
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    /// Whether the elements are in a block.
    bool lifted_ = false;
    std::vector<T> own_;
};

namespace detail {

/// The codec's access to bulk fields.
struct BulkAccess {
    template <class T>
    static void bind(Bulk<T>& bulk, void* part) {
        auto* data = static_cast<T*>(part);
        if (bulk.data_ != nullptr && !bulk.lifted_) std::memcpy(part, bulk.data_, bulk.size_bytes());
        bulk.own_ = std::vector<T>();
        bulk.data_ = data;
        bulk.lifted_ = true;
    }
    template <class T>
    static void view(Bulk<T>& bulk, const void* part, std::size_t n) {
        // Read-only memory: a taken message is only accessible as const.
        bulk.data_ = static_cast<T*>(const_cast<void*>(part));
        bulk.size_ = n;
        bulk.lifted_ = true;
    }
    /// Allocates memory for `n` elements.
    template <class T>
    static T* own(Bulk<T>& bulk, std::size_t n) {
        bulk.size_ = n;
        bulk.lifted_ = false;
        bulk.own();
        return bulk.data_;
    }
    /// Forgets the block, which is gone; keeps the size for the next message.
    template <class T>
    static void release(Bulk<T>& bulk) {
        if (!bulk.lifted_) return;
        bulk.data_ = nullptr;
        bulk.lifted_ = false;
    }
    template <class T>
    static bool is_lifted(const Bulk<T>& bulk) {
        return bulk.lifted_;
    }
};

}  // namespace detail
}  // namespace ropewalk
