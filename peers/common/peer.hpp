// Code shared by the C++ peers of `ropewalk bench ipc`: arguments, the protocol on the standard streams,
// the schedule, the logs and the result lines of ../CONTRACT.md. It does not depend on any middleware.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace peer {

// Ends the process with one line on stderr; code 1: the job failed, 2: a bad argument.
[[noreturn]] __attribute__((format(printf, 2, 3))) inline void fail(int code, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s\n", text);
    fflush(stderr);
    _exit(code);  // no destructors: other threads may be inside the middleware
}

[[noreturn]] inline void fail_errno(const char* what) { fail(1, "%s: %s", what, strerror(errno)); }

struct Options {
    std::string command, system, topic;
    uint64_t size = 0, subscribers = 1, index = 0, warmup = 0, messages = 0, limit = 0, work_us = 0;
    double rate = 0;
    int fifo = 0;        // 0: the ordinary scheduler
    uint64_t depth = 0;  // 0: the system's own queues
    bool spin = false;

    uint64_t total() const { return warmup + messages; }
};

// The systems of a program, and its commands in addition to `version`.
struct Program {
    std::vector<std::string> systems, commands;
};

inline uint64_t parse_number(const std::string& option, const char* text, uint64_t low, uint64_t high) {
    char* end = nullptr;
    errno = 0;
    const unsigned long long value = isdigit(static_cast<unsigned char>(*text)) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno || value < low || value > high)
        fail(2, "%s %s: give a whole number from %llu to %llu", option.c_str(), text,
             static_cast<unsigned long long>(low), static_cast<unsigned long long>(high));
    return value;
}

inline bool contains(const std::vector<std::string>& list, const std::string& item) {
    for (const auto& entry : list)
        if (entry == item) return true;
    return false;
}

inline std::string joined(const std::vector<std::string>& list) {
    std::string text;
    for (const auto& entry : list) text += (text.empty() ? "" : ", ") + entry;
    return text;
}

inline Options parse(int argc, char** argv, const Program& program) {
    std::vector<std::string> commands = {"version"};
    commands.insert(commands.end(), program.commands.begin(), program.commands.end());
    Options o;
    o.command = argc > 1 ? argv[1] : "";
    if (!contains(commands, o.command))
        fail(2, "first argument '%s': give one of %s", o.command.c_str(), joined(commands).c_str());
    for (int i = 2; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "--spin") {
            o.spin = true;
            continue;
        }
        static const std::vector<std::string> known = {"--system", "--topic",    "--size", "--subscribers", "--index", "--warmup",
                                                       "--messages", "--rate", "--fifo", "--limit", "--work-us", "--depth"};
        if (!contains(known, option)) fail(2, "unknown option %s", option.c_str());
        if (i + 1 == argc) fail(2, "%s needs a value", option.c_str());
        const char* value = argv[++i];
        const uint64_t many = 100000000, huge = uint64_t{1} << 40;
        if (option == "--system") o.system = value;
        else if (option == "--topic") o.topic = value;
        else if (option == "--size") o.size = parse_number(option, value, 16, uint64_t{1} << 30);
        else if (option == "--subscribers") o.subscribers = parse_number(option, value, 1, 64);
        else if (option == "--index") o.index = parse_number(option, value, 0, 63);
        else if (option == "--warmup") o.warmup = parse_number(option, value, 0, many);
        else if (option == "--messages") o.messages = parse_number(option, value, 1, many);
        else if (option == "--fifo") o.fifo = static_cast<int>(parse_number(option, value, 1, 99));
        else if (option == "--limit") o.limit = parse_number(option, value, 1, huge);
        else if (option == "--work-us") o.work_us = parse_number(option, value, 0, 60000000);
        else if (option == "--depth") o.depth = parse_number(option, value, 1, 256);
        else {
            char* end = nullptr;
            o.rate = strtod(value, &end);
            if (end == value || *end || !(o.rate >= 0 && o.rate <= 1e6)) fail(2, "--rate %s: give 0 to 1000000 Hz", value);
        }
    }
    if (!contains(program.systems, o.system))
        fail(2, "--system '%s': this program serves %s", o.system.c_str(), joined(program.systems).c_str());
    if (o.command == "version") return o;
    if (!o.size) fail(2, "--size is missing: give the payload's bytes");
    if (!o.messages) fail(2, "--messages is missing: give the number of measured messages");
    if (o.total() > 100000000) fail(2, "--warmup and --messages: give at most 100000000 together");
    if (o.topic.empty() || o.topic.size() > 40) fail(2, "--topic: give a name of 1 to 40 characters");
    for (char c : o.topic)
        if (!isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '/')
            fail(2, "--topic %s: use letters, digits, _ and / only", o.topic.c_str());
    if ((o.command == "subscribe" || o.command == "call") && o.index >= o.subscribers) fail(2, "--index must be below --subscribers");
    return o;
}

