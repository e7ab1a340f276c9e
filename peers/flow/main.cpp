// Pound's flows (section VI-A) on roscpp: one node publishes all of them, and one node on another host subscribes to
// all of them and logs the arrival of each message, as the paper's ros-profiler does. README.md describes the
// protocol.
#include <ros/ros.h>
#include <std_msgs/UInt8MultiArray.h>

#include <functional>
#include <memory>
#include <mutex>

#include "ros.hpp"

namespace {

// Bytes on the wire before the data of a std_msgs/UInt8MultiArray without dimensions.
constexpr uint64_t HEADER = 12;
constexpr uint64_t STAMP_AND_SEQUENCE = 16;

struct Flow {
    std::string topic;
    uint64_t size = 0, period_us = 0, offset_us = 0, count = 0;
};

struct Arguments {
    std::string command, system, source = "periodic", input, output;
    std::vector<Flow> flows;
    uint32_t queue = 10;
    uint64_t samples = 0;
};

std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
        if (c == ',') parts.emplace_back();
        else parts.back() += c;
    }
    return parts;
}

Flow parse_flow(const std::string& text) {
    const std::vector<std::string> parts = split(text);
    if (parts.size() != 5) peer::fail(2, "--flow %s: give TOPIC,BYTES,PERIOD_US,OFFSET_US,COUNT", text.c_str());
    Flow flow;
    flow.topic = parts[0];
    if (flow.topic.size() < 2 || flow.topic.size() > 40 || flow.topic[0] != '/') peer::fail(2, "--flow %s: a topic is / and a name", text.c_str());
    for (const char c : flow.topic)
        if (!isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '/') peer::fail(2, "--flow %s: use letters, digits, _ and / only", text.c_str());
    flow.size = peer::parse_number("--flow's bytes", parts[1].c_str(), HEADER + STAMP_AND_SEQUENCE, 1u << 24);
    flow.period_us = peer::parse_number("--flow's period", parts[2].c_str(), 100, 60000000);
    flow.offset_us = peer::parse_number("--flow's offset", parts[3].c_str(), 0, 60000000);
    flow.count = peer::parse_number("--flow's count", parts[4].c_str(), 1, 1000000);
    return flow;
}

Arguments parse(int argc, char** argv) {
    static const std::vector<std::string> systems = {"tcpros", "nodelay", "udpros", "mixed"};
    Arguments a;
    a.command = argc > 1 ? argv[1] : "";
    if (!peer::contains({"version", "publish", "subscribe", "tick", "circuit", "controller"}, a.command))
        peer::fail(2, "first argument '%s': give one of version, publish, subscribe, tick, circuit, controller", a.command.c_str());
    const bool loop = peer::contains({"circuit", "controller"}, a.command);
    for (int i = 2; i < argc; i += 2) {
        const std::string option = argv[i];
        if (!peer::contains({"--system", "--source", "--flow", "--queue", "--input", "--output", "--samples"}, option)) peer::fail(2, "unknown option %s", option.c_str());
        if (i + 1 == argc) peer::fail(2, "%s needs a value", option.c_str());
        if (option == "--system") a.system = argv[i + 1];
        else if (option == "--source") a.source = argv[i + 1];
        else if (option == "--input") a.input = argv[i + 1];
        else if (option == "--output") a.output = argv[i + 1];
        else if (option == "--samples") a.samples = peer::parse_number(option, argv[i + 1], 1, 10000);
        else if (option == "--queue") a.queue = static_cast<uint32_t>(peer::parse_number(option, argv[i + 1], 1, 100000));
        else a.flows.push_back(parse_flow(argv[i + 1]));
    }
    if (!peer::contains(systems, a.system)) peer::fail(2, "--system '%s': this program serves %s", a.system.c_str(), peer::joined(systems).c_str());
    if (!peer::contains({"periodic", "roscpp"}, a.source)) peer::fail(2, "--source %s: give periodic or roscpp", a.source.c_str());
    if (loop && (a.input.empty() || a.output.empty())) peer::fail(2, "--input, --output: give the topics of the loop");
    if (a.command == "circuit" && a.samples == 0) peer::fail(2, "--samples: give the number of samples");
    if (a.command != "version" && !loop && (a.flows.empty() || a.flows.size() > 16)) peer::fail(2, "--flow: give 1 to 16 flows");
    return a;
}

