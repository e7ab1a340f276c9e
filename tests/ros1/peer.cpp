// A roscpp node for the bridge's tests: `peer WHAT NAME`. It prints what it receives, one line each.
#include <cstdio>
#include <ros/ros.h>
#include <sensor_msgs/Image.h>
#include <std_msgs/String.h>
#include <std_srvs/SetBool.h>
#include <string>

static void say(const std::string& text)
{
    std::printf("%s\n", text.c_str());
    std::fflush(stdout);
}

static bool answer(std_srvs::SetBool::Request& request, std_srvs::SetBool::Response& response)
{
    response.success = request.data;
    response.message = "roscpp";
    return request.data;
}

int main(int argc, char** argv)
{
    if (argc < 3)
        return 2;
    const std::string what = argv[1], name = argv[2];
    ros::init(argc, argv, "cpp_" + what, ros::init_options::AnonymousName);
    ros::NodeHandle node;
    if (what == "publish") {
        auto publisher = node.advertise<std_msgs::String>(name, 10);
        ros::Rate rate(20);
        for (int i = 0; ros::ok(); ++i) {
            std_msgs::String message;
            message.data = "hello " + std::to_string(i);
            publisher.publish(message);
            rate.sleep();
        }
    } else if (what == "listen") {
        boost::function<void(const std_msgs::String::ConstPtr&)> hear
            = [](const std_msgs::String::ConstPtr& m) { say("heard " + m->data); };
        auto subscriber = node.subscribe<std_msgs::String>(name, 10, hear, ros::VoidConstPtr(), ros::TransportHints().tcpNoDelay());
        ros::spin();
    } else if (what == "listen_wrong") {
        // A definition from another time.
        ros::SubscribeOptions options;
        options.init<std_msgs::String>(name, 10, [](const std_msgs::String::ConstPtr&) { say("heard"); });
        options.md5sum = "0123456789abcdef0123456789abcdef";
        auto subscriber = node.subscribe(options);
        ros::spin();
    } else if (what == "listen_images") {
        boost::function<void(const sensor_msgs::Image::ConstPtr&)> hear = [](const sensor_msgs::Image::ConstPtr& m) {
            size_t sum = 0;
            for (auto byte : m->data)
                sum = sum * 31 + byte;
            say("heard " + std::to_string(m->width) + " " + std::to_string(m->data.size()) + " " + std::to_string(sum));
        };
        auto subscriber = node.subscribe<sensor_msgs::Image>(name, 2, hear);
        ros::spin();
    } else if (what == "serve") {
        auto server = node.advertiseService(name, answer);
        say("ready");
        ros::spin();
    } else if (what == "call") {
        ros::service::waitForService(name);
        // One connection for both calls.
        auto client = node.serviceClient<std_srvs::SetBool>(name, true);
        for (bool data : {true, false}) {
            std_srvs::SetBool call;
            call.request.data = data;
            say(client.call(call) ? "answer " + call.response.message : std::string("error"));
        }
    } else {
        return 2;
    }
    return 0;
}
