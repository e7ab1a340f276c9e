// Generated types in ROS 1's serialization, and as roscpp messages: on a ROS topic every ROS node sees an ordinary
// message of that type.
#pragma once

#include <memory>

#include <ros/message_traits.h>
#include <ros/serialization.h>
#include <ropewalk/ropewalk.hpp>

namespace ropewalk_ros {
namespace detail {

namespace codec = ropewalk::detail;

/// Counts or writes what ROS 1 serializes.
template <class Derived>
struct RosPuts : codec::Walk<Derived>, codec::Faults {
    template <class T>
    void word(const T& word) {
        self().put(&word, sizeof(T));
    }
    template <class Unit>
    void text(const std::basic_string<Unit>& text, std::uint32_t) {
        if (count(text.size())) self().put(text.data(), text.size() * sizeof(Unit));
    }
    template <class T>
    void list(const std::vector<T>& list, std::uint32_t) {
        if (!count(list.size())) return;
        for (const auto& element : list) this->each(element);
    }
    template <class T>
    void bulk(const ropewalk::Bulk<T>& bulk, std::uint32_t) {
        if (!bulk.empty() && bulk.data() == nullptr) return fault("it was sized but not allocated: call allocate and fill it");
        if (!count(bulk.size())) return;
        if constexpr (codec::is_word<T>) {
            self().put(bulk.data(), bulk.size_bytes());
        } else {
            for (const T& element : static_cast<ropewalk::span<const T>>(bulk)) this->each(element);
        }
    }

protected:
    Derived& self() { return static_cast<Derived&>(*this); }
    bool count(std::size_t n) {
        if (n > std::numeric_limits<std::uint32_t>::max()) return fault("more elements than ROS 1 can count"), false;
        word(static_cast<std::uint32_t>(n));
        return true;
    }
};

struct RosLength : RosPuts<RosLength> {
    std::size_t len = 0;
    void put(const void*, std::size_t n) { len += n; }
};

struct RosWrite : RosPuts<RosWrite> {
    explicit RosWrite(ros::serialization::OStream& out) : out(out) {}
    void put(const void* bytes, std::size_t n) {
        auto* to = out.advance(static_cast<std::uint32_t>(n));
        if (n > 0) std::memcpy(to, bytes, n);
    }
    ros::serialization::OStream& out;
};

/// Size in bytes of an element in ROS 1's serialization, which has no padding.
template <class T>
std::size_t element_length() {
    RosLength length;
    T element{};
    T::ropewalk_fields(element, length);
    return length.len;
}

struct RosRead : codec::Walk<RosRead>, codec::Faults {
    explicit RosRead(ros::serialization::IStream& in) : in(in) {}

    template <class T>
    void word(T& word) {
        take(&word, sizeof(T));
    }
    template <class Unit>
    void text(std::basic_string<Unit>& text, std::uint32_t) {
        auto n = count(sizeof(Unit));
        text.resize(n);
        take(text.data(), n * sizeof(Unit));
    }
    template <class T>
    void list(std::vector<T>& list, std::uint32_t) {
        auto n = count(0);
        list.clear();
        for (std::uint32_t i = 0; i < n && !failed(); i++) {
            auto before = in.getLength();
            list.emplace_back();
            this->each(list.back());
            if (in.getLength() == before && ++empties > codec::MAX_EMPTY) fault("too many elements without content");
        }
    }
    template <class T>
    void bulk(ropewalk::Bulk<T>& bulk, std::uint32_t) {
        if constexpr (codec::is_word<T>) {
            auto n = count(sizeof(T));
            take(codec::BulkAccess::own(bulk, n), n * sizeof(T));
        } else {
            auto n = count(element_length<T>());
            T* element = codec::BulkAccess::own(bulk, n);
            for (std::uint32_t i = 0; i < n; i++) this->each(element[i]);
        }
    }
    ros::serialization::IStream& in;

private:
    void take(void* to, std::size_t n) {
        if (failed()) return;
        if (n > in.getLength()) return fault("the message is too short");
        const auto* from = in.advance(static_cast<std::uint32_t>(n));
        if (n > 0) std::memcpy(to, from, n);
    }
    /// Reads a count of elements that take at least `each` bytes; 0 if there are not that many bytes.
    std::uint32_t count(std::size_t each) {
        std::uint32_t n = 0;
        word(n);
        if (failed()) return 0;
        if (n > codec::MAX_COUNT || n * each > in.getLength()) return fault("the message is too short for its count"), 0;
        return n;
    }
    std::uint32_t empties = 0;
};

/// A message to send, passed to roscpp without copying.
template <class T>
struct Outgoing {
    const T& message;
};

/// A message received through roscpp, which requires that it is copyable.
template <class T>
struct Incoming {
    std::shared_ptr<T> message = std::make_shared<T>();
};

}  // namespace detail
}  // namespace ropewalk_ros

namespace ros {
namespace message_traits {

#define ROPEWALK_ROS_TRAIT(TRAIT, VALUE)                                        \
    template <class T>                                                          \
    struct TRAIT<ropewalk_ros::detail::Outgoing<T>> {                           \
        static const char* value() { return VALUE; }                            \
        static const char* value(const ropewalk_ros::detail::Outgoing<T>&) { return VALUE; } \
    };                                                                          \
    template <class T>                                                          \
    struct TRAIT<ropewalk_ros::detail::Incoming<T>> {                           \
        static const char* value() { return VALUE; }                            \
        static const char* value(const ropewalk_ros::detail::Incoming<T>&) { return VALUE; } \
    };
ROPEWALK_ROS_TRAIT(MD5Sum, ropewalk::Type<T>::md5)
ROPEWALK_ROS_TRAIT(DataType, ropewalk::Type<T>::name)
ROPEWALK_ROS_TRAIT(Definition, ropewalk::Type<T>::definition())
#undef ROPEWALK_ROS_TRAIT

template <class T>
struct IsMessage<ropewalk_ros::detail::Outgoing<T>> : TrueType {};
template <class T>
struct IsMessage<ropewalk_ros::detail::Incoming<T>> : TrueType {};

}  // namespace message_traits

namespace serialization {

template <class T>
struct Serializer<ropewalk_ros::detail::Outgoing<T>> {
    static std::uint32_t serializedLength(const ropewalk_ros::detail::Outgoing<T>& out) {
        ropewalk_ros::detail::RosLength length;
        T::ropewalk_fields(out.message, length);
        if (length.failed() || length.len > std::numeric_limits<std::int32_t>::max()) {
            throw ros::Exception(std::string("not a ") + ropewalk::Type<T>::name + ": " +
                                 (length.failed() ? length.error() : "longer than ROS 1 can send"));
        }
        return static_cast<std::uint32_t>(length.len);
    }
    template <class Stream>
    static void write(Stream& stream, const ropewalk_ros::detail::Outgoing<T>& out) {
        ropewalk_ros::detail::RosWrite write(stream);
        T::ropewalk_fields(out.message, write);
    }
};

template <class T>
struct Serializer<ropewalk_ros::detail::Incoming<T>> {
    template <class Stream>
    static void read(Stream& stream, ropewalk_ros::detail::Incoming<T>& in) {
        ropewalk_ros::detail::RosRead read(stream);
        T::ropewalk_fields(*in.message, read);
        // roscpp logs it, and drops the message.
        if (read.failed()) throw ros::Exception(std::string("not a ") + ropewalk::Type<T>::name + ": " + read.error());
    }
};

}  // namespace serialization
}  // namespace ros