// One flow's publisher, and its next message.
class Source {
public:
    Source(ros::NodeHandle& node, const Flow& flow, uint32_t queue)
        : flow_(flow), publisher_(node.advertise<std_msgs::UInt8MultiArray>(flow.topic, queue)) {
        message_.data.resize(flow.size - HEADER);
    }

    const Flow& flow() const { return flow_; }
    bool connected() const { return publisher_.getNumSubscribers() > 0; }
    uint64_t sent() const { return sent_; }

    // Fills the message, numbers it, stamps it, publishes it; returns false for the last one.
    bool send() {
        if (sent_ == flow_.count) return false;
        memset(message_.data.data(), static_cast<int>(sent_ & 0xff), message_.data.size());
        memcpy(message_.data.data() + 8, &sent_, 8);
        const uint64_t stamp = peer::now_ns();
        memcpy(message_.data.data(), &stamp, 8);
        publisher_.publish(message_);
        return ++sent_ < flow_.count;
    }

private:
    Flow flow_;
    ros::Publisher publisher_;
    std_msgs::UInt8MultiArray message_;
    uint64_t sent_ = 0;
};

using Sources = std::vector<std::unique_ptr<Source>>;

// One thread per flow, on an absolute schedule.
void send_periodic(Sources& sources, const peer::Orchestrator& orchestrator) {
    const uint64_t start = peer::now_ns() + 200000000;
    std::vector<std::thread> threads;
    for (auto& source : sources)
        threads.emplace_back([&, source = source.get()] {
            const Flow& flow = source->flow();
            for (bool more = true; more && !orchestrator.stopped();) {
                const timespec due = peer::to_timespec(start + (flow.offset_us + source->sent() * flow.period_us) * 1000);
                while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
                more = source->send();
            }
        });
    for (auto& thread : threads) thread.join();
}

// roscpp's timers on one spinning thread, as in a user's node. `send(i)` is called for flow i, and returns false for
// its last message.
template <typename Send>
void send_by_timers(ros::NodeHandle& node, const std::vector<Flow>& flows, const peer::Orchestrator& orchestrator, Send send) {
    std::vector<ros::Timer> timers;
    std::atomic<size_t> over{0};
    ros::AsyncSpinner spinner(1);
    spinner.start();
    for (size_t i = 0; i < flows.size(); ++i) {
        peer::sleep_us(flows[i].offset_us);
        timers.push_back(node.createTimer(ros::Duration(static_cast<double>(flows[i].period_us) / 1e6),
                                          [&, i, done = false](const ros::TimerEvent&) mutable {
                                              if (done || send(i)) return;
                                              done = true;
                                              ++over;
                                          }));
    }
    while (over.load() < flows.size() && orchestrator.pause_ms(10)) {}
    for (auto& timer : timers) timer.stop();
    spinner.stop();
}

// Publishes nothing: notifies the parent process when each message is due, for systems other than
// ROS.
void tick(const Arguments& a, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    peer::ready_and_go(orchestrator);
    if (orchestrator.stopped()) return;
    std::vector<uint64_t> sent(a.flows.size(), 0);
    send_by_timers(node, a.flows, orchestrator, [&](size_t i) {
        const uint64_t record[2] = {i, peer::now_ns()};
        // A pipe accepts 16 bytes at once or not at all.
        if (write(STDOUT_FILENO, record, sizeof record) != static_cast<ssize_t>(sizeof record)) peer::fail(1, "flow: the ticks have no reader");
        return ++sent[i] < a.flows[i].count;
    });
    orchestrator.wait_stop();
}

