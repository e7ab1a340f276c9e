// ZeroMQ over ipc:// (unix sockets). The publisher is an XPUB socket: a PUB socket that also reports
// subscriptions. Messages are passed without a copy by zmq_msg_init_data; a subscriber reads the payload in the
// message.
#include <zmq.h>

#include <memory>

#include "peer.hpp"

namespace {

// Queue depth of one subscriber.
constexpr int kDepth = 64;

[[noreturn]] void fail_zmq(const char* what) { peer::fail(1, "zeromq: %s: %s", what, zmq_strerror(zmq_errno())); }

// Payload buffers that the library returns, from its own thread, once all subscribers have them.
class Pool {
public:
    explicit Pool(uint64_t size) : size_(size) {}

    void* take() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!free_.empty()) {
            void* buffer = free_.back();
            free_.pop_back();
            return buffer;
        }
        owned_.emplace_back(new uint8_t[size_]());
        free_.reserve(owned_.size());
        return owned_.back().get();
    }

    static void give_back(void* buffer, void* pool) {
        auto* self = static_cast<Pool*>(pool);
        std::lock_guard<std::mutex> lock(self->mutex_);
        self->free_.push_back(buffer);
    }

private:
    const uint64_t size_;
    std::mutex mutex_;
    std::vector<void*> free_;
    std::vector<std::unique_ptr<uint8_t[]>> owned_;
};

std::string endpoint(const peer::Options& o) { return "ipc://" + peer::runtime_path(o, ".zmq"); }

void set(void* socket, int option, int value) {
    if (zmq_setsockopt(socket, option, &value, sizeof value)) fail_zmq("zmq_setsockopt");
}

// Counts subscription messages until all have arrived; also returns on `stop`.
void wait_subscribers(void* socket, const peer::Options& o, const peer::Orchestrator& orchestrator) {
    for (uint64_t connected = 0; connected < o.subscribers;) {
        char message[16];
        const int n = zmq_recv(socket, message, sizeof message, ZMQ_DONTWAIT);
        if (n >= 1) connected += message[0] == 1;
        else if (!orchestrator.pause_ms(5)) return;
    }
}

void publish(void* context, const peer::Options& o, const peer::Orchestrator& orchestrator) {
    Pool pool(o.size);
    void* socket = zmq_socket(context, ZMQ_XPUB);
    if (!socket) fail_zmq("zmq_socket");
    set(socket, ZMQ_SNDHWM, kDepth);
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_XPUB_VERBOSE, 1);  // reports each subscriber's subscription, not only the first
    // As fast as possible: publishing waits for room. At a fixed rate the socket drops, as a PUB socket does.
    set(socket, ZMQ_XPUB_NODROP, o.rate == 0);
    set(socket, ZMQ_SNDTIMEO, 100);
    if (zmq_bind(socket, endpoint(o).c_str())) fail_zmq(endpoint(o).c_str());
    wait_subscribers(socket, o, orchestrator);
    peer::ready_and_go(orchestrator);
    void* buffer = nullptr;
    peer::send_all(o, orchestrator, [&] { return buffer = pool.take(); }, [&] {
        zmq_msg_t message;
        if (zmq_msg_init_data(&message, buffer, o.size, Pool::give_back, &pool)) fail_zmq("zmq_msg_init_data");
        while (zmq_msg_send(&message, socket, 0) < 0) {
            if (zmq_errno() != EAGAIN && zmq_errno() != EINTR) fail_zmq("zmq_msg_send");
            if (!orchestrator.stopped()) continue;
            zmq_msg_close(&message);
            return false;
        }
        return true;
    });
    orchestrator.wait_stop();
    zmq_close(socket);
    zmq_ctx_term(context);                          // before the pool is destroyed
    unlink(peer::runtime_path(o, ".zmq").c_str());  // libzmq does not remove it
}

void subscribe(void* context, const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    void* socket = zmq_socket(context, ZMQ_SUB);
    if (!socket) fail_zmq("zmq_socket");
    set(socket, ZMQ_RCVHWM, o.depth ? static_cast<int>(o.depth) : kDepth);
    if (o.depth == 1) set(socket, ZMQ_CONFLATE, 1);  // the library's only queue that loses the oldest
    set(socket, ZMQ_LINGER, 0);
    set(socket, ZMQ_RECONNECT_IVL, 10);  // ms, for a publisher that starts later
    if (zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0)) fail_zmq("zmq_setsockopt");
    if (zmq_connect(socket, endpoint(o).c_str())) fail_zmq(endpoint(o).c_str());
    peer::say("ready");
    // The library ends a blocked receive with ETERM when its context is shut down.
    std::thread stopper([&] {
        orchestrator.wait_stop();
        zmq_ctx_shutdown(context);
    });
    zmq_msg_t message;
    zmq_msg_init(&message);
    for (;;) {
        if (zmq_msg_recv(&message, socket, 0) < 0) {
            if (zmq_errno() == EINTR) continue;
            if (zmq_errno() == ETERM) break;
            fail_zmq("zmq_msg_recv");
        }
        if (zmq_msg_size(&message) != o.size) peer::fail(1, "zeromq: a message of another size: give each cell its own --topic");
        if (log.receive(zmq_msg_data(&message))) peer::say("done");
    }
    zmq_msg_close(&message);
    stopper.join();
    log.print();
    zmq_close(socket);
    zmq_ctx_term(context);
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o = peer::parse(argc, argv, {{"zeromq"}, {"publish", "subscribe"}});
    if (o.command == "version") {
        int major, minor, patch;
        zmq_version(&major, &minor, &patch);
        return peer::version(o, std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch), {"block"});
    }
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    void* context = zmq_ctx_new();
    if (!context) fail_zmq("zmq_ctx_new");
    if (o.fifo) {
        // The library's own thread sends and receives.
        zmq_ctx_set(context, ZMQ_THREAD_SCHED_POLICY, SCHED_FIFO);
        zmq_ctx_set(context, ZMQ_THREAD_PRIORITY, o.fifo);
    }
    if (o.command == "publish") publish(context, o, orchestrator);
    else subscribe(context, o, orchestrator);
}
