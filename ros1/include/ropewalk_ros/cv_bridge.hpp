// Images in shared memory as cv::Mat, named as in cv_bridge. Not part of ropewalk_ros.hpp, since it needs
// libcv-bridge-dev.
#pragma once

#include <cstdint>
#include <string>

#include <boost/make_shared.hpp>
#include <boost/predef/other/endian.h>
#include <cv_bridge/cv_bridge.h>
#include <sensor_msgs/image_encodings.h>

#include "publisher.hpp"
#include "subscriber.hpp"

namespace ropewalk_ros {

/// Like cv_bridge::toCvShare: the image where its publisher wrote it, or a converted copy if another encoding is
/// requested. The result keeps the view alive. Its pixels are read-only: writing to them ends the program.
///
/// Throws cv_bridge::Exception if it is not an image.
inline cv_bridge::CvImageConstPtr toCvShare(const View<sensor_msgs::Image>& view, const std::string& encoding = std::string()) {
    struct Held : cv_bridge::CvImage {
        explicit Held(const View<sensor_msgs::Image>& view) { tracked_object_ = view; }
    };
    auto held = boost::make_shared<Held>(view);
    detail::copy_header(held->header, view->header);
    held->encoding = view->encoding;
    const int type = cv_bridge::getCvType(view->encoding);
    const std::size_t row = std::uint64_t(view->width) * CV_ELEM_SIZE(type);
    const auto most = std::uint32_t(std::numeric_limits<int>::max());
    if (view->step < row || std::uint64_t(view->step) * view->height > view->data.size() || view->width > most || view->height > most) {
        throw cv_bridge::Exception("an image of " + std::to_string(view->width) + " x " + std::to_string(view->height) + " " + view->encoding + " with a step of " +
                                   std::to_string(view->step) + " has " + std::to_string(view->data.size()) + " bytes: the publisher's sizes are wrong");
    }
    if (CV_ELEM_SIZE1(type) > 1 && bool(view->is_bigendian) != bool(BOOST_ENDIAN_BIG_BYTE)) {
        throw cv_bridge::Exception("the image is in the other byte order: copy it into a sensor_msgs::Image and use cv_bridge::toCvShare");
    }
    held->image = cv::Mat(int(view->height), int(view->width), type, const_cast<std::uint8_t*>(view->data.data()), view->step);
    if (encoding.empty() || encoding == view->encoding) return held;
    return cv_bridge::cvtColor(held, encoding);
}

/// Reserves a block for an image of this size and encoding, such as "bgr8", and returns its pixels, to be written in
/// place; an empty cv::Mat, and a ROS_ERROR, if there is no memory. Set the header first.
inline cv::Mat allocate(const Publisher<sensor_msgs::Image>& publisher, Publisher<sensor_msgs::Image>::Loan& image, const cv::Size& size, const std::string& encoding) {
    const int type = cv_bridge::getCvType(encoding);
    image->width = std::uint32_t(size.width);
    image->height = std::uint32_t(size.height);
    image->encoding = encoding;
    image->is_bigendian = bool(BOOST_ENDIAN_BIG_BYTE);
    image->step = std::uint32_t(size.width * CV_ELEM_SIZE(type));
    image->data.resize(std::size_t(image->step) * image->height);
    if (!publisher.allocate(image)) return cv::Mat();
    return cv::Mat(size, type, image->data.data());
}

}  // namespace ropewalk_ros
