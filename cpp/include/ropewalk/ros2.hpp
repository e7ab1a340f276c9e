// Lets classes of messages and services that ROS 2 generated, such as `sensor_msgs::msg::Image`, be used as types:
//
//     #include <ropewalk/ropewalk.hpp>
//     #include <ropewalk/ros2.hpp>
//     #include <sensor_msgs/msg/image.hpp>
//     #include <std_srvs/srv/set_bool.hpp>
//
//     auto subscriber = node.subscriber<sensor_msgs::msg::Image>("/camera").value();
//     auto client = node.client<std_srvs::srv::SetBool>("/switch").value();
//
// They are read and written through their introspection tables. A program therefore links `rosidl_typesupport_cpp` and
// the packages' `…__rosidl_typesupport_cpp`, and finds their `…__rosidl_typesupport_introspection_cpp` at run time; it
// does not need rcl or a middleware. Definitions are found as by `ropewalk_type_find` and `ropewalk_service_type_find`
// (`AMENT_PREFIX_PATH`), or in the class itself. Arrays of numbers are copied once into a block and once out of it;
// those of `ropewalk gen cpp` are not copied.
#pragma once

#include <rosidl_runtime_c/type_description/type_source__struct.h>
#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <rosidl_typesupport_cpp/service_type_support.hpp>

#include <rosidl_runtime_cpp/traits.hpp>
#include <rosidl_typesupport_introspection_cpp/field_types.hpp>
#include <rosidl_typesupport_introspection_cpp/message_introspection.hpp>

#include "service.hpp"

