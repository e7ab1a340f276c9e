// The floor: the cost of only the kernel and the caches. One shared memory, one ring of descriptor words, one
// eventfd per subscriber, payloads filled in place. No discovery, no handling of dead processes, no access
// rights: only what the message itself needs.
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>

#include "peer.hpp"

namespace {

constexpr uint64_t kSlots = 16, kRing = 1024, kSubscribers = 64;
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Two cache lines, because the neighbour is prefetched.
struct alignas(128) Line {
    std::atomic<uint64_t> value{0};
};

// The head of the shared memory; the payload slots follow it.
struct Shared {
    Line published;                     // messages published so far; the word of ping
    Line answered;                      // the word of pong
    Line consumed[kSubscribers];        // messages that each subscriber has finished
    Line reading[kSubscribers];         // with --depth: 1 + the message that each reads, 0 for none
    std::atomic<uint32_t> ring[kRing];  // message % kRing -> slot
};

struct Region {
    int fd = -1;
    Shared* shared = nullptr;
    uint8_t* slots = nullptr;
    uint64_t stride = 0;

    uint8_t* slot(uint64_t index) const { return slots + index * stride; }

    // Populated, so that no page fault adds to a latency.
    void map(uint64_t size, uint64_t count, bool owner) {
        stride = (size + 4095) / 4096 * 4096;
        const uint64_t head = (sizeof(Shared) + 4095) / 4096 * 4096;
        if (owner && ftruncate(fd, static_cast<off_t>(head + stride * count))) peer::fail_errno("shared memory");
        void* p = mmap(nullptr, head, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        void* q = mmap(nullptr, stride * count, owner ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_POPULATE, fd,
                       static_cast<off_t>(head));
        if (p == MAP_FAILED || q == MAP_FAILED) peer::fail_errno("mmap");
        shared = owner ? new (p) Shared : static_cast<Shared*>(p);
        slots = static_cast<uint8_t*>(q);
    }

    void create(uint64_t size, uint64_t count) {
        fd = memfd_create("floor", MFD_CLOEXEC);
        if (fd < 0) peer::fail_errno("memfd_create");
        map(size, count, true);
    }
};

sockaddr_un address(const std::string& path) {
    sockaddr_un a = {};
    a.sun_family = AF_UNIX;
    memcpy(a.sun_path, path.c_str(), path.size() + 1);
    return a;
}

// The greeting: the number of slots, with the descriptors of the memory, of the doorbell, and of the doorbell back
// (which only clients of a service use). The answer is one byte, `s` if the receiver spins and needs no doorbell.
struct Greeting {
    uint64_t slots = 0;
    iovec io = {&slots, sizeof slots};
    alignas(cmsghdr) char control[CMSG_SPACE(3 * sizeof(int))] = {};
    msghdr message = {};

