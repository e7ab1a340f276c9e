// Results: a value, or a status with a text. Nothing here needs exceptions.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

#include "ropewalk.h"

namespace ropewalk {

/// Why something failed: a status for programs and a text for people, which also names the remedy.
class Error {
public:
    Error(ropewalk_status status, std::string text) : status_(status), text_(std::move(text)) {}

    /// The error of this thread's C call that failed with `status`.
    static Error last(ropewalk_status status) {
        if (status == ROPEWALK_STATUS_EMPTY) return Error(status, "nothing arrived in time");
        return Error(status, ropewalk_error_message());
    }

    ropewalk_status status() const noexcept { return status_; }
    /// Whether nothing arrived in time, or a wait was interrupted.
    bool empty() const noexcept { return status_ == ROPEWALK_STATUS_EMPTY; }
    const std::string& text() const noexcept { return text_; }

private:
    ropewalk_status status_;
    std::string text_;
};

#if defined(__cpp_exceptions)
/// Thrown by `value()` if there is no value.
class Exception : public std::runtime_error {
public:
    explicit Exception(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
    const Error& error() const noexcept { return error_; }

private:
    Error error_;
};
#endif

namespace detail {

/// A mistake of the caller, such as using a moved-from message: the program cannot continue.
[[noreturn]] inline void misuse(const char* what) {
    std::fprintf(stderr, "ropewalk: %s\n", what);
    std::abort();
}

[[noreturn]] inline void fail(const Error& error) {
#if defined(__cpp_exceptions)
    throw Exception(error);
#else
    misuse(error.text().c_str());
#endif
}

}  // namespace detail

/// A value or an error. Check before use: `if (auto image = subscriber.take(timeout)) use(*image);`
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}
    /// A default value, to be filled in its final place.
    explicit Result(std::in_place_t) : content_(std::in_place_index<0>) {}

    bool ok() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    /// `ROPEWALK_STATUS_OK` if there is a value.
    ropewalk_status status() const noexcept { return ok() ? ROPEWALK_STATUS_OK : std::get_if<1>(&content_)->status(); }

    /// The value; ends the program if there is none.
    T& operator*() & { return checked(); }
    T&& operator*() && { return std::move(checked()); }
    T* operator->() { return &checked(); }

    /// The value; throws `Exception` if there is none (or, compiled without exceptions, ends the program).
    T& value() & {
        if (!ok()) detail::fail(error());
        return checked();
    }
    T&& value() && {
        if (!ok()) detail::fail(error());
        return std::move(checked());
    }

    /// The error; ends the program if there is a value.
    const Error& error() const {
        if (ok()) detail::misuse("error() was called on a result that has a value");
        return *std::get_if<1>(&content_);
    }

private:
    T& checked() {
        if (!ok()) detail::misuse(("a result without a value was used: " + error().text()).c_str());
        return *std::get_if<0>(&content_);
    }

    std::variant<T, Error> content_;
};

/// Success, or an error.
template <>
class [[nodiscard]] Result<void> : public Result<std::monostate> {
public:
    Result() : Result<std::monostate>(std::monostate{}) {}
    Result(Error error) : Result<std::monostate>(std::move(error)) {}
    /// Throws `Exception` on error (or, compiled without exceptions, ends the program).
    void value() const {
        if (!ok()) detail::fail(error());
    }
};

namespace detail {

inline Result<void> done(ropewalk_status status) {
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return {};
}

}  // namespace detail
}  // namespace ropewalk
