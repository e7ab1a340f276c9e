// Outcomes: a value, or a status with a text. Nothing here needs exceptions.
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

/// Why something failed: a status for programs and a text for people, which names the mend.
class Error {
public:
    Error(ropewalk_status status, std::string text) : status_(status), text_(std::move(text)) {}

    /// The error of the C call of this thread that failed with `status`.
    static Error last(ropewalk_status status) {
        if (status == ROPEWALK_STATUS_EMPTY) return Error(status, "nothing came in time");
        return Error(status, ropewalk_error_message());
    }

    ropewalk_status status() const noexcept { return status_; }
    /// Whether there merely was nothing in time, or a wait was interrupted.
    bool empty() const noexcept { return status_ == ROPEWALK_STATUS_EMPTY; }
    const std::string& text() const noexcept { return text_; }

private:
    ropewalk_status status_;
    std::string text_;
};

#if defined(__cpp_exceptions)
/// What `value()` throws where there is none.
class Exception : public std::runtime_error {
public:
    explicit Exception(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
    const Error& error() const noexcept { return error_; }

private:
    Error error_;
};
#endif

namespace detail {

/// The caller's mistake, such as the use of a message that was moved away: there is nothing to go on with.
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

/// A value or an error. Look before you take: `if (auto image = subscriber.take(timeout)) use(*image);`
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : content_(std::in_place_index<1>, std::move(error)) {}
    /// A default value, to be filled where it stays.
    explicit Result(std::in_place_t) : content_(std::in_place_index<0>) {}

    bool ok() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return ok(); }
    /// `ROPEWALK_STATUS_OK` if there is a value.
    ropewalk_status status() const noexcept { return ok() ? ROPEWALK_STATUS_OK : std::get_if<1>(&content_)->status(); }

    /// The value; without one the program ends.
    T& operator*() & { return checked(); }
    T&& operator*() && { return std::move(checked()); }
    T* operator->() { return &checked(); }

    /// The value; without one it throws `Exception` (or, compiled without exceptions, ends the program).
    T& value() & {
        if (!ok()) detail::fail(error());
        return checked();
    }
    T&& value() && {
        if (!ok()) detail::fail(error());
        return std::move(checked());
    }

    /// The error; with a value the program ends.
    const Error& error() const {
        if (ok()) detail::misuse("the error of a result that is none was asked for");
        return *std::get_if<1>(&content_);
    }

private:
    T& checked() {
        if (!ok()) detail::misuse(("a result without a value was used: " + error().text()).c_str());
        return *std::get_if<0>(&content_);
    }

    std::variant<T, Error> content_;
};

/// Done, or an error.
template <>
class [[nodiscard]] Result<void> : public Result<std::monostate> {
public:
    Result() : Result<std::monostate>(std::monostate{}) {}
    Result(Error error) : Result<std::monostate>(std::move(error)) {}
    /// Throws `Exception` (or, compiled without exceptions, ends the program) unless it is done.
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
