// Ropewalk from C++, as its users install it: loans filled in place, and a subscriber that sleeps in `take`.
#include <ropewalk/msg/sensor_msgs/Image.hpp>
#include <ropewalk/ropewalk.hpp>

#include "peer.hpp"

namespace {

using ropewalk::msg::sensor_msgs::Image;

template <class T>
T must(ropewalk::Result<T> result) {
    if (!result) peer::fail(1, "%s", result.error().text().c_str());
    return std::move(*result);
}

// Prepends the / with which Ropewalk's topics begin, unless the cell's topic already has it.
std::string topic(const peer::Options& o) { return o.topic[0] == '/' ? o.topic : "/" + o.topic; }

void publish(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    auto node = must(ropewalk::Node::create("bench"));
    auto options = ropewalk_publisher_options_default();
    if (o.limit) options.memory_limit = o.limit;
    auto publisher = must(node.publisher<Image>(topic(o), options));
    while (publisher.subscriber_count() < o.subscribers && orchestrator.pause_ms(5)) {}
    ropewalk::Loan<Image> image;
    image->encoding = "mono8";
    image->header.frame_id = "camera";
    image->height = 1;
    image->width = image->step = static_cast<uint32_t>(o.size);
    peer::ready_and_go(orchestrator);
    peer::send_all(
        o, orchestrator,
        [&]() -> uint8_t* {
            image->data.resize(o.size);
            return publisher.allocate(image) ? image->data.data() : nullptr;
        },
        [&] { return publisher.publish(image).ok(); });
    orchestrator.wait_stop();
}

void subscribe(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    auto node = must(ropewalk::Node::create("bench"));
    ropewalk::SubscriberOptions options;
    if (o.depth) options.with_depth(static_cast<uint32_t>(o.depth));
    auto subscriber = must(node.subscriber<Image>(topic(o), options));
    peer::say("ready");
    std::thread stopper([&] {
        orchestrator.wait_stop();
        subscriber.interrupt();
    });
    while (!orchestrator.stopped()) {
        auto image = subscriber.take(ropewalk::forever);
        if (!image) {
            if (image.error().empty()) continue;
            peer::fail(1, "%s", image.error().text().c_str());
        }
        if ((*image)->data.size() != o.size) peer::fail(1, "an image of another size: give each cell its own --topic");
        if (log.receive((*image)->data.data())) peer::say("done");
    }
    stopper.join();
    log.print();
}

}  // namespace

int main(int argc, char** argv) {
    const peer::Options o = peer::parse(argc, argv, {{"ropewalk-cpp"}, {"publish", "subscribe"}});
    if (o.command == "version") return peer::version(o, ropewalk_version(), {"block"});
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    if (o.command == "publish") publish(o, orchestrator);
    if (o.command == "subscribe") subscribe(o, orchestrator);
}
