// Waiting for many endpoints, and ending waits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "message.hpp"

namespace ropewalk {

/// One doorbell for many subscribers and servers: create it with `Node::wait_set`, and name it in their options.
class WaitSet {
public:
    explicit WaitSet(ropewalk_wait_set* handle) : handle_(handle) {}

    /// Blocks until something can be taken from a member. Returns an error that is `empty()` after `timeout` or an
    /// interrupt.
    Result<void> wait(Timeout timeout = forever) {
        return detail::done(ropewalk_wait_set_wait(handle_.get(), detail::nanoseconds(timeout)));
    }
    /// Ends one wait, from any thread.
    void interrupt() {
        detail::InterruptHandle interrupt(ropewalk_wait_set_interrupt(handle_.get()));
        if (interrupt) ropewalk_interrupt_wake(interrupt.get());
    }
    /// For select, poll, epoll, with `ropewalk_wait_set_rearm`; -1 if the set was moved from.
    int fd() const {
        int fd = -1;
        ropewalk_wait_set_fd(handle_.get(), &fd);
        return fd;
    }
    const ropewalk_wait_set* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<ropewalk_wait_set, ropewalk_wait_set_free> handle_;
};

namespace detail {

/// Counts exceptions of functions, and writes them to standard error, at most every 10 s as in other languages.
class Failures {
public:
    void note(const char* what, const std::string& why) {
        using namespace std::chrono;
        auto count = ++count_;
        auto now = duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
        auto next = next_.load();
        if (now < next || !next_.compare_exchange_strong(next, now + 10'000)) return;
        std::fprintf(stderr, "ropewalk: %s: %s (%llu so far)\n", what, why.c_str(), static_cast<unsigned long long>(count));
    }
    std::uint64_t count() const { return count_; }

private:
    std::atomic<std::uint64_t> count_{0};
    std::atomic<long long> next_{std::numeric_limits<long long>::min()};
};

}  // namespace detail

/// How to run a callback.
struct CallbackOptions {
    /// Whether an exception of the function ends the callback. By default it is logged and counted, and the next
    /// message follows.
    bool end_on_error = false;
    CallbackOptions& with_end_on_error(bool end) { return end_on_error = end, *this; }
};

/// A thread that passes each message to a function. Destroying it stops the thread and waits for the function to
/// return; if the function itself destroys it, the thread ends when the function returns.
///
/// If the function throws, only its current message is lost: the exception is written to standard error (at most every
/// 10 s) and counted, and the next message follows.
class [[nodiscard]] Callback {
public:
    /// Runs `step` repeatedly until stopped, or until `step` fails.
    Callback(std::function<Result<void>()> step, ropewalk_interrupt* interrupt, CallbackOptions options = {})
        : state_(std::make_shared<State>()) {
        state_->interrupt.reset(interrupt);
        state_->options = options;
        // The thread keeps the state alive: a function that destroys its callback may outlive it.
        thread_ = std::thread([state = state_, step = std::move(step)] {
            run(*state, step);
            state->ended = true;
        });
    }
    Callback(Callback&&) = default;
    Callback& operator=(Callback&& other) {
        if (this != &other) {
            stop();
            state_ = std::move(other.state_);
            thread_ = std::move(other.thread_);
        }
        return *this;
    }
    ~Callback() { stop(); }

    /// Number of exceptions of the function.
    std::uint64_t errors() const { return state_ ? state_->failures.count() : 0; }

    /// Whether the function still receives messages: false once it is stopped, or an error has ended it.
    bool is_running() const { return state_ && !state_->ended; }

    /// Why it ended by itself: the function's exception, or why nothing could be taken; empty while it runs.
    std::string error() const {
        if (!state_) return {};
        std::lock_guard<std::mutex> lock(state_->mutex);
        return state_->error;
    }

    /// Stops the thread and waits for the function to return; called from the function itself, it ends after that.
    void stop() {
        if (!thread_.joinable()) return;
        state_->stop = true;
        ropewalk_interrupt_wake(state_->interrupt.get());
        if (thread_.get_id() == std::this_thread::get_id()) {
            thread_.detach();
        } else {
            thread_.join();
        }
    }

private:
    struct State {
        CallbackOptions options;
        std::atomic<bool> stop{false}, ended{false};
        detail::Failures failures;
        detail::InterruptHandle interrupt;
        mutable std::mutex mutex;
        std::string error;
    };

    static void run(State& state, const std::function<Result<void>()>& step) {
        while (!state.stop) {
            std::string thrown;
#if defined(__cpp_exceptions)
            try {
#endif
                auto done = step();
                if (!done && !done.error().empty()) return end(state, done.error().text());
#if defined(__cpp_exceptions)
            } catch (const std::exception& e) {
                thrown = std::string("it threw: ") + e.what();
            } catch (...) {
                thrown = "it threw something other than std::exception";
            }
#endif
            if (thrown.empty()) continue;
            state.failures.note("a callback failed", thrown);
            if (state.options.end_on_error) return end(state, std::move(thrown));
        }
    }

    static void end(State& state, std::string why) {
        std::fprintf(stderr, "ropewalk: a callback ends: %s\n", why.c_str());
        std::lock_guard<std::mutex> lock(state.mutex);
        state.error = std::move(why);
    }

    std::shared_ptr<State> state_;
    std::thread thread_;
};

}  // namespace ropewalk
