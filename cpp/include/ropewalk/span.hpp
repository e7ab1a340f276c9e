// A view of consecutive elements, like std::span of C++20.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

namespace ropewalk {

/// Elements with another owner. Copying the view copies no elements.
template <class T>
class span {
public:
    using element_type = T;
    using value_type = std::remove_cv_t<T>;

    constexpr span() noexcept = default;
    constexpr span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
    template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
    constexpr span(span<U> other) noexcept : data_(other.data()), size_(other.size()) {}
    span(const std::vector<value_type>& elements) noexcept : data_(elements.data()), size_(elements.size()) {}

    constexpr T* data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T* begin() const noexcept { return data_; }
    constexpr T* end() const noexcept { return data_ + size_; }
    constexpr T& operator[](std::size_t i) const noexcept { return data_[i]; }

private:
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

}  // namespace ropewalk
