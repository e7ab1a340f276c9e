// Calling and serving services.
#pragma once

#include "node.hpp"

namespace ropewalk {

namespace detail {

/// Like `MakeType`, for a service.
template <class S, class = void>
struct MakeServiceType {
    static ropewalk_status make(ropewalk_service_type** out) {
        return ropewalk_service_type_from_definition(Type<S>::name, Type<S>::definition(), Type<S>::flavour, Type<S>::md5, out);
    }
};

template <class S>
Result<ServiceTypeHandle> service_type() {
    ropewalk_service_type* out = nullptr;
    auto status = MakeServiceType<S>::make(&out);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return ServiceTypeHandle(out);
}

}  // namespace detail

/// A request that was sent. Destroying it cancels the wait; the server may still execute it.
template <class S>
class [[nodiscard]] Pending {
public:
    explicit Pending(ropewalk_pending* handle) : handle_(handle) {}

    /// Blocks until the reply arrives, the time of the call is over, or the server is gone. Call it once.
    Result<Message<typename S::Response>> wait() {
        ropewalk_message* reply = nullptr;
        return reply_of(ropewalk_pending_wait(handle_.get(), &reply), reply);
    }
    /// Like `wait`, but returns an error that is `empty()` while the result is not known.
    Result<Message<typename S::Response>> poll() {
        ropewalk_message* reply = nullptr;
        return reply_of(ropewalk_pending_poll(handle_.get(), &reply), reply);
    }

private:
    static Result<Message<typename S::Response>> reply_of(ropewalk_status status, ropewalk_message*& reply) {
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Message<typename S::Response>::from(reply);
    }

    detail::Handle<ropewalk_pending, ropewalk_pending_free> handle_;
};

/// The calling end of a service. Any thread may use it.
template <class S>
class Client {
public:
    using Request = typename S::Request;
    using Response = typename S::Response;

    explicit Client(ropewalk_client* handle) : handle_(handle) {}

    /// Calls, and blocks until the reply arrives, at most `timeout`.
    Result<Message<Response>> call(const Request& request, Timeout timeout) {
        auto pending = send(request, timeout);
        if (!pending) return pending.error();
        return pending->wait();
    }
    /// As above, with a request that was filled in place.
    Result<Message<Response>> call(Loan<Request>& request, Timeout timeout) {
        auto pending = send(request, timeout);
        if (!pending) return pending.error();
        return pending->wait();
    }

    /// Sends a request whose reply is awaited later, at most `timeout` from now. Never blocks.
    Result<Pending<S>> send(const Request& request, Timeout timeout) {
        auto loan = detail::copied(request, handle(), ropewalk_client_loan);
        if (!loan) return loan.error();
        return send(loan->release(), timeout);
    }
    Result<Pending<S>> send(Loan<Request>& request, Timeout timeout) {
        return request.finish([this, timeout](ropewalk_loan* loan) { return send(loan, timeout); });
    }

    /// Reserves a block for a request, to be filled in place.
    Result<void> allocate(Loan<Request>& request) { return request.allocate(handle(), ropewalk_client_loan); }

    /// Blocks until a server is connected. Returns an error that is `empty()` after `timeout`.
    Result<void> wait_for_server(Timeout timeout = forever) {
        return detail::done(ropewalk_client_wait_for_server(handle(), detail::nanoseconds(timeout)));
    }
    const ropewalk_client* handle() const noexcept { return handle_.get(); }

private:
    Result<Pending<S>> send(ropewalk_loan* request, Timeout timeout) {
        ropewalk_pending* out = nullptr;
        auto status = ropewalk_client_send(handle(), request, detail::nanoseconds(timeout), &out);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Pending<S>(out);
    }

    detail::Handle<ropewalk_client, ropewalk_client_free> handle_;
};

/// The serving end of a service. Any thread may use it.
template <class S>
class Server {
public:
    using Request = typename S::Request;
    using Response = typename S::Response;

    explicit Server(ropewalk_server* handle) : handle_(handle) {}