// A path of this cell in the folder that all its processes share.
inline std::string runtime_path(const Options& o, const std::string& suffix) {
    const char* folder = getenv("ROPEWALK_RUNTIME_DIR");
    if (!folder || !*folder) folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    std::string topic = o.topic;
    for (char& c : topic)
        if (c == '/') c = '_';
    const std::string path = std::string(folder) + "/" + o.system + "-" + topic + suffix;
    if (path.size() > 107) fail(1, "%s is too long for a socket: set TMPDIR to a shorter folder", path.c_str());
    return path;
}

inline uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

inline timespec to_timespec(uint64_t ns) {
    return {static_cast<time_t>(ns / 1000000000u), static_cast<long>(ns % 1000000000u)};
}

inline void sleep_us(uint64_t us) {
    timespec t = to_timespec(us * 1000);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {}
}

// Prints one whole line of the protocol.
inline void say(const std::string& line) {
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    fwrite((line + "\n").data(), 1, line.size() + 1, stdout);
    fflush(stdout);
}

// The orchestrator's commands. A thread blocks on stdin and on SIGTERM and SIGINT, which mean
// `stop`.
class Orchestrator {
public:
    // Create it before any other thread, so that all threads have the signals blocked.
    Orchestrator() {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGTERM);
        sigaddset(&set, SIGINT);
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
        signals_ = signalfd(-1, &set, SFD_CLOEXEC);
        go_ = eventfd(0, EFD_CLOEXEC);
        stop_ = eventfd(0, EFD_CLOEXEC);
        if (signals_ < 0 || go_ < 0 || stop_ < 0) fail_errno("eventfd");
        std::thread([this] { watch(); }).detach();
    }

    bool stopped() const { return stopped_.load(std::memory_order_acquire); }

    // For a wait set: stays readable after `stop`.
    int stop_fd() const { return stop_; }

    void wait_stop() const {
        pollfd p = {stop_, POLLIN, 0};
        while (poll(&p, 1, -1) != 1) {}
    }

    // Also returns on `stop`.
    void wait_go() const {
        pollfd p[2] = {{go_, POLLIN, 0}, {stop_, POLLIN, 0}};
        while (poll(p, 2, -1) < 1) {}
    }

    // Sleeps a little, for polling loops; returns false when stopped.
    bool pause_ms(int ms) const {
        pollfd p = {stop_, POLLIN, 0};
        return poll(&p, 1, ms) != 1;
    }

private:
    void watch() {
        std::string line;
        for (;;) {
            pollfd p[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
            if (poll(p, 2, -1) < 0) continue;
            char bytes[64];
            const ssize_t n = p[1].revents ? 0 : read(STDIN_FILENO, bytes, sizeof bytes);
            if (n <= 0) return stop();
            for (ssize_t i = 0; i < n; ++i) {
                if (bytes[i] != '\n') {
                    if (line.size() < 16) line += bytes[i];
                    continue;
                }
                if (line == "go") eventfd_write(go_, 1);
                if (line == "stop") return stop();
                line.clear();
            }
        }
    }

    void stop() {
        stopped_.store(true, std::memory_order_release);
        eventfd_write(stop_, 1);
    }

    int signals_ = -1, go_ = -1, stop_ = -1;
    std::atomic<bool> stopped_{false};
};

// For publishers and ping, after their subscribers have connected.
inline void ready_and_go(const Orchestrator& orchestrator) {
    if (!orchestrator.stopped()) say("ready");
    orchestrator.wait_go();
}

inline int version(const Options& o, const std::string& version, const std::vector<std::string>& modes) {
    std::string list;
    for (const auto& mode : modes) list += (list.empty() ? "\"" : ", \"") + mode + "\"";
    say("{\"system\": \"" + o.system + "\", \"version\": \"" + version + "\", \"modes\": [" + list + "]}");
    return 0;
}

// Gives SCHED_FIFO to this thread, and to threads that it creates later.
inline void enter_fifo(const Options& o) {
    if (!o.fifo) return;
    sched_param parameter = {};
    parameter.sched_priority = o.fifo;
    if (sched_setscheduler(0, SCHED_FIFO, &parameter))
        fail(1, "--fifo %d: %s; run as root or raise `ulimit -r`", o.fifo, strerror(errno));
}

// The paper's rule: the whole payload is written, then the sequence number, and last the stamp.
inline void fill(void* payload, const Options& o, uint64_t sequence) {
    memset(payload, static_cast<int>(sequence * 31 + 1) & 0xff, o.size);
    memcpy(static_cast<char*>(payload) + 8, &sequence, 8);
}

