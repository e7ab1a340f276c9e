// Code shared by the C++ nodes of `ropewalk bench scale` (README.md). It does not depend on any
// middleware.
#pragma once

#include <algorithm>

#include "../common/peer.hpp"

namespace scale {

constexpr uint32_t PROBE = 0xffffffff;

struct Way {
    std::string input, output;
};

struct Options {
    std::string command, system, publish, log;
    std::vector<std::string> answers;
    std::vector<Way> ways;
    uint64_t bytes = 0, queue = 0, messages = 0, offset_us = 0, linger_ms = 0;
    double hz = 0;
};

inline std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == at) parts.emplace_back();
        else parts.back() += c;
    }
    return parts;
}

inline Options parse(int argc, char** argv, const std::vector<std::string>& systems) {
    Options o;
    o.command = argc > 1 ? argv[1] : "";
    if (!peer::contains({"version", "send", "echo"}, o.command)) peer::fail(2, "first argument '%s': give one of version, send, echo", o.command.c_str());
    for (int i = 2; i < argc; i += 2) {
        const std::string option = argv[i];
        if (i + 1 == argc) peer::fail(2, "%s needs a value", option.c_str());
        const char* value = argv[i + 1];
        if (option == "--system") o.system = value;
        else if (option == "--publish") o.publish = value;
        else if (option == "--log") o.log = value;
        else if (option == "--answers") o.answers = split(value, ',');
        else if (option == "--ways") {
            for (const std::string& way : split(value, ',')) {
                const std::vector<std::string> ends = split(way, ':');
                if (ends.size() != 2 || ends[0].empty() || ends[1].empty()) peer::fail(2, "--ways %s: give IN:OUT,...", value);
                o.ways.push_back({ends[0], ends[1]});
            }
        } else if (option == "--bytes") o.bytes = peer::parse_number(option, value, 1, 1u << 26);
        else if (option == "--queue") o.queue = peer::parse_number(option, value, 1, 4096);
        else if (option == "--messages") o.messages = peer::parse_number(option, value, 1, 100000000);
        else if (option == "--offset-us") o.offset_us = peer::parse_number(option, value, 0, 1000000000);
        else if (option == "--linger-ms") o.linger_ms = peer::parse_number(option, value, 0, 600000);
        else if (option == "--hz") {
            char* end = nullptr;
            o.hz = strtod(value, &end);
            if (end == value || *end || !(o.hz >= 0.01 && o.hz <= 1e6)) peer::fail(2, "--hz %s: give 0.01 to 1000000 Hz", value);
        } else peer::fail(2, "unknown option %s", option.c_str());
    }
    if (!peer::contains(systems, o.system)) peer::fail(2, "--system '%s': this program serves %s", o.system.c_str(), peer::joined(systems).c_str());
    if (o.command == "version") return o;
    if (!o.bytes || !o.queue) peer::fail(2, "--bytes and --queue: give both");
    if (o.command == "echo" && o.ways.empty()) peer::fail(2, "--ways is missing: give IN:OUT,...");
    if (o.command == "send" && (o.publish.empty() || o.answers.empty() || !o.messages || o.hz <= 0 || o.log.empty()))
        peer::fail(2, "--publish, --answers, --hz, --messages, --log: give all");
    return o;
}

inline int version(const Options& o, const std::string& version) {
    peer::say("{\"system\": \"" + o.system + "\", \"version\": \"" + version + "\"}");
    return 0;
}

// Arrival times of the answers. An echo's answers arrive on one thread at a time.
class Log {
public:
    explicit Log(const Options& o) : echoes_(o.answers.size()), at_(o.messages * echoes_, 0), heard_(echoes_) {}

    // The callback reads the clock first.
    void receive(uint64_t now, uint32_t number, size_t echo) {
        if (number == PROBE) {
            heard_[echo].store(true, std::memory_order_release);
            return;
        }
        if (closed_.load(std::memory_order_acquire)) return;
        const size_t id = static_cast<size_t>(number) * echoes_ + echo;
        if (id >= at_.size() || at_[id]) return;
        at_[id] = now;
        back_.fetch_add(1, std::memory_order_release);
    }

    bool reached() const {
        for (const auto& heard : heard_)
            if (!heard.load(std::memory_order_acquire)) return false;
        return true;
    }

    uint64_t back() const { return back_.load(std::memory_order_acquire); }
    bool all() const { return back() == at_.size(); }
    void close() { closed_.store(true, std::memory_order_release); }
    uint64_t at(size_t id) const { return at_[id]; }
    size_t echoes() const { return echoes_; }

private:
    size_t echoes_;
    std::vector<uint64_t> at_;
    std::vector<std::atomic<bool>> heard_;
    std::atomic<uint64_t> back_{0};
    std::atomic<bool> closed_{false};
};

inline void write_log(const Options& o, const Log& log, const std::vector<uint64_t>& sent) {
    FILE* file = fopen(o.log.c_str(), "w");
    if (!file) peer::fail(1, "%s: %s", o.log.c_str(), strerror(errno));
    fputs("id,sent_ns,recv_ns\n", file);
    for (size_t id = 0; id < sent.size() * log.echoes(); ++id) {
        const unsigned long long stamp = sent[id / log.echoes()], at = log.at(id);
        if (at) fprintf(file, "%zu,%llu,%llu\n", id, stamp, at);
        else fprintf(file, "%zu,%llu,\n", id, stamp);
    }
    const bool bad = ferror(file);
    if (fclose(file) || bad) peer::fail(1, "%s: %s", o.log.c_str(), strerror(errno));
}

// The sending node; `send(number)` publishes and returns whether it was accepted.
template <class Send>
void run_sender(const Options& o, const peer::Orchestrator& orchestrator, Log& log, Send send) {
    for (int pause = 20; !log.reached(); pause = std::min(2 * pause, 1000)) {
        send(PROBE);
        for (int waited = 0; waited < pause && !log.reached(); waited += 5)
            if (!orchestrator.pause_ms(5)) return;
    }
    peer::ready_and_go(orchestrator);
    std::vector<uint64_t> sent = peer::reserved(o.messages);
    uint64_t refused = 0;
    const uint64_t start = peer::now_ns() + 200000000 + o.offset_us * 1000;
    for (uint64_t i = 0; i < o.messages && !orchestrator.stopped(); ++i) {
        peer::sleep_until(start + static_cast<uint64_t>(static_cast<double>(i) * 1e9 / o.hz), orchestrator);
        sent.push_back(peer::now_ns());
        refused += !send(static_cast<uint32_t>(i));
    }
    const uint64_t patience = peer::now_ns() + o.linger_ms * 1000000;
    while (!log.all() && peer::now_ns() < patience && orchestrator.pause_ms(5)) {}
    log.close();
    peer::say("closed");
    orchestrator.wait_stop();
    write_log(o, log, sent);
    peer::say("{\"sent\": " + std::to_string(sent.size()) + ", \"returned\": " + std::to_string(log.back()) + ", \"refused\": " + std::to_string(refused) + "}");
}

}  // namespace scale
