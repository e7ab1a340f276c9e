// Control and data parts of generated types: docs/wire/control-part.md in C++.
//
// A generated type has `static void ropewalk_fields(Self&, Visitor&)`, which passes each field to the visitor in order,
// and a `Type<T>` with its name, sum and definition. The visitors here measure, bind, write and read (decision 200).
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bulk.hpp"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Ropewalk's blocks are little-endian"
#endif

namespace ropewalk {

/// Name, sum and definition of a generated type; the generated code specializes it.
template <class T, class = void>
struct Type;

namespace detail {

/// How a visitor walks through a message: with the code that `ropewalk gen` generated, unless specialized (ros2.hpp).
template <class T, class = void>
struct Fields {
    template <class Self, class Visitor>
    static void walk(Self& self, Visitor& visitor) {
        T::ropewalk_fields(self, visitor);
    }
};
template <class Self, class Visitor>
void walk_fields(Self& self, Visitor& visitor) {
    Fields<std::remove_cv_t<Self>>::walk(self, visitor);
}

constexpr std::uint32_t UNBOUNDED = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t LIFTED = std::uint32_t{1} << 31;
constexpr std::uint32_t MAX_COUNT = LIFTED - 1;
constexpr std::size_t MAX_PARTS = 32;
/// Maximum number of elements without content, since no length bounds them.
constexpr std::uint32_t MAX_EMPTY = 4096;

template <class T>
constexpr bool is_word = std::is_arithmetic_v<T>;
template <>
inline constexpr bool is_word<Time> = true;
template <>
inline constexpr bool is_word<Duration> = true;

/// Walks through a message and passes words, texts, counts and bulk fields to `Derived`.
template <class Derived>
struct Walk {
    template <class T>
    void operator()(const char* name, T& field, std::uint32_t bound = UNBOUNDED) {
        auto& self = static_cast<Derived&>(*this);
        if (self.failed()) return;
        self.enter(name);
        if constexpr (is_word<std::remove_cv_t<T>>) {
            self.word(field);
        } else {
            visit(field, bound);
        }
    }

private:
    template <class T>
    void visit(T& message, std::uint32_t) {
        walk_fields(message, static_cast<Derived&>(*this));
    }
    template <class Unit>
    void visit(const std::basic_string<Unit>& text, std::uint32_t bound) {
        static_cast<Derived&>(*this).text(text, bound);
    }
    template <class Unit>
    void visit(std::basic_string<Unit>& text, std::uint32_t bound) {
        static_cast<Derived&>(*this).text(text, bound);
    }
    template <class T>
    void visit(Bulk<T>& bulk, std::uint32_t bound) {
        static_cast<Derived&>(*this).bulk(bulk, bound);
    }
    template <class T>
    void visit(const Bulk<T>& bulk, std::uint32_t bound) {
        static_cast<Derived&>(*this).bulk(bulk, bound);
    }
    template <class T>
    void visit(std::vector<T>& list, std::uint32_t bound) {
        static_cast<Derived&>(*this).list(list, bound);
    }
    template <class T>
    void visit(const std::vector<T>& list, std::uint32_t bound) {
        static_cast<Derived&>(*this).list(list, bound);
    }
    template <class T, std::size_t N>
    void visit(std::array<T, N>& array, std::uint32_t bound) {
        for (auto& element : array) each(element, bound);
    }
    template <class T, std::size_t N>
    void visit(const std::array<T, N>& array, std::uint32_t bound) {
        for (auto& element : array) each(element, bound);
    }

protected:
    /// One element of an array.
    template <class T>
    void each(T& element, std::uint32_t bound = UNBOUNDED) {
        auto& self = static_cast<Derived&>(*this);
        if (self.failed()) return;
        if constexpr (is_word<std::remove_cv_t<T>>) {
            self.word(element);
        } else {
            visit(element, bound);
        }
    }
};

/// Records the first error, with the field in which it occurred.
struct Faults {
    void enter(const char* name) { field_ = name; }
    bool failed() const { return error_ != nullptr; }
    [[gnu::cold, gnu::noinline]] void fault(const std::string& what) {
        if (!failed()) error_ = std::make_unique<std::string>(std::string(field_) + ": " + what);
    }
    /// As above, without creating a string in callers whose text has no numbers.
    [[gnu::cold, gnu::noinline]] void fault(const char* what) { fault(std::string(what)); }
    std::string error() const { return failed() ? *error_ : std::string(); }
    /// Records that there are more elements than allowed.
    [[gnu::cold, gnu::noinline]] void too_many(std::size_t n, std::uint32_t bound) {
        fault(std::to_string(n) + " elements, at most " + std::to_string(bound < MAX_COUNT ? bound : MAX_COUNT));
    }

private:
    const char* field_ = "message";
    // Allocated separately, so that nothing is constructed or destroyed if there is no error.
    std::unique_ptr<std::string> error_;
};

/// Counts bytes in `Derived` and checks what a writer may be given.
template <class Derived>
struct Puts : Walk<Derived>, Faults {
    std::size_t threshold = THRESHOLD;

