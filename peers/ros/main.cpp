// ROS 1 (roscpp): `tcpros` is its default transport; with `nodelay` the subscriber also requests TCP_NODELAY;
// `nodelet` is the intra-process variant: publisher and subscribers are nodelets of one manager, and messages are
// passed as shared pointers. The payload is the data of a sensor_msgs/Image.
#include <nodelet/loader.h>
#include <nodelet/nodelet.h>
#include <sensor_msgs/Image.h>

#include <memory>

#include "ros.hpp"

namespace {

// Queue depth of one subscriber; roscpp's queues lose the oldest.
uint32_t depth(const peer::Options& o) { return o.depth ? static_cast<uint32_t>(o.depth) : 32; }

void shape(sensor_msgs::Image& image, const peer::Options& o) {
    image.encoding = "mono8";
    image.header.frame_id = "camera";
    image.height = 1;
    image.width = image.step = static_cast<uint32_t>(o.size);
    image.data.resize(o.size);
}

const uint8_t* payload(const sensor_msgs::Image& image, const peer::Options& o) {
    if (image.data.size() != o.size) peer::fail(1, "ros: an image of another size: give each cell its own --topic");
    return image.data.data();
}

void wait_links(const ros::Publisher& publisher, uint64_t count, const peer::Orchestrator& orchestrator) {
    while (publisher.getNumSubscribers() < count && orchestrator.pause_ms(5)) {}
}

void publish(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    ros::NodeHandle node;
    ros::Publisher publisher = node.advertise<sensor_msgs::Image>(o.topic, depth(o));
    sensor_msgs::Image image;
    shape(image, o);
    wait_links(publisher, o.subscribers, orchestrator);
    peer::ready_and_go(orchestrator);
    // publish() serializes at once, so one image serves all messages.
    peer::send_all(o, orchestrator, [&] { return image.data.data(); }, [&] {
        publisher.publish(image);
        return true;
    });
    orchestrator.wait_stop();
}

void subscribe(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    peer::Log log(o);
    ros::NodeHandle node;
    const boost::function<void(const sensor_msgs::ImageConstPtr&)> callback = [&](const sensor_msgs::ImageConstPtr& image) {
        if (log.receive(payload(*image, o))) peer::say("done");
    };
    const ros::Subscriber subscriber = node.subscribe<sensor_msgs::Image>(
        o.topic, depth(o), callback, ros::VoidConstPtr(), o.system == "nodelay" ? ros::TransportHints().tcpNoDelay() : ros::TransportHints());
    peer::say("ready");
    peer::spin_until_stop(orchestrator);
    log.print();
}

// State shared by the nodelets of this process; they are created by name and so take no arguments.
struct Cell {
    const peer::Options* options = nullptr;
    const peer::Orchestrator* orchestrator = nullptr;
    std::vector<std::unique_ptr<peer::Log>> logs;
    std::atomic<uint64_t> done{0};
    std::atomic<bool> sent{false};
} cell;

void say_done_once() {
    if (cell.sent.load() && cell.done.load() == cell.options->subscribers) {
        static std::once_flag once;
        std::call_once(once, [] { peer::say("done"); });
    }
}

class Receiver : public nodelet::Nodelet {
public:
    explicit Receiver(peer::Log& log) : log_(log) {}

private:
    void onInit() override { subscriber_ = getNodeHandle().subscribe(cell.options->topic, depth(*cell.options), &Receiver::receive, this); }

    void receive(const sensor_msgs::ImageConstPtr& image) {
        if (!log_.receive(payload(*image, *cell.options))) return;
        ++cell.done;
        say_done_once();
    }

    peer::Log& log_;
    ros::Subscriber subscriber_;
};

class Sender : public nodelet::Nodelet {
public:
    ~Sender() override {
        if (thread_.joinable()) thread_.join();
    }

private:
    void onInit() override {
        publisher_ = getNodeHandle().advertise<sensor_msgs::Image>(cell.options->topic, depth(*cell.options));
        thread_ = std::thread([this] { send(); });
    }

    void send() {
        const peer::Options& o = *cell.options;
        wait_links(publisher_, 1, *cell.orchestrator);  // roscpp joins a process's subscribers of a topic into one link
        peer::ready_and_go(*cell.orchestrator);
        sensor_msgs::ImagePtr image;
        // A new image for each message, because subscribers may keep a published one.
        auto loan = [&] {
            image = boost::make_shared<sensor_msgs::Image>();
            shape(*image, o);
            return image->data.data();
        };
        peer::send_all(o, *cell.orchestrator, loan, [&] {
            publisher_.publish(image);
            return true;
        });
        cell.sent = true;
        say_done_once();
    }

    ros::Publisher publisher_;
    std::thread thread_;
};

boost::shared_ptr<nodelet::Nodelet> make_nodelet(const std::string& type) {
    if (type == "sender") return boost::make_shared<Sender>();
    return boost::make_shared<Receiver>(*cell.logs[std::stoul(type)]);
}

void run(const peer::Options& o, const peer::Orchestrator& orchestrator) {
    cell.options = &o;
    cell.orchestrator = &orchestrator;
    for (uint64_t i = 0; i < o.subscribers; ++i) cell.logs.emplace_back(new peer::Log(o));
    ros::NodeHandle node;  // keeps roscpp running
    {
        nodelet::Loader loader{boost::function<boost::shared_ptr<nodelet::Nodelet>(const std::string&)>(make_nodelet)};
        bool loaded = true;
        for (uint64_t i = 0; i < o.subscribers; ++i) loaded &= loader.load("receiver" + std::to_string(i), std::to_string(i), {}, {});
        if (!loaded || !loader.load("sender", "sender", {}, {})) peer::fail(1, "nodelet: a nodelet cannot be loaded: see above");
        orchestrator.wait_stop();
        loader.unload("sender");  // joins its thread, which prints its line
    }
    for (const auto& log : cell.logs) log->print();
}

}  // namespace

int main(int argc, char** argv) {
    const bool nodelet = std::string(argc > 1 ? argv[1] : "") == "run";
    const peer::Program program = nodelet ? peer::Program{{"nodelet"}, {"run"}} : peer::Program{{"tcpros", "nodelay", "nodelet"}, {"publish", "subscribe", "run"}};
    const peer::Options o = peer::parse(argc, argv, program);
    if (o.command == "version") {
        std::vector<std::string> modes = {"block"};
        if (o.system == "nodelet") modes = {"intra"};
        const std::string version = std::to_string(ROS_VERSION_MAJOR) + "." + std::to_string(ROS_VERSION_MINOR) + "." + std::to_string(ROS_VERSION_PATCH);
        return peer::version(o, version, modes);
    }
    if (!nodelet && o.system == "nodelet") peer::fail(2, "--system nodelet: its subscribers run in one process: use the command run");
    peer::Orchestrator orchestrator;
    peer::enter_fifo(o);
    peer::start_ros(o.system, orchestrator, "ropewalk_bench_" + o.command);
    if (o.command == "publish") publish(o, orchestrator);
    if (o.command == "subscribe") subscribe(o, orchestrator);
    if (o.command == "run") run(o, orchestrator);
    ros::shutdown();
}