namespace ropewalk {
namespace detail {
namespace ros2 {

namespace intro = rosidl_typesupport_introspection_cpp;
using Member = intro::MessageMember;
using Members = intro::MessageMembers;

/// The introspection tables of a class; null if there are none.
template <class T>
const Members* members() {
    static const Members* found = [] {
        const auto* handle = rosidl_typesupport_cpp::get_message_type_support_handle<T>();
        const auto* table = handle->func(handle, "rosidl_typesupport_introspection_cpp");
        return table == nullptr ? nullptr : static_cast<const Members*>(table->data);
    }();
    return found;
}

inline const Members& of(const Member& member) { return *static_cast<const Members*>(member.members_->data); }

/// Whether this is the only member of a class without fields, which C++ requires.
inline bool is_filler(const Members& members) {
    return members.member_count_ == 1 && std::strcmp(members.members_[0].name_, "structure_needs_at_least_one_member") == 0;
}
inline bool is_fixed_array(const Member& member) { return member.is_array_ && member.array_size_ > 0 && !member.is_upper_bound_; }
inline std::uint32_t bound_of(const Member& member) {
    return member.is_upper_bound_ && member.array_size_ < UNBOUNDED ? static_cast<std::uint32_t>(member.array_size_) : UNBOUNDED;
}
inline std::uint32_t text_bound(const Member& member) {
    const auto bound = member.string_upper_bound_;
    return bound > 0 && bound < UNBOUNDED ? static_cast<std::uint32_t>(bound) : UNBOUNDED;
}

/// Calls `f` with a null pointer to the type of a word. Returns false if it is not a word.
template <class F>
bool with_word(std::uint8_t type, F f) {
    switch (type) {
        case intro::ROS_TYPE_FLOAT: f(static_cast<float*>(nullptr)); return true;
        case intro::ROS_TYPE_DOUBLE: f(static_cast<double*>(nullptr)); return true;
        case intro::ROS_TYPE_CHAR:
        case intro::ROS_TYPE_OCTET:
        case intro::ROS_TYPE_UINT8: f(static_cast<std::uint8_t*>(nullptr)); return true;
        case intro::ROS_TYPE_INT8: f(static_cast<std::int8_t*>(nullptr)); return true;
        case intro::ROS_TYPE_WCHAR:
        case intro::ROS_TYPE_UINT16: f(static_cast<std::uint16_t*>(nullptr)); return true;
        case intro::ROS_TYPE_INT16: f(static_cast<std::int16_t*>(nullptr)); return true;
        case intro::ROS_TYPE_UINT32: f(static_cast<std::uint32_t*>(nullptr)); return true;
        case intro::ROS_TYPE_INT32: f(static_cast<std::int32_t*>(nullptr)); return true;
        case intro::ROS_TYPE_UINT64: f(static_cast<std::uint64_t*>(nullptr)); return true;
        case intro::ROS_TYPE_INT64: f(static_cast<std::int64_t*>(nullptr)); return true;
        default: return false;
    }
}

/// Layout of a type's elements in a data part, and whether their layout in memory is the same.
struct Layout {
    std::size_t natural = 0, align = 1;
    /// Size in bytes in a control part; the minimum, if it is not fixed.
    std::size_t packed = 0;
    bool is_fixed = true, is_same = true, has_bools = false;
};

inline Layout layout(const Members& members);

/// The layout of one element of a member.
inline Layout layout(const Member& member) {
    Layout out;
    const auto word = [&](std::size_t size) { out.natural = out.align = out.packed = size; };
    if (member.type_id_ == intro::ROS_TYPE_BOOLEAN) {
        word(1);
        out.has_bools = true;
    } else if (member.type_id_ == intro::ROS_TYPE_MESSAGE) {
        out = layout(of(member));
    } else if (!with_word(member.type_id_, [&](auto* type) { word(sizeof(*type)); })) {
        out.packed = 4;
        out.is_fixed = false;
    }
    return out;
}

inline Layout layout(const Members& members) {
    Layout out;
    if (is_filler(members)) return out;
    for (std::uint32_t i = 0; i < members.member_count_; i++) {
        const Member& member = members.members_[i];
        Layout inner = layout(member);
        if (member.is_array_ && !is_fixed_array(member)) {
            inner.is_fixed = false;
            inner.packed = 4;
        } else if (member.is_array_) {
            inner.natural *= member.array_size_;
            inner.packed *= member.array_size_;
        }
        out.natural = (out.natural + inner.align - 1) / inner.align * inner.align;
        out.is_same = out.is_same && inner.is_same && out.natural == member.offset_;
        out.natural += inner.natural;
        out.packed += inner.packed;
        out.align = out.align < inner.align ? inner.align : out.align;
        out.is_fixed = out.is_fixed && inner.is_fixed;
        out.has_bools = out.has_bools || inner.has_bools;
    }
    out.natural = (out.natural + out.align - 1) / out.align * out.align;
    out.is_same = out.is_same && out.natural == members.size_of_;
    return out;
}

/// Passes a message to a visitor that reads it.
template <class Visitor>
void put(const Members& members, const std::uint8_t* base, Visitor& visitor);

template <class Visitor>
void put_one(const Member& member, const void* at, Visitor& visitor) {
    if (visitor.failed()) return;
    if (with_word(member.type_id_, [&](auto* type) { visitor.word(*static_cast<std::add_const_t<std::remove_pointer_t<decltype(type)>>*>(at)); })) return;
    switch (member.type_id_) {
        case intro::ROS_TYPE_BOOLEAN: {
            const std::uint8_t word = *static_cast<const bool*>(at) ? 1 : 0;
            return visitor.word(word);
        }
        case intro::ROS_TYPE_STRING: return visitor.text(*static_cast<const std::string*>(at), text_bound(member));
        case intro::ROS_TYPE_WSTRING: return visitor.text(*static_cast<const std::u16string*>(at), text_bound(member));
        case intro::ROS_TYPE_MESSAGE: return put(of(member), static_cast<const std::uint8_t*>(at), visitor);
        default: visitor.fault("the type is not supported");
    }
}

template <class Visitor>
void put(const Members& members, const std::uint8_t* base, Visitor& visitor) {
    if (is_filler(members)) return;
    for (std::uint32_t i = 0; i < members.member_count_ && !visitor.failed(); i++) {
        const Member& member = members.members_[i];
        const void* at = base + member.offset_;
        visitor.enter(member.name_);
        if (!member.is_array_) {
            put_one(member, at, visitor);
            continue;
        }
        const bool is_bits = member.type_id_ == intro::ROS_TYPE_BOOLEAN && !is_fixed_array(member);
        const std::size_t n = is_fixed_array(member) ? member.array_size_ : member.size_function(at);
        const auto each = [&] {
            for (std::size_t j = 0; j < n && !visitor.failed(); j++) {
                bool bit = false;
                if (is_bits) member.fetch_function(at, j, &bit);
                put_one(member, is_bits ? &bit : member.get_const_function(at, j), visitor);
            }
        };
        if (is_fixed_array(member)) {
            each();
            continue;
        }
        const Layout inner = layout(member);
        if (inner.is_fixed && inner.packed > 0) {
            // Padding would leak arbitrary memory.
            const bool is_alike = n > 0 && !is_bits && inner.is_same && inner.natural == inner.packed;
            visitor.bulk_of(is_alike ? member.get_const_function(at, 0) : nullptr, n, inner.natural, bound_of(member), each);
        } else {
            visitor.list_of(n, bound_of(member), each);
        }
    }
}

inline void read(const Members& members, std::uint8_t* base, Read& reader);

inline void read_one(const Member& member, void* at, Read& reader) {
    if (reader.failed()) return;
    if (with_word(member.type_id_, [&](auto* type) { reader.word(*static_cast<decltype(type)>(at)); })) return;
    switch (member.type_id_) {
        case intro::ROS_TYPE_BOOLEAN: {
            std::uint8_t word = 0;
            reader.word(word);
            *static_cast<bool*>(at) = word != 0;
            return;
        }
        case intro::ROS_TYPE_STRING: return reader.text(*static_cast<std::string*>(at), text_bound(member));
        case intro::ROS_TYPE_WSTRING: return reader.text(*static_cast<std::u16string*>(at), text_bound(member));
        case intro::ROS_TYPE_MESSAGE: return read(of(member), static_cast<std::uint8_t*>(at), reader);
        default: reader.fault("the type is not supported");
    }
}

inline void normalize(const Members& members, std::uint8_t* base);

/// Sets the bytes of each `bool` in an element of fixed size to 0 or 1: another process wrote them, and C++ allows no
/// other values.
inline void normalize(const Member& member, void* at) {
    if (member.type_id_ == intro::ROS_TYPE_MESSAGE) return normalize(of(member), static_cast<std::uint8_t*>(at));
    if (member.type_id_ != intro::ROS_TYPE_BOOLEAN) return;
    auto* byte = static_cast<std::uint8_t*>(at);
    *byte = *byte != 0;
}

inline void normalize(const Members& members, std::uint8_t* base) {
    if (is_filler(members)) return;
    for (std::uint32_t i = 0; i < members.member_count_; i++) {
        const Member& member = members.members_[i];
        void* at = base + member.offset_;
        const std::size_t n = member.is_array_ ? member.array_size_ : 1;
        for (std::size_t j = 0; j < n; j++) normalize(member, member.is_array_ ? member.get_function(at, j) : at);
    }
}

/// Reads elements from a data part.
inline void read_part(const Member& member, void* at, std::uint32_t n, const std::uint8_t* part, const Layout& inner, Read& reader) {
    if (member.type_id_ == intro::ROS_TYPE_BOOLEAN) {
        for (std::uint32_t i = 0; i < n; i++) {
            const bool bit = part[i] != 0;
            member.assign_function(at, i, &bit);
        }
        return;
    }
    if (n == 0) return;
    if (!inner.is_same) return reader.fault("the elements do not have C's memory layout");
    std::memcpy(member.get_function(at, 0), part, n * inner.natural);
    for (std::uint32_t i = 0; inner.has_bools && i < n; i++) normalize(member, member.get_function(at, i));
}

inline void read(const Members& members, std::uint8_t* base, Read& reader) {
    if (is_filler(members)) return;
    for (std::uint32_t i = 0; i < members.member_count_ && !reader.failed(); i++) {
        const Member& member = members.members_[i];
        void* at = base + member.offset_;
        reader.enter(member.name_);
        if (!member.is_array_) {
            read_one(member, at, reader);
            continue;
        }
        const bool is_bits = member.type_id_ == intro::ROS_TYPE_BOOLEAN && !is_fixed_array(member);
        const auto each = [&](std::size_t n) {
            for (std::size_t j = 0; j < n && !reader.failed(); j++) {
                bool bit = false;
                read_one(member, is_bits ? &bit : member.get_function(at, j), reader);
                if (is_bits) member.assign_function(at, j, &bit);
            }
        };
        if (is_fixed_array(member)) {
            each(member.array_size_);
            continue;
        }
        const auto resize = [&](std::size_t n) {
            member.resize_function(at, n);
            return member.size_function(at) == n;
        };
        const Layout inner = layout(member);
        if (!inner.is_fixed || inner.packed == 0) {
            reader.list_of(inner.packed, bound_of(member), resize, each);
            continue;
        }
        // A vector of numbers is filled in one pass; resizing would initialize it first.
        bool is_filled = false;
        const auto place = [&](std::size_t n, const std::uint8_t* part) {
            if (part == nullptr || member.is_upper_bound_) return resize(n);
            is_filled = with_word(member.type_id_, [&](auto* type) {
                using Word = std::remove_pointer_t<decltype(type)>;
                const auto* first = reinterpret_cast<const Word*>(part);
                static_cast<std::vector<Word>*>(at)->assign(first, first + n);
            });
            return is_filled || resize(n);
        };
        reader.bulk_of(inner.packed, inner.natural, bound_of(member), place, [&](std::uint32_t n, const std::uint8_t* part) {
            if (part == nullptr) each(n);
            else if (!is_filled) read_part(member, at, n, part, inner, reader);
        });
    }
}

/// The definitions of a class and of all types that it uses, in the format of `ropewalk gen` and bags; null if its type
/// support does not contain them.
template <class Handle>
std::unique_ptr<std::string> definition(const std::string& own, const Handle* handle) {
    const auto* sources = handle->get_type_description_sources_func == nullptr ? nullptr : handle->get_type_description_sources_func(handle);
    if (sources == nullptr || sources->size == 0) return nullptr;
    // In some versions the sizes include the terminating zero.
    const auto text = [](const rosidl_runtime_c__String& string) { return std::string(string.data == nullptr ? "" : string.data); };
    std::string first, others;
    for (std::size_t i = 0; i < sources->size; i++) {
        const auto& source = sources->data[i];
        std::string name = text(source.type_name);
        const std::string encoding = text(source.encoding);
        // Requests, responses and events of a service follow from its own text.
        if (encoding == "implicit" && name != own) continue;
        if (encoding != "msg" && encoding != "srv") return nullptr;
        if (name == own) {
            first = text(source.raw_file_contents);
            continue;
        }
        if (const auto at = name.find("/msg/"); at != std::string::npos) name.erase(at, 4);
        others += "\n" + std::string(80, '=') + "\nMSG: " + name + "\n" + text(source.raw_file_contents);
    }
    return std::make_unique<std::string>(first + others);
}

/// Creates the type of a class with the C functions for messages or for services.
template <class Handle, class Find, class FromDefinition, class Out>
ropewalk_status make(const char* name, const Handle* handle, Find find, FromDefinition from_definition, Out** out) {
    // The installed files contain more than the class, which has lost quotes of default values in some versions.
    const auto status = find(name, ROPEWALK_FLAVOUR_ROS2, out);
    if (status == ROPEWALK_STATUS_OK) return status;
    const auto text = definition(name, handle);
    if (text == nullptr) return status;
    return from_definition(name, text->c_str(), ROPEWALK_FLAVOUR_ROS2, nullptr, out);
}

}  // namespace ros2

template <class T>
struct Fields<T, std::enable_if_t<rosidl_generator_traits::is_message<T>::value>> {
    template <class Self, class Visitor>
    static void walk(Self& self, Visitor& visitor) {
        const auto* members = ros2::members<T>();
        if (members == nullptr) return visitor.fault("the class has no introspection: install and link its typesupport libraries");
        if constexpr (std::is_same_v<Visitor, Read>) {
            ros2::read(*members, reinterpret_cast<std::uint8_t*>(&self), visitor);
        } else {
            ros2::put(*members, reinterpret_cast<const std::uint8_t*>(&self), visitor);
        }
    }
};

}  // namespace detail

template <class T>
struct Type<T, std::enable_if_t<rosidl_generator_traits::is_message<T>::value || rosidl_generator_traits::is_service<T>::value>> {
    inline static const char* const name = rosidl_generator_traits::name<T>();
};

namespace detail {

template <class T>
struct MakeType<T, std::enable_if_t<rosidl_generator_traits::is_message<T>::value>> {
    static ropewalk_status make(ropewalk_type** out) {
        const auto* handle = rosidl_typesupport_cpp::get_message_type_support_handle<T>();
        return ros2::make(Type<T>::name, handle, ropewalk_type_find, ropewalk_type_from_definition, out);
    }
};

template <class S>
struct MakeServiceType<S, std::enable_if_t<rosidl_generator_traits::is_service<S>::value>> {
    static ropewalk_status make(ropewalk_service_type** out) {
        const auto* handle = rosidl_typesupport_cpp::get_service_type_support_handle<S>();
        return ros2::make(Type<S>::name, handle, ropewalk_service_type_find, ropewalk_service_type_from_definition, out);
    }
};

}  // namespace detail
}  // namespace ropewalk