    template <class Unit>
    void text(const std::basic_string<Unit>& text, std::uint32_t bound) {
        if (!count(text.size(), bound)) return;
        self().put(text.data(), text.size() * sizeof(Unit));
    }
    template <class T>
    void list(const std::vector<T>& list, std::uint32_t bound) {
        if (!count(list.size(), bound)) return;
        for (const auto& element : list) this->each(element);
    }
    template <class T>
    void word(const T& word) {
        self().put(&word, sizeof(T));
    }
    /// Puts a list whose elements `each` puts.
    template <class Each>
    void list_of(std::size_t n, std::uint32_t bound, Each each) {
        if (count(n, bound)) each();
    }

protected:
    Derived& self() { return static_cast<Derived&>(*this); }

    bool count(std::size_t n, std::uint32_t bound, std::uint32_t flag = 0) {
        if (n > MAX_COUNT || n > bound) {
            too_many(n, bound);
            return false;
        }
        word(static_cast<std::uint32_t>(n) | flag);
        return true;
    }
    /// Whether a bulk field of this many bytes becomes a data part.
    bool lifts(std::size_t bytes, std::size_t parts) const { return bytes > 0 && bytes >= threshold && parts < MAX_PARTS; }
};

/// The lengths of a message's parts.
struct Measure : Puts<Measure> {
    std::size_t control_len = 0;
    std::array<std::size_t, MAX_PARTS> part_lens;
    std::size_t part_count = 0;

    void put(const void*, std::size_t len) { control_len += len; }
    template <class T>
    void bulk(const Bulk<T>& bulk, std::uint32_t bound) {
        if (!count(bulk.size(), bound)) return;
        if (lifts(bulk.size_bytes(), part_count)) {
            part_lens[part_count++] = bulk.size_bytes();
            return;
        }
        // In ROS 1 form elements have no padding, so none is longer than in a data part.
        control_len += bulk.size_bytes();
    }
    /// Puts `n` elements of `stride` bytes. If `bytes` is not null, they have the layout of a data part in memory;
    /// `each` puts them one by one.
    template <class Each>
    void bulk_of(const void* bytes, std::size_t n, std::size_t stride, std::uint32_t bound, Each each) {
        if (!count(n, bound)) return;
        if (bytes != nullptr && lifts(n * stride, part_count)) part_lens[part_count++] = n * stride;
        else each();
    }
};

/// The addresses of a block's control part and data parts, as the C interface returns them at once. `Place` is
/// `ropewalk_place`, or `ropewalk_bytes` for a taken message.
template <class Place>
struct Places {
    Place control;
    std::size_t count = 0;
    /// Only the first `count` are set.
    std::array<Place, MAX_PARTS> parts;
};

/// Visits only bulk fields.
template <class Derived>
struct Bulks : Walk<Derived>, Faults {
    template <class T>
    void word(T&) {}
    template <class Unit>
    void text(std::basic_string<Unit>&, std::uint32_t) {}
    template <class T>
    void list(std::vector<T>& list, std::uint32_t) {
        for (auto& element : list) this->each(element);
    }
    // Memory of other classes is not touched.
    template <class Each>
    void list_of(std::size_t, std::uint32_t, Each) {}
    template <class Each>
    void bulk_of(const void*, std::size_t, std::size_t, std::uint32_t, Each) {}
};

/// Gives each bulk field its place in a block.
struct Bind : Bulks<Bind> {
    explicit Bind(const Places<ropewalk_place>& to) : places(to) {}