    Greeting() {
        message.msg_iov = &io;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
};

// The receiving side listens, so that either side may start first. Returns false when stopped.
bool accept_region(const peer::Options& o, const peer::Orchestrator& orchestrator, const std::string& suffix, Region& region, int& bell,
                   int* back = nullptr) {
    const std::string path = peer::runtime_path(o, suffix);
    unlink(path.c_str());
    const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const sockaddr_un a = address(path);
    if (listener < 0 || bind(listener, reinterpret_cast<const sockaddr*>(&a), sizeof a) || listen(listener, 1))
        peer::fail_errno(path.c_str());
    if (!back) peer::say("ready");
    pollfd p[2] = {{listener, POLLIN, 0}, {orchestrator.stop_fd(), POLLIN, 0}};
    while (poll(p, 2, -1) < 1) {}
    const int connection = p[1].revents ? -1 : accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    unlink(path.c_str());
    close(listener);
    if (connection < 0) return false;

    Greeting greeting;
    const ssize_t n = recvmsg(connection, &greeting.message, MSG_CMSG_CLOEXEC);
    const cmsghdr* c = CMSG_FIRSTHDR(&greeting.message);
    if (n != sizeof greeting.slots || !c || c->cmsg_len != CMSG_LEN(3 * sizeof(int)))
        peer::fail(1, "%s: the publisher went away; start the cell again", path.c_str());
    int fds[3];
    memcpy(fds, CMSG_DATA(c), sizeof fds);
    region.fd = fds[0];
    bell = fds[1];
    if (back) *back = fds[2];
    else close(fds[2]);
    region.map(o.size, greeting.slots, false);
    const char answer = o.spin ? 's' : 'b';
    if (send(connection, &answer, 1, MSG_NOSIGNAL) != 1) peer::fail_errno(path.c_str());
    close(connection);
    return true;
}

// Passes the region to a receiver; `spins` is set if it needs no doorbell. Returns false when
// stopped.
bool offer_region(const peer::Options& o, const peer::Orchestrator& orchestrator, const std::string& suffix, const Region& region,
                  uint64_t slots, int bell, bool& spins, int back = -1) {
    const std::string path = peer::runtime_path(o, suffix);
    const sockaddr_un a = address(path);
    const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connection < 0) peer::fail_errno("socket");
    while (connect(connection, reinterpret_cast<const sockaddr*>(&a), sizeof a)) {
        if (errno != ENOENT && errno != ECONNREFUSED) peer::fail_errno(path.c_str());
        if (!orchestrator.pause_ms(5)) return false;
    }
    Greeting greeting;
    greeting.slots = slots;
    cmsghdr* c = CMSG_FIRSTHDR(&greeting.message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(3 * sizeof(int));
    const int fds[3] = {region.fd, bell, back < 0 ? bell : back};
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    char answer = 0;
    if (sendmsg(connection, &greeting.message, MSG_NOSIGNAL) != sizeof slots || recv(connection, &answer, 1, 0) != 1)
        peer::fail(1, "%s: the subscriber went away; start the cell again", path.c_str());
    close(connection);
    spins = answer == 's';
    return true;
}

int new_bell() {
    const int bell = eventfd(0, EFD_CLOEXEC);
    if (bell < 0) peer::fail_errno("eventfd");
    return bell;
}

std::string suffix(uint64_t index) { return "." + std::to_string(index); }

void publish(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    // With --depth: all waiting messages, one that each subscriber reads, and one that is filled.
    uint64_t slots = o.depth ? std::max(kSlots, o.depth + o.subscribers + 1) : kSlots;
    if (o.limit) slots = std::min(slots, o.limit / o.size);
    if (!slots) peer::fail(2, "--limit %llu holds no message of --size: raise it", static_cast<unsigned long long>(o.limit));
    Region region;
    region.create(o.size, slots);
    Shared& shared = *region.shared;
    std::vector<int> bells;
    for (uint64_t i = 0; i < o.subscribers; ++i) {
        const int bell = new_bell();
        bool spins = false;
        if (!offer_region(o, orchestrator, suffix(i), region, slots, bell, spins)) break;
        if (!spins) bells.push_back(bell);
    }
    peer::ready_and_go(orchestrator);

    // A slot is free when every subscriber has finished its last message; with --depth also when no queue holds
    // that message any more and no subscriber reads it. The lowest free slot is the warmest in the caches.
    std::vector<uint64_t> holds(slots, 0);
    uint64_t slot = 0, next = 0;
    auto dropped = [&](uint64_t message) {
        if (!o.depth || message + o.depth > next) return false;
        for (uint64_t i = 0; i < o.subscribers; ++i)
            if (shared.reading[i].value.load(std::memory_order_acquire) == message) return false;
        return true;
    };
    auto loan = [&]() -> void* {
        for (;;) {
            // After writing `published`: see claim().
            if (o.depth) std::atomic_thread_fence(std::memory_order_seq_cst);
            uint64_t done = UINT64_MAX;
            for (uint64_t i = 0; i < o.subscribers; ++i) done = std::min(done, shared.consumed[i].value.load(std::memory_order_acquire));
            for (slot = 0; slot < slots; ++slot)
                if (holds[slot] <= done || dropped(holds[slot])) return region.slot(slot);
            if (o.rate > 0 || orchestrator.stopped()) return nullptr;
            sched_yield();
        }
    };
    peer::send_all(o, orchestrator, loan, [&] {
        shared.ring[next % kRing].store(static_cast<uint32_t>(slot), std::memory_order_relaxed);
        holds[slot] = ++next;
        shared.published.value.store(next, std::memory_order_release);
        const uint64_t one = 1;
        for (int bell : bells)
            if (write(bell, &one, sizeof one) != sizeof one) peer::fail_errno("eventfd");
        return true;
    });
    orchestrator.wait_stop();
}

// Returns the slot of the oldest message that a queue of `depth` still holds, and moves `taken` there. The subscriber
// announces the message before it reads `published` again, and the publisher reads announcements after it has written
// `published`: so one of the two sees the other, and a slot that is being read is never filled.
uint32_t claim(Shared& shared, uint64_t index, uint64_t depth, uint64_t& taken) {
    for (;;) {
        const uint64_t published = shared.published.value.load(std::memory_order_acquire);
        if (published > depth) taken = std::max(taken, published - depth);
        shared.reading[index].value.store(taken + 1, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
        const uint32_t slot = shared.ring[taken % kRing].load(std::memory_order_acquire);
        if (shared.published.value.load(std::memory_order_acquire) <= taken + depth) return slot;
    }
}

void subscribe(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    Region region;
    int bell = -1;
    if (!accept_region(o, orchestrator, suffix(o.index), region, bell)) return log.print();
    Shared& shared = *region.shared;
    std::atomic<uint64_t>& consumed = shared.consumed[o.index].value;
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int fd : {bell, orchestrator.stop_fd()}) {
        epoll_event entry = {EPOLLIN, {}};
        entry.data.fd = fd;
        if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &entry)) peer::fail_errno("epoll");
    }

