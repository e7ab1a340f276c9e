// Nodes of roscpp as anybody writes them: `plain WHAT`. The test compiles this file as it is, and with the shim.
#include <cstdio>

#include <ros/ros.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/String.h>

class Filter {
public:
    Filter() : clouds_(node_.subscribe("points", 4, &Filter::filter, this)), near_(node_.advertise<sensor_msgs::PointCloud2>("near", 4)) {}

private:
    void filter(const sensor_msgs::PointCloud2ConstPtr& cloud) {
        sensor_msgs::PointCloud2 near = *cloud;
        near.width /= 2;
        near.data.resize(near.data.size() / 2);
        near_.publish(near);
    }

    ros::NodeHandle node_;
    ros::Subscriber clouds_;
    ros::Publisher near_;
};

void hear(const sensor_msgs::PointCloud2& cloud) {
    std::printf("heard %u points, %zu bytes, from %s\n", cloud.width, cloud.data.size(), cloud.header.frame_id.c_str());
    std::fflush(stdout);
}

void say(const std_msgs::String::ConstPtr& text) {
    std::printf("heard %s\n", text->data.c_str());
    std::fflush(stdout);
}

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    ros::init(argc, argv, "plain_" + what, ros::init_options::AnonymousName);
    ros::NodeHandle node;
    if (what == "talk") {
        ros::Publisher points = node.advertise<sensor_msgs::PointCloud2>("points", 4);
        ros::Publisher chatter = node.advertise<std_msgs::String>("chatter", 4);
        ros::Rate rate(10);
        while (ros::ok()) {
            sensor_msgs::PointCloud2::Ptr cloud(new sensor_msgs::PointCloud2);
            cloud->header.frame_id = "lidar";
            cloud->height = 1;
            cloud->width = 1000;
            cloud->data.resize(16000);
            points.publish(cloud);
            std_msgs::String text;
            text.data = "hello";
            chatter.publish(text);
            rate.sleep();
        }
        return 0;
    }
    if (what == "filter") {
        Filter filter;
        ros::spin();
        return 0;
    }
    ros::Subscriber near = node.subscribe("near", 4, hear);
    ros::Subscriber chatter = node.subscribe("chatter", 4, say);
    ros::spin();
}