    const Places<ropewalk_place>& places;
    std::size_t threshold = THRESHOLD;
    std::size_t next = 0;

    template <class T>
    void bulk(Bulk<T>& bulk, std::uint32_t) {
        if (!bulk.empty() && bulk.size_bytes() >= threshold && next < places.count) {
            BulkAccess::bind(bulk, places.parts[next++].data);
        } else if (bulk.data() == nullptr) {
            BulkAccess::own(bulk, bulk.size());
        }
    }
};

/// Releases a block that was published.
struct Release : Bulks<Release> {
    template <class T>
    void bulk(Bulk<T>& bulk, std::uint32_t) {
        BulkAccess::release(bulk);
    }
};

/// Writes a control part, and copies into the data parts what is not already there.
struct Write : Puts<Write> {
    explicit Write(const Places<ropewalk_place>& to) : places(to) {}

    const Places<ropewalk_place>& places;
    std::size_t at = 0;
    std::size_t next = 0;

    void put(const void* bytes, std::size_t len) {
        if (len > places.control.len - at) {
            fault("the message has grown since its block was allocated: set texts and sizes before");
            return;
        }
        if (len > 0) std::memcpy(places.control.data + at, bytes, len);
        at += len;
    }
    template <class T>
    void bulk(const Bulk<T>& bulk, std::uint32_t bound) {
        if (!bulk.empty() && bulk.data() == nullptr) {
            fault("it was sized but not allocated: call allocate and fill it");
            return;
        }
        if (!lifts(bulk.size_bytes(), next)) {
            if (!count(bulk.size(), bound)) return;
            for (const T& element : static_cast<span<const T>>(bulk)) this->each(element);
            return;
        }
        auto* part = next_part(bulk.size_bytes());
        if (part == nullptr || !count(bulk.size(), bound, LIFTED)) return;
        if (!BulkAccess::is_lifted(bulk)) {
            std::memcpy(part, bulk.data(), bulk.size_bytes());
        } else if (static_cast<const void*>(bulk.data()) != part) {
            fault("it is in another message's block");
        }
    }
    /// As `Measure::bulk_of`.
    template <class Each>
    void bulk_of(const void* bytes, std::size_t n, std::size_t stride, std::uint32_t bound, Each each) {
        if (bytes == nullptr || !lifts(n * stride, next)) return list_of(n, bound, each);
        auto* part = next_part(n * stride);
        if (part != nullptr && count(n, bound, LIFTED)) std::memcpy(part, bytes, n * stride);
    }
    /// Call it after everything was written.
    void finish() {
        if (next != places.count) fault("a bulk field became shorter since its block was allocated: allocate again");
    }

private:
    /// Returns the next data part, if it has this length.
    std::uint8_t* next_part(std::size_t bytes) {
        if (next < places.count && places.parts[next].len == bytes) return places.parts[next++].data;
        fault("its size has changed since its block was allocated: allocate again");
        return nullptr;
    }
};

/// Reads a control part; bulk fields become views of the data parts.
struct Read : Walk<Read>, Faults {
    explicit Read(const Places<ropewalk_bytes>& from) : places(from), len(from.control.len) {}

    const Places<ropewalk_bytes>& places;
    std::size_t len;
    std::size_t at = 0;
    std::size_t next = 0;
    std::uint32_t empties = 0;

