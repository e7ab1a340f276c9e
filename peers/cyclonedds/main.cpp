// Cyclone DDS with its shared memory (iceoryx); discovery over loopback UDP. Messages of the bench's sizes have
// types of fixed size, and are loaned and read in place; other sizes are sent as a sequence, which is copied.
#include <dds/dds.h>
#include <dds/ddsc/dds_loan_api.h>

#include "peer.hpp"
#include "payload.h"
#include "roudi.hpp"

namespace {

constexpr int kDepth = 16;

// Only loopback and no multicast, so that nothing leaves or enters this host.
constexpr const char* kConfiguration = R"(
<CycloneDDS><Domain>
  <General>
    <Interfaces><NetworkInterface address="127.0.0.1" multicast="false"/></Interfaces>
    <AllowMulticast>false</AllowMulticast>
  </General>
  <Discovery>
    <ParticipantIndex>auto</ParticipantIndex>
    <MaxAutoParticipantIndex>80</MaxAutoParticipantIndex>
    <Peers><Peer address="127.0.0.1"/></Peers>
    <SPDPInterval>100ms</SPDPInterval>
  </Discovery>
  <SharedMemory><Enable>true</Enable><LogLevel>off</LogLevel></SharedMemory>
  <Tracing><Verbosity>none</Verbosity></Tracing>
</Domain></CycloneDDS>)";

dds_entity_t need(dds_entity_t entity, const char* what) {
    if (entity < 0) peer::fail(1, "cyclonedds: %s: %s", what, dds_strretcode(-entity));
    return entity;
}

const dds_topic_descriptor_t* type_of(uint64_t size) {
    switch (size) {
        case 4096: return &ropewalk_P4096_desc;
        case 65536: return &ropewalk_P65536_desc;
        case 1048576: return &ropewalk_P1048576_desc;
        case 4194304: return &ropewalk_P4194304_desc;
        default: return &ropewalk_Variable_desc;
    }
}

struct Cell {
    dds_entity_t participant, topic;
    dds_qos_t* qos;

    explicit Cell(const peer::Options& o) {
        const dds_domainid_t domain = 42;
        need(dds_create_domain(domain, kConfiguration), "domain");
        participant = need(dds_create_participant(domain, nullptr, nullptr), "participant");
        std::string name = o.topic;
        for (char& c : name)
            if (c == '/') c = '_';
        topic = need(dds_create_topic(participant, type_of(o.size), name.c_str(), nullptr, nullptr), "topic");
        qos = dds_create_qos();
        dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
        dds_qset_history(qos, DDS_HISTORY_KEEP_LAST, o.depth ? static_cast<int>(o.depth) : kDepth);
        dds_qset_durability(qos, DDS_DURABILITY_VOLATILE);
    }
};

void publish(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    const Cell cell(o);
    const dds_entity_t writer = need(dds_create_writer(cell.participant, cell.topic, cell.qos, nullptr), "writer");
    if (!dds_is_shared_memory_available(writer)) peer::fail(1, "cyclonedds: the writer has no shared memory: is RouDi's memory used up?");
    for (;;) {
        dds_publication_matched_status_t status;
        need(dds_get_publication_matched_status(writer, &status), "matched status");
        if (status.current_count >= o.subscribers || !orchestrator.pause_ms(5)) break;
    }
    peer::ready_and_go(orchestrator);
    void* loaned = nullptr;
    if (dds_is_loan_available(writer)) {
        auto loan = [&]() -> void* { return dds_loan_sample(writer, &loaned) == DDS_RETCODE_OK ? loaned : nullptr; };
        peer::send_all(o, orchestrator, loan, [&] { return dds_write(writer, loaned) == DDS_RETCODE_OK; });
    } else {
        std::vector<uint8_t> bytes(o.size);
        ropewalk_Variable sample = {};
        sample.data._buffer = bytes.data();
        sample.data._length = sample.data._maximum = static_cast<uint32_t>(o.size);
        peer::send_all(o, orchestrator, [&] { return bytes.data(); }, [&] { return dds_write(writer, &sample) == DDS_RETCODE_OK; });
    }
    orchestrator.wait_stop();
    dds_delete(DDS_CYCLONEDDS_HANDLE);
}

struct Receiver {
    peer::Log log;
    uint64_t size;
    bool fixed;
};

// Called by the library's thread that the shared memory wakes.
void on_data(dds_entity_t reader, void* argument) {
    auto* self = static_cast<Receiver*>(argument);
    for (;;) {
        void* samples[1] = {nullptr};
        dds_sample_info_t info[1];
        const dds_return_t n = dds_take(reader, samples, info, 1, 1);
        if (n <= 0) return;
        if (info[0].valid_data) {
            const auto* variable = static_cast<const ropewalk_Variable*>(samples[0]);
            const void* payload = self->fixed ? samples[0] : variable->data._buffer;
            if (!self->fixed && variable->data._length != self->size) peer::fail(1, "cyclonedds: a message of another size: give each cell its own --topic");
            if (self->log.receive(payload)) peer::say("done");
        }
        dds_return_loan(reader, samples, n);
    }
}

void subscribe(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    const Cell cell(o);
    Receiver receiver = {peer::Log(o), o.size, type_of(o.size) != &ropewalk_Variable_desc};
    dds_listener_t* listener = dds_create_listener(&receiver);
    dds_lset_data_available(listener, on_data);
    const dds_entity_t reader = need(dds_create_reader(cell.participant, cell.topic, cell.qos, listener), "reader");
    if (!dds_is_shared_memory_available(reader)) peer::fail(1, "cyclonedds: the reader has no shared memory: is RouDi's memory used up?");
    peer::say("ready");
    orchestrator.wait_stop();
    dds_delete(DDS_CYCLONEDDS_HANDLE);  // waits for callbacks
    receiver.log.print();
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o = peer::parse(argc, argv, {{"cyclonedds"}, {"publish", "subscribe"}});
    if (o.command == "version") return peer::version(o, CYCLONEDDS_VERSION, {"block"});
    roudi::use(o);
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    if (o.command == "publish") publish(o, orchestrator);
    else subscribe(o, orchestrator);
}
