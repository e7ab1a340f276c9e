// Maps roscpp types to generated types, and copies between the two.
#pragma once

#include <limits>
#include <vector>

#include <ropewalk/msg/sensor_msgs/Image.hpp>
#include <ropewalk/msg/sensor_msgs/PointCloud2.hpp>
#include <ropewalk/ropewalk.hpp>
#include <ros/serialization.h>
#include <ros/time.h>
#include <sensor_msgs/Image.h>
#include <sensor_msgs/PointCloud2.h>
#include <std_msgs/Header.h>

namespace ropewalk_ros {

/// The type that `ropewalk gen cpp` generates from the definition of `M`, with bulk fields in shared memory:
/// `Twin<M>::type`. ROPEWALK_ROS_TYPE registers types other than Image and PointCloud2.
template <class M>
struct Twin;

/// The generated type of `M`.
template <class M>
using Shared = typename Twin<M>::type;

/// Registers a type, outside all namespaces and after its generated header: `ROPEWALK_ROS_TYPE(sensor_msgs,
/// LaserScan)`.
#define ROPEWALK_ROS_TYPE(PACKAGE, TYPE)                                                         \
    namespace ropewalk_ros {                                                                     \
    template <>                                                                                  \
    struct Twin<::PACKAGE::TYPE> {                                                               \
        using type = ::ropewalk::msg::PACKAGE::TYPE;                                             \
    };                                                                                           \
    }

inline ros::Time time(ropewalk::Time time) { return ros::Time(time.sec, time.nsec); }
inline ropewalk::Time time(const ros::Time& time) { return {time.sec, time.nsec}; }

namespace detail {

template <class T, class = void>
inline constexpr bool has_header = false;
template <class T>
inline constexpr bool has_header<T, std::enable_if_t<std::is_same_v<decltype(T::header), ropewalk::msg::std_msgs::Header>>> = true;

template <class To, class From>
void copy_header(To& to, const From& from) {
    to.seq = from.seq;
    to.stamp.sec = from.stamp.sec;
    to.stamp.nsec = from.stamp.nsec;
    to.frame_id = from.frame_id;
}

/// Copies a roscpp message into a block and out of it. This version is for all types, through ROS 1's serialization:
/// two copies each way. Versions for large messages follow below.
template <class M>
struct Copy {
    static constexpr bool direct = false;

    /// Publishes a copy, with `seq` instead of the message's own if its first field is a header.
    static ropewalk::Result<void> publish(const ropewalk::Publisher<Shared<M>>& to, const M& message, std::uint32_t seq) {
        std::vector<std::uint8_t> bytes(ros::serialization::serializationLength(message));
        ros::serialization::OStream stream(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
        ros::serialization::serialize(stream, message);
        if (has_header<Shared<M>> && bytes.size() >= sizeof seq) std::memcpy(bytes.data(), &seq, sizeof seq);
        return ropewalk::detail::done(ropewalk_publisher_publish_ros1(to.handle(), bytes.data(), bytes.size(), nullptr));
    }

    static ropewalk::Result<void> out(const ropewalk::Message<Shared<M>>& from, M& to) {
        std::size_t len = 0;
        ropewalk_message_ros1(from.handle(), nullptr, 0, &len);
        std::vector<std::uint8_t> bytes(len);
        auto status = ropewalk_message_ros1(from.handle(), bytes.data(), len, &len);
        if (status != ROPEWALK_STATUS_OK) return ropewalk::Error::last(status);
        ros::serialization::IStream stream(bytes.data(), static_cast<std::uint32_t>(len));
        ros::serialization::deserialize(stream, to);
        return {};
    }
};

template <>
struct Copy<sensor_msgs::Image> {
    using Image = ropewalk::msg::sensor_msgs::Image;
    static constexpr bool direct = true;

    /// Everything except the pixels, of which there will be `n`.
    static void in(const sensor_msgs::Image& from, std::size_t n, Image& to) {
        all_but_data(from, to);
        to.data.resize(n);
    }
    static const std::vector<std::uint8_t>& bulk(const sensor_msgs::Image& from) { return from.data; }

    static void out(const Image& from, sensor_msgs::Image& to) {
        all_but_data(from, to);
        to.data.assign(from.data.begin(), from.data.end());
    }

private:
    template <class From, class To>
    static void all_but_data(const From& from, To& to) {
        copy_header(to.header, from.header);
        to.height = from.height;
        to.width = from.width;
        to.encoding = from.encoding;
        to.is_bigendian = from.is_bigendian;
        to.step = from.step;
    }
};

template <>
struct Copy<sensor_msgs::PointCloud2> {
    using PointCloud2 = ropewalk::msg::sensor_msgs::PointCloud2;
    static constexpr bool direct = true;

    static void in(const sensor_msgs::PointCloud2& from, std::size_t n, PointCloud2& to) {
        all_but_data(from, to);
        to.data.resize(n);
    }
    static const std::vector<std::uint8_t>& bulk(const sensor_msgs::PointCloud2& from) { return from.data; }

    static void out(const PointCloud2& from, sensor_msgs::PointCloud2& to) {
        all_but_data(from, to);
        to.data.assign(from.data.begin(), from.data.end());
    }

private:
    template <class From, class To>
    static void all_but_data(const From& from, To& to) {
        copy_header(to.header, from.header);
        to.height = from.height;
        to.width = from.width;
        to.fields.resize(from.fields.size());
        for (std::size_t i = 0; i < from.fields.size(); i++) {
            to.fields[i].name = from.fields[i].name;
            to.fields[i].offset = from.fields[i].offset;
            to.fields[i].datatype = from.fields[i].datatype;
            to.fields[i].count = from.fields[i].count;
        }
        to.is_bigendian = from.is_bigendian;
        to.point_step = from.point_step;
        to.row_step = from.row_step;
        to.is_dense = from.is_dense;
    }
};

}  // namespace detail
}  // namespace ropewalk_ros

ROPEWALK_ROS_TYPE(sensor_msgs, Image)
ROPEWALK_ROS_TYPE(sensor_msgs, PointCloud2)