    template <class T>
    void word(T& word) {
        take(&word, sizeof(T));
    }
    template <class Unit>
    void text(std::basic_string<Unit>& text, std::uint32_t bound) {
        text_of(*this, text, bound);
    }
    /// Separate from the code that reads the message, and static, so that it has an address (`fetch_when_woken`).
    template <class Unit>
    [[gnu::noinline]] static void text_of(Read& self, std::basic_string<Unit>& text, std::uint32_t bound) {
        std::uint32_t n = 0;
        if (!self.count(n, bound)) return;
        if (n > (self.len - self.at) / sizeof(Unit)) return self.truncated();
        if constexpr (sizeof(Unit) == 1) {
            // Short strings are constructed here, without a call into the standard library, whose code is not in the
            // caches.
            text = std::basic_string<Unit>(reinterpret_cast<const Unit*>(self.places.control.data + self.at), n);
            self.at += n;
        } else {
            text.resize(n);
            self.take(text.data(), n * sizeof(Unit));
        }
    }
    template <class T>
    void list(std::vector<T>& list, std::uint32_t bound) {
        std::uint32_t n = 0;
        if (!count(n, bound)) return;
        list.clear();
        for (std::uint32_t i = 0; i < n && !failed(); i++) {
            auto before = at;
            list.emplace_back();
            this->each(list.back());
            if (at == before && ++empties > MAX_EMPTY) fault("too many elements without content");
        }
    }
    template <class T>
    void bulk(Bulk<T>& bulk, std::uint32_t bound) {
        std::uint32_t n = 0;
        const std::uint8_t* part = nullptr;
        if (!bulk_count(n, part, sizeof(T), bound)) return;
        if (part != nullptr) return BulkAccess::view(bulk, part, n);
        // No element is shorter than a byte, so the allocation is proportional to the received bytes.
        if (n > len - at) return truncated();
        T* element = BulkAccess::own(bulk, n);
        for (std::uint32_t i = 0; i < n; i++) this->each(element[i]);
    }
    /// Reads a list: `resize` sets its length, and `each` reads its elements, of at least `least` bytes each.
    template <class Resize, class Each>
    void list_of(std::size_t least, std::uint32_t bound, Resize resize, Each each) {
        std::uint32_t n = 0;
        if (!count(n, bound)) return;
        if (least == 0 ? (empties += n) > MAX_EMPTY : n > (len - at) / least) return truncated();
        if (resize(n)) each(n);
        else fault("no memory for " + std::to_string(n) + " elements");
    }
    /// Like `list_of`, for elements of `stride` bytes with the layout of a data part. `resize` makes room for them, and
    /// may take them from the part. `each` reads them there, or one by one if the part is null.
    template <class Resize, class Each>
    void bulk_of(std::size_t least, std::size_t stride, std::uint32_t bound, Resize resize, Each each) {
        std::uint32_t n = 0;
        const std::uint8_t* part = nullptr;
        if (!bulk_count(n, part, stride, bound)) return;
        if (part == nullptr && n > (len - at) / least) return truncated();
        if (!resize(n, part)) return fault("no memory for " + std::to_string(n) + " elements");
        each(n, part);
    }
    void finish() {
        if (!failed() && at != len) too_long();
        if (!failed() && next != places.count) fault("there are more data parts than bulk fields");
    }

private:
    void take(void* to, std::size_t n) {
        if (n > len - at) return truncated();
        if (n > 0) std::memcpy(to, places.control.data + at, n);
        at += n;
    }
    /// Reads the count word of a bulk field, and returns its data part, or null if its elements follow.
    [[gnu::always_inline]] bool bulk_count(std::uint32_t& n, const std::uint8_t*& part, std::size_t stride, std::uint32_t bound) {
        word(n);
        bool lifted = (n & LIFTED) != 0;
        n &= MAX_COUNT;
        if (failed() || !bounded(n, bound)) return false;
        if (!lifted) return true;
        if (next >= places.count || places.parts[next].len != n * stride) {
            fault("the length of its data part does not match its count");
            return false;
        }
        part = places.parts[next++].data;
        return true;
    }
    bool bounded(std::uint32_t n, std::uint32_t bound) {
        if (n > bound) too_many(n, bound);
        return n <= bound;
    }
    bool count(std::uint32_t& n, std::uint32_t bound) {
        word(n);
        if (failed()) return false;
        if (n > MAX_COUNT) fault("the count is flagged or too large");
        return n <= MAX_COUNT && bounded(n, bound);
    }
    [[gnu::cold, gnu::noinline]] void too_long() { fault(std::to_string(len - at) + " bytes follow the last field"); }
    [[gnu::cold, gnu::noinline]] void truncated() { fault("the message ends at byte " + std::to_string(len)); }
};

}  // namespace detail
}  // namespace ropewalk