inline std::string numbers(const std::vector<uint64_t>& values) {
    std::string text = "[";
    text.reserve(values.size() * 8 + 2);
    for (size_t i = 0; i < values.size(); ++i) {
        if (i) text += ',';
        text += std::to_string(values[i]);
    }
    return text + "]";
}

// Memory that is reserved and touched before the measurement.
inline std::vector<uint64_t> reserved(uint64_t count) {
    std::vector<uint64_t> values(count, 1);
    values.clear();
    return values;
}

// Sleeps in short steps, so that `stop` takes effect in the middle of a long period.
inline void sleep_until(uint64_t due, const Orchestrator& orchestrator) {
    for (uint64_t now = now_ns(); now < due && !orchestrator.stopped(); now = now_ns()) {
        const timespec until = to_timespec(due - now > 500000000 ? now + 250000000 : due);
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
}

// Sends all messages on the schedule and prints the publisher's line. `loan()` returns the payload memory of
// the next message, or null if the system refuses; `publish()` sends it and returns whether it was accepted.
template <class Loan, class Publish>
void send_all(const Options& o, const Orchestrator& orchestrator, Loan loan, Publish publish) {
    std::vector<uint64_t> publish_ns = reserved(o.messages);
    uint64_t refused = 0;
    const double period = o.rate > 0 ? 1e9 / o.rate : 0;
    const uint64_t start = now_ns() + 200000000;
    for (uint64_t sequence = 0; sequence < o.total(); ++sequence) {
        const uint64_t due = start + static_cast<uint64_t>(period * static_cast<double>(sequence));
        sleep_until(due, orchestrator);
        if (orchestrator.stopped()) break;
        const bool measured = sequence >= o.warmup;
        void* payload = loan();
        if (!payload) {
            refused += measured;
            continue;
        }
        fill(payload, o, sequence);
        const uint64_t before = now_ns();
        memcpy(payload, &before, 8);
        const bool accepted = publish();
        const uint64_t took = now_ns() - before;
        if (!measured) continue;
        if (accepted) publish_ns.push_back(took);
        else ++refused;
    }
    say("{\"published\": " + std::to_string(publish_ns.size()) + ", \"refused\": " + std::to_string(refused) +
        ", \"publish_ns\": " + numbers(publish_ns) + "}");
}

// A subscriber's log. The callback calls `receive` first.
class Log {
public:
    explicit Log(const Options& o)
        : latency_(reserved(o.messages)), sequence_(reserved(o.messages)), warmup_(o.warmup), last_(o.total() - 1), work_us_(o.work_us) {}

    // Returns true for the last message.
    bool receive(const void* payload) {
        const uint64_t now = now_ns();
        uint64_t sent, sequence;
        memcpy(&sent, payload, 8);
        memcpy(&sequence, static_cast<const char*>(payload) + 8, 8);
        if (sequence >= warmup_) {
            if (sequence > last_ || sequence_.size() == sequence_.capacity())
                fail(1, "message %llu does not belong to this cell: give each cell its own --topic", static_cast<unsigned long long>(sequence));
            latency_.push_back(now - sent);
            sequence_.push_back(sequence);
        }
        if (work_us_) sleep_us(work_us_);
        if (sequence != last_) return false;
        done_.store(true, std::memory_order_release);
        return true;
    }

    bool done() const { return done_.load(std::memory_order_acquire); }

    // Only when no callback runs any more.
    void print() const {
        say("{\"received\": " + std::to_string(latency_.size()) + ", \"latency_ns\": " + numbers(latency_) +
            ", \"sequence\": " + numbers(sequence_) + "}");
    }

private:
    std::vector<uint64_t> latency_, sequence_;
    uint64_t warmup_, last_, work_us_;
    std::atomic<bool> done_{false};
};

// The loop of ping and of a client: `loan` as above; `exchange()` publishes and waits for the reply, and returns false
// when stopped. With --rate each round has its scheduled time.
template <class Loan, class Exchange>
void ping_all(const Options& o, const Orchestrator& orchestrator, Loan loan, Exchange exchange) {
    std::vector<uint64_t> round_trip = reserved(o.messages);
    const double period = o.rate > 0 ? 1e9 / o.rate : 0;
    const uint64_t start = now_ns() + 200000000;
    for (uint64_t sequence = 0; sequence < o.total() && !orchestrator.stopped(); ++sequence) {
        if (o.command == "call") sleep_until(start + static_cast<uint64_t>(period * static_cast<double>(sequence)), orchestrator);
        void* payload = loan();
        if (!payload) fail(1, "no memory for a ping: raise --limit");
        fill(payload, o, sequence);
        const uint64_t before = now_ns();
        memcpy(payload, &before, 8);
        if (!exchange()) break;
        const uint64_t took = now_ns() - before;
        if (sequence >= o.warmup) round_trip.push_back(took);
    }
    say("{\"round_trip_ns\": " + numbers(round_trip) + "}");
}

}  // namespace peer