    /// Takes the oldest waiting request, waiting for one at most `timeout`. Returns an error that is `empty()` if none
    /// arrived. Destroying a request unanswered rejects it; so does the server if it cannot read the request.
    Result<Message<Request>> take(Timeout timeout = Timeout::zero()) {
        ropewalk_message* request = nullptr;
        auto status = ropewalk_server_take(handle(), detail::nanoseconds(timeout), &request);
        if (status != ROPEWALK_STATUS_OK) return Error::last(status);
        return Message<Request>::from(request);
    }

    /// Answers a request. If the reply is not well-formed, or there is no memory for it, the client gets an error.
    Result<void> respond(Message<Request> request, const Response& answer) {
        auto loan = detail::copied(answer, handle(), ropewalk_server_loan);
        if (!loan) return give_up(std::move(request), loan.error());
        return detail::done(ropewalk_server_respond(handle(), request.release(), loan->release()));
    }
    /// As above, with a reply that was filled in place.
    Result<void> respond(Message<Request> request, Loan<Response>& answer) {
        bool sent = false;
        auto done = answer.finish([&](ropewalk_loan* loan) {
            sent = true;
            return detail::done(ropewalk_server_respond(handle(), request.release(), loan));
        });
        return sent ? done : give_up(std::move(request), done.error());
    }
    /// Answers a request with an error, whose text the client gets.
    Result<void> reject(Message<Request> request, const std::string& text) {
        return detail::done(ropewalk_server_reject(handle(), request.release(), text.c_str()));
    }

    /// Reserves a block for a reply, to be filled in place.
    Result<void> allocate(Loan<Response>& answer) { return answer.allocate(handle(), ropewalk_server_loan); }

    /// Answers each request with the result of `f`, on its own thread. The client gets an error of `f`, and also its
    /// exception, which is logged and counted. Takes ownership of the server.
    Callback callback(std::function<Result<Response>(const Request&)> f, CallbackOptions options = {}) && {
        auto* interrupt = ropewalk_server_interrupt(handle());
        auto self = std::make_shared<Server>(std::move(*this));
        auto step = [self, f = std::move(f)]() -> Result<void> {
            auto request = self->take(forever);
            if (!request) return request.status() == ROPEWALK_STATUS_CONTENT ? Result<void>() : Result<void>(request.error());
            // A client that is gone does not end the server.
            (void)self->answer(std::move(*request), f);
            return {};
        };
        return Callback(std::move(step), interrupt, options);
    }

    /// Ends one wait, from any thread.
    void interrupt() {
        detail::InterruptHandle interrupt(ropewalk_server_interrupt(handle()));
        if (interrupt) ropewalk_interrupt_wake(interrupt.get());
    }
    const ropewalk_server* handle() const noexcept { return handle_.get(); }

private:
    Result<void> answer(Message<Request> request, const std::function<Result<Response>(const Request&)>& f) {
#if defined(__cpp_exceptions)
        try {
#endif
            auto answer = f(*request);
            if (!answer) return reject(std::move(request), answer.error().text());
            return respond(std::move(request), *answer);
#if defined(__cpp_exceptions)
        } catch (const std::exception& e) {
            if (request) (void)reject(std::move(request), std::string("the server threw: ") + e.what());
            throw;
        } catch (...) {
            if (request) (void)reject(std::move(request), "the server threw something other than std::exception");
            throw;
        }
#endif
    }

    Result<void> give_up(Message<Request> request, const Error& error) {
        (void)reject(std::move(request), "the server has no answer: " + error.text());
        return error;
    }

    detail::Handle<ropewalk_server, ropewalk_server_free> handle_;
};

template <class S>
Result<Client<S>> Node::client(const std::string& service) {
    auto type = detail::service_type<S>();
    if (!type) return type.error();
    ropewalk_client* out = nullptr;
    auto status = ropewalk_node_client(handle(), service.c_str(), type->get(), &out);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return Client<S>(out);
}

template <class S>
Result<Server<S>> Node::server(const std::string& service, const WaitSet* wait_set) {
    auto type = detail::service_type<S>();
    if (!type) return type.error();
    ropewalk_server* out = nullptr;
    auto status = ropewalk_node_server(handle(), service.c_str(), type->get(), wait_set ? wait_set->handle() : nullptr, &out);
    if (status != ROPEWALK_STATUS_OK) return Error::last(status);
    return Server<S>(out);
}

}  // namespace ropewalk