void publish(const Arguments& a, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    Sources sources;
    for (const Flow& flow : a.flows) sources.emplace_back(new Source(node, flow, a.queue));
    for (const auto& source : sources)
        while (!source->connected() && orchestrator.pause_ms(5)) {}
    peer::ready_and_go(orchestrator);
    if (!orchestrator.stopped()) {
        if (a.source == "roscpp") send_by_timers(node, a.flows, orchestrator, [&](size_t i) { return sources[i]->send(); });
        else send_periodic(sources, orchestrator);
    }
    std::string sent;
    for (const auto& source : sources)
        sent += (sent.empty() ? "" : ", ") + std::string("{\"topic\": \"") + source->flow().topic + "\", \"sent\": " + std::to_string(source->sent()) + "}";
    peer::say("{\"published\": [" + sent + "]}");
    orchestrator.wait_stop();
}

// `small`: whether the paper's UDP/NOD carries it by UDPROS.
ros::TransportHints hints(const Arguments& a, bool small) {
    if (a.system == "udpros" || (a.system == "mixed" && small)) return ros::TransportHints().udp();
    if (a.system == "tcpros") return ros::TransportHints();
    return ros::TransportHints().tcpNoDelay();
}

// Arrival times of a flow's messages, in memory reserved beforehand.
struct Log {
    std::vector<uint64_t> sequence, stamp, arrival;
};

void subscribe(const Arguments& a, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    std::vector<std::unique_ptr<Log>> logs;
    std::vector<ros::Subscriber> subscribers;
    for (const Flow& flow : a.flows) {
        logs.emplace_back(new Log);
        Log* log = logs.back().get();
        for (auto* list : {&log->sequence, &log->stamp, &log->arrival}) *list = peer::reserved(flow.count);
        const boost::function<void(const std_msgs::UInt8MultiArrayConstPtr&)> callback = [log, flow](const std_msgs::UInt8MultiArrayConstPtr& message) {
            const uint64_t now = peer::now_ns();
            if (message->data.size() != flow.size - HEADER || log->arrival.size() == flow.count) peer::fail(1, "flow: a message on %s that is not of this run", flow.topic.c_str());
            uint64_t stamp, sequence;
            memcpy(&stamp, message->data.data(), 8);
            memcpy(&sequence, message->data.data() + 8, 8);
            log->sequence.push_back(sequence);
            log->stamp.push_back(stamp);
            log->arrival.push_back(now);
        };
        // The first flow is the small one.
        const bool small = flow.topic == a.flows.front().topic;
        subscribers.push_back(node.subscribe<std_msgs::UInt8MultiArray>(flow.topic, a.queue, callback, ros::VoidConstPtr(), hints(a, small)));
    }
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    std::string all;
    for (size_t i = 0; i < logs.size(); ++i)
        all += (i ? ", " : "") + std::string("{\"topic\": \"") + a.flows[i].topic + "\", \"sequence\": " + peer::numbers(logs[i]->sequence) +
               ", \"stamp_ns\": " + peer::numbers(logs[i]->stamp) + ", \"arrival_ns\": " + peer::numbers(logs[i]->arrival) + "}";
    peer::say("{\"received\": [" + all + "]}");
}

// Pound's RLC loop (section VI-G): the same circuit, controller and times as in crates/bench/src/link/part/plant.rs;
// the measurement compares the two.
constexpr double CAPACITY = 0.1, INDUCTANCE = 0.1, RESISTANCE = 1, STEP = 1, GAIN = 1;
constexpr uint64_t PERIOD_NS = 20000000;
constexpr int FINE = 200;

struct Circuit {
    double current = 0, voltage = 0;

    // Advances by a period, by the fourth-order Runge-Kutta method.
    void pass(double input) {
        const double h = static_cast<double>(PERIOD_NS) / 1e9 / FINE;
        const auto di = [&](double i, double v) { return (input - RESISTANCE * i - v) / INDUCTANCE; };
        const auto dv = [](double i) { return i / CAPACITY; };
        for (int step = 0; step < FINE; ++step) {
            const double i = current, v = voltage;
            const double ia = di(i, v), va = dv(i);
            const double ib = di(i + h / 2 * ia, v + h / 2 * va), vb = dv(i + h / 2 * ia);
            const double ic = di(i + h / 2 * ib, v + h / 2 * vb), vc = dv(i + h / 2 * ib);
            const double id = di(i + h * ic, v + h * vc), vd = dv(i + h * ic);
            current += h / 6 * (ia + 2 * ib + 2 * ic + id);
            voltage += h / 6 * (va + 2 * vb + 2 * vc + vd);
        }
    }
};

