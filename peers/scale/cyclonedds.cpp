// The nodes of `ropewalk bench scale` on Cyclone DDS, over UDP; CYCLONEDDS_URI sets the interface and the peers.
#include <dds/dds.h>

#include <memory>
#include <thread>

#include "scale.h"
#include "scale.hpp"

namespace {

dds_entity_t need(dds_entity_t entity, const char* what) {
    if (entity < 0) peer::fail(1, "cyclonedds: %s: %s", what, dds_strretcode(-entity));
    return entity;
}

struct Node {
    dds_entity_t participant;
    dds_qos_t* qos;

    explicit Node(const scale::Options& o) : participant(need(dds_create_participant(DDS_DOMAIN_DEFAULT, nullptr, nullptr), "participant")), qos(dds_create_qos()) {
        dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
        dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, static_cast<int>(o.queue));
        dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
    }

    dds_entity_t topic(std::string name) const {
        for (char& c : name)
            if (c == '/') c = '_';
        return need(dds_create_topic(participant, &ropewalk_Scale_desc, name.c_str(), nullptr, nullptr), "topic");
    }

    dds_entity_t writer(const std::string& name) const { return need(dds_create_writer(participant, topic(name), qos, nullptr), "writer"); }

    dds_entity_t reader(const std::string& name, dds_on_data_available_fn callback = nullptr, void* argument = nullptr) const {
        dds_listener_t* listener = dds_create_listener(argument);
        if (callback) dds_lset_data_available(listener, callback);
        const dds_entity_t reader = need(dds_create_reader(participant, topic(name), qos, listener), "reader");
        dds_delete_listener(listener);
        return reader;
    }
};

template <class Receive>
void take_all(dds_entity_t reader, Receive receive) {
    for (;;) {
        void* samples[1] = {nullptr};
        dds_sample_info_t info[1];
        const dds_return_t n = dds_take(reader, samples, info, 1, 1);
        if (n <= 0) return;
        if (info[0].valid_data) receive(*static_cast<const ropewalk_Scale*>(samples[0]));
        dds_return_loan(reader, samples, n);
    }
}

struct Answer {
    scale::Log* log;
    size_t echo;
};

void on_answer(dds_entity_t reader, void* argument) {
    const auto* answer = static_cast<const Answer*>(argument);
    take_all(reader, [&](const ropewalk_Scale& message) { answer->log->receive(peer::now_ns(), message.number, answer->echo); });
}

void send(const scale::Options& o, const peer::Orchestrator& orchestrator) {
    scale::Log log(o);
    std::vector<Answer> answers;
    for (size_t i = 0; i < o.answers.size(); ++i) answers.push_back({&log, i});
    const Node node(o);
    const dds_entity_t writer = node.writer(o.publish);
    for (size_t i = 0; i < o.answers.size(); ++i) node.reader(o.answers[i], on_answer, &answers[i]);
    std::vector<uint8_t> bytes(o.bytes, 7);
    ropewalk_Scale message = {};
    message.data._buffer = bytes.data();
    message.data._length = message.data._maximum = static_cast<uint32_t>(bytes.size());
    scale::run_sender(o, orchestrator, log, [&](uint32_t number) {
        message.number = number;
        return dds_write(writer, &message) == DDS_RETCODE_OK;
    });
    dds_delete(DDS_CYCLONEDDS_HANDLE);
}

struct Echo {
    dds_entity_t reader, writer;
    std::atomic<uint64_t> echoed{0}, refused{0};
};

void on_message(Echo* echo) {
    take_all(echo->reader, [&](const ropewalk_Scale& message) { ++(dds_write(echo->writer, &message) == DDS_RETCODE_OK ? echo->echoed : echo->refused); });
}

// A thread that waits for messages and answers them, as nodes on ROS 2 do. It must not be a listener, which runs on the
// receiving thread: dds_write would wait there for acknowledgements that this very thread has to receive.
class Waits {
    const dds_entity_t set, over;
    std::vector<Echo*> echoes;
    std::thread thread;

    void run() {
        std::vector<dds_attach_t> woken(echoes.size() + 1);
        for (;;) {
            const dds_return_t n = need(dds_waitset_wait(set, woken.data(), woken.size(), DDS_INFINITY), "waitset");
            for (dds_return_t i = 0; i < n; ++i) {
                if (woken[i] == 0) return;
                on_message(reinterpret_cast<Echo*>(woken[i]));
            }
        }
    }

   public:
    Waits(const Node& node, const std::vector<std::unique_ptr<Echo>>& all)
        : set(need(dds_create_waitset(node.participant), "waitset")), over(need(dds_create_guardcondition(node.participant), "guard condition")) {
        need(dds_waitset_attach(set, over, 0), "waitset");
        for (const auto& echo : all) {
            const dds_entity_t condition = need(dds_create_readcondition(echo->reader, DDS_ANY_STATE), "read condition");
            need(dds_waitset_attach(set, condition, reinterpret_cast<dds_attach_t>(echo.get())), "waitset");
            echoes.push_back(echo.get());
        }
        thread = std::thread([this] { run(); });
    }

    ~Waits() {
        dds_set_guardcondition(over, true);
        thread.join();
    }
};

void echo(const scale::Options& o, const peer::Orchestrator& orchestrator) {
    std::vector<std::unique_ptr<Echo>> echoes;
    const Node node(o);
    for (const scale::Way& way : o.ways) {
        echoes.push_back(std::make_unique<Echo>());
        echoes.back()->writer = node.writer(way.output);
        echoes.back()->reader = node.reader(way.input);
    }
    {
        const Waits waits(node, echoes);
        peer::say("ready");
        orchestrator.wait_stop();
    }
    dds_delete(DDS_CYCLONEDDS_HANDLE);
    uint64_t echoed = 0, refused = 0;
    for (const auto& e : echoes) echoed += e->echoed, refused += e->refused;
    peer::say("{\"echoed\": " + std::to_string(echoed) + ", \"refused\": " + std::to_string(refused) + "}");
}

}  // namespace

int main(int argc, char** argv) {
    const scale::Options o = scale::parse(argc, argv, {"cyclonedds"});
    if (o.command == "version") return scale::version(o, CYCLONEDDS_VERSION);
    peer::Orchestrator orchestrator;
    if (o.command == "send") send(o, orchestrator);
    else echo(o, orchestrator);
}