    uint64_t taken = 0;
    while (!orchestrator.stopped()) {
        if (!o.spin) {
            epoll_event event;
            uint64_t rings;
            if (epoll_wait(epoll, &event, 1, -1) != 1 || event.data.fd != bell) continue;
            if (read(bell, &rings, sizeof rings) != sizeof rings) continue;
        }
        const uint64_t published = shared.published.value.load(std::memory_order_acquire);
        while (taken < published) {
            const uint32_t slot = o.depth ? claim(shared, o.index, o.depth, taken) : shared.ring[taken % kRing].load(std::memory_order_relaxed);
            const bool last = log.receive(region.slot(slot));
            if (o.depth) shared.reading[o.index].value.store(0, std::memory_order_release);
            consumed.store(++taken, std::memory_order_release);
            if (last) peer::say("done");
        }
    }
    log.print();
}

void ping(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    Region region;
    region.create(o.size, 1);
    Shared& shared = *region.shared;
    bool spins = false;
    offer_region(o, orchestrator, ".pong", region, 1, new_bell(), spins);
    peer::ready_and_go(orchestrator);
    uint64_t next = 0;
    peer::ping_all(o, orchestrator, [&] { return region.slot(0); }, [&] {
        shared.published.value.store(++next, std::memory_order_release);
        while (shared.answered.value.load(std::memory_order_acquire) != next)
            if (orchestrator.stopped()) return false;
        return true;
    });
    orchestrator.wait_stop();
}

void pong(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    Region region;
    int unused = -1;
    if (!accept_region(o, orchestrator, ".pong", region, unused)) return;
    Shared& shared = *region.shared;
    for (uint64_t next = 1; next <= o.total(); ++next) {
        while (shared.published.value.load(std::memory_order_acquire) != next)
            if (orchestrator.stopped()) return;
        shared.answered.value.store(next, std::memory_order_release);
    }
    orchestrator.wait_stop();
}

// Returns true once `bell` has rung, false once stopped.
bool wait_bell(int bell, const peer::Orchestrator& orchestrator) {
    pollfd p[2] = {{bell, POLLIN, 0}, {orchestrator.stop_fd(), POLLIN, 0}};
    while (poll(p, 2, -1) < 1) {}
    uint64_t rings;
    return !p[1].revents && read(bell, &rings, sizeof rings) == sizeof rings;
}

void ring(int bell) {
    const uint64_t one = 1;
    if (write(bell, &one, sizeof one) != sizeof one) peer::fail_errno("eventfd");
}

// A service: as ping and pong, with doorbells.
void call(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    Region region;
    region.create(o.size, 1);
    Shared& shared = *region.shared;
    const int there = new_bell(), back = new_bell();
    bool spins = false;
    if (!offer_region(o, orchestrator, suffix(o.index), region, 1, there, spins, back)) return;
    peer::ready_and_go(orchestrator);
    uint64_t next = 0;
    peer::ping_all(o, orchestrator, [&] { return region.slot(0); }, [&] {
        shared.published.value.store(++next, std::memory_order_release);
        ring(there);
        while (shared.answered.value.load(std::memory_order_acquire) != next)
            if (!wait_bell(back, orchestrator)) return false;
        return true;
    });
    orchestrator.wait_stop();
}

void serve(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    struct Client {
        Region region;
        int there = -1, back = -1;
    };
    std::vector<Client> clients(o.subscribers);
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_event entry = {EPOLLIN, {}};
    entry.data.u64 = o.subscribers;
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, orchestrator.stop_fd(), &entry)) peer::fail_errno("epoll");
    peer::say("ready");
    for (uint64_t i = 0; i < o.subscribers; ++i) {
        Client& c = clients[i];
        if (!accept_region(o, orchestrator, suffix(i), c.region, c.there, &c.back)) return;
        entry.data.u64 = i;
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, c.there, &entry)) peer::fail_errno("epoll");
    }
    while (!orchestrator.stopped()) {
        epoll_event event;
        uint64_t rings;
        if (epoll_wait(epoll, &event, 1, -1) != 1 || event.data.u64 == o.subscribers) continue;
        const Client& c = clients[event.data.u64];
        if (read(c.there, &rings, sizeof rings) != sizeof rings) continue;
        Shared& shared = *c.region.shared;
        shared.answered.value.store(shared.published.value.load(std::memory_order_acquire), std::memory_order_release);
        ring(c.back);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o = peer::parse(argc, argv, {{"floor"}, {"publish", "subscribe", "ping", "pong", "call", "serve"}});
    if (o.command == "version") return peer::version(o, "1", {"block", "spin", "call"});
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    if (o.command == "publish") publish(o, orchestrator);
    if (o.command == "subscribe") subscribe(o, orchestrator);
    if (o.command == "ping") ping(o, orchestrator);
    if (o.command == "pong") pong(o, orchestrator);
    if (o.command == "call") call(o, orchestrator);
    if (o.command == "serve") serve(o, orchestrator);
}