// One end of the loop: its last received value, and its publisher.
class End {
public:
    using Heard = std::function<void(uint64_t, double)>;

    End(const Arguments& a, Heard heard)
        : heard_(std::move(heard)), publisher_(node_.advertise<std_msgs::UInt8MultiArray>(a.output, a.queue)) {
        const boost::function<void(const std_msgs::UInt8MultiArrayConstPtr&)> callback = [this](const std_msgs::UInt8MultiArrayConstPtr& message) {
            if (message->data.size() != BYTES) peer::fail(1, "flow: a message that is not of the loop");
            uint64_t number;
            double value;
            memcpy(&number, message->data.data() + 8, 8);
            memcpy(&value, message->data.data() + STAMP_AND_SEQUENCE, 8);
            heard_(number, value);
        };
        subscriber_ = node_.subscribe<std_msgs::UInt8MultiArray>(a.input, a.queue, callback, ros::VoidConstPtr(), hints(a, true));
    }

    bool connected() const { return publisher_.getNumSubscribers() > 0 && subscriber_.getNumPublishers() > 0; }

    void say(uint64_t number, double value) {
        std_msgs::UInt8MultiArray message;
        message.data.resize(BYTES);
        const uint64_t stamp = peer::now_ns();
        memcpy(message.data.data(), &stamp, 8);
        memcpy(message.data.data() + 8, &number, 8);
        memcpy(message.data.data() + STAMP_AND_SEQUENCE, &value, 8);
        publisher_.publish(message);
    }

private:
    static constexpr size_t BYTES = STAMP_AND_SEQUENCE + 8;
    ros::NodeHandle node_;
    Heard heard_;
    ros::Publisher publisher_;
    ros::Subscriber subscriber_;
};

// Samples the circuit every period, publishes the sample, and drives the circuit with the newest
// received value.
void circuit(const Arguments& a, const peer::Orchestrator& orchestrator) {
    std::mutex mutex;
    double drive = 0;
    uint64_t next = 0;
    End end(a, [&](uint64_t number, double value) {
        const std::lock_guard<std::mutex> lock(mutex);
        if (number < next) return;
        next = number + 1;
        drive = value;
    });
    ros::AsyncSpinner spinner(1);
    spinner.start();
    while (!end.connected() && orchestrator.pause_ms(5)) {}
    peer::ready_and_go(orchestrator);
    const uint64_t start = peer::now_ns() + 200000000;
    Circuit circuit;
    std::string voltages;
    for (uint64_t k = 0; k < a.samples && !orchestrator.stopped(); ++k) {
        const timespec due = peer::to_timespec(start + k * PERIOD_NS);
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {}
        double now;
        {
            const std::lock_guard<std::mutex> lock(mutex);
            now = drive;
        }
        char text[32];
        snprintf(text, sizeof text, "%s%.17g", k ? ", " : "", circuit.voltage);
        voltages += text;
        end.say(k, circuit.voltage);
        circuit.pass(now);
    }
    spinner.stop();
    peer::say("{\"values\": [" + voltages + "]}");
    orchestrator.wait_stop();
}

// Answers each sample at once.
void controller(const Arguments& a, const peer::Orchestrator& orchestrator) {
    std::unique_ptr<End> end;
    end.reset(new End(a, [&](uint64_t number, double voltage) { end->say(number, GAIN * (STEP - voltage)); }));
    while (!end->connected() && orchestrator.pause_ms(5)) ros::spinOnce();
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
}

}  // namespace

int main(int argc, char** argv) {
    const Arguments a = parse(argc, argv);
    if (a.command == "version") return peer::ros_version(a.system);
    peer::Orchestrator orchestrator;
    peer::start_ros(a.system, orchestrator, "ropewalk_flow_" + a.command);
    if (a.command == "publish") publish(a, orchestrator);
    else if (a.command == "tick") tick(a, orchestrator);
    else if (a.command == "circuit") circuit(a, orchestrator);
    else if (a.command == "controller") controller(a, orchestrator);
    else subscribe(a, orchestrator);
    ros::shutdown();
}
