// Waiting for many, and ending waits.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "message.hpp"

namespace ropewalk {

/// One doorbell for many subscribers and servers: make it by `Node::wait_set`, name it in their options.
class WaitSet {
public:
    explicit WaitSet(ropewalk_wait_set* handle) : handle_(handle) {}

    /// Blocks until something can be taken from a member; an error that is `empty()` after `timeout` or an interrupt.
    Result<void> wait(Timeout timeout = forever) {
        return detail::done(ropewalk_wait_set_wait(handle_.get(), detail::nanoseconds(timeout)));
    }
    /// Ends one wait, from any thread.
    void interrupt() {
        detail::InterruptHandle interrupt(ropewalk_wait_set_interrupt(handle_.get()));
        if (interrupt) ropewalk_interrupt_wake(interrupt.get());
    }
    /// For select, poll, epoll, with `ropewalk_wait_set_rearm`; -1 if the set was moved away.
    int fd() const {
        int fd = -1;
        ropewalk_wait_set_fd(handle_.get(), &fd);
        return fd;
    }
    const ropewalk_wait_set* handle() const noexcept { return handle_.get(); }

private:
    detail::Handle<ropewalk_wait_set, ropewalk_wait_set_free> handle_;
};

/// A thread that hands each message to a function. Destroying it stops it and waits for the function to return.
class [[nodiscard]] Callback {
public:
    /// Runs `step` again and again until it is stopped, or `step` fails or throws.
    Callback(std::function<Result<void>()> step, ropewalk_interrupt* interrupt) : state_(std::make_unique<State>()) {
        state_->interrupt.reset(interrupt);
        state_->thread = std::thread([state = state_.get(), step = std::move(step)] { run(*state, step); });
    }
    Callback(Callback&&) = default;
    Callback& operator=(Callback&& other) {
        stop();
        state_ = std::move(other.state_);
        return *this;
    }
    ~Callback() { stop(); }

    /// Why it ended by itself: what the function threw, or why nothing could be taken; empty while it runs.
    std::string error() const {
        if (!state_) return {};
        std::lock_guard<std::mutex> lock(state_->mutex);
        return state_->error;
    }

    /// Stops it and waits for the function to return. Not from the function itself.
    void stop() {
        if (!state_ || !state_->thread.joinable()) return;
        state_->stop = true;
        ropewalk_interrupt_wake(state_->interrupt.get());
        state_->thread.join();
    }

private:
    struct State {
        std::atomic<bool> stop{false};
        detail::InterruptHandle interrupt;
        mutable std::mutex mutex;
        std::string error;
        std::thread thread;
    };

    static void run(State& state, const std::function<Result<void>()>& step) {
        auto end = [&state](std::string text) {
            std::fprintf(stderr, "ropewalk: a callback ends: %s\n", text.c_str());
            std::lock_guard<std::mutex> lock(state.mutex);
            state.error = std::move(text);
        };
        while (!state.stop) {
#if defined(__cpp_exceptions)
            try {
#endif
                auto done = step();
                if (!done && !done.error().empty()) return end(done.error().text());
#if defined(__cpp_exceptions)
            } catch (const std::exception& e) {
                return end(std::string("it threw: ") + e.what());
            } catch (...) {
                return end("it threw something that is no std::exception");
            }
#endif
        }
    }

    std::unique_ptr<State> state_;
};

}  // namespace ropewalk
