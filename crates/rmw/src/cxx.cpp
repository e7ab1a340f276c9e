// What only C++ can do with the messages of a C++ node: read and write std::string, fill std::vector, and stop
// exceptions of generated functions from unwinding into Rust, which would end the process. Built with the C++ library
// of the type supports (libstdc++), since both sides use the same std::string.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

template<class T>
bool assign(void * vector, const void * data, std::size_t count)
{
  const T * first = static_cast<const T *>(data);
  static_cast<std::vector<T> *>(vector)->assign(first, first + count);
  return true;
}

}  // namespace

extern "C" {

// The walker uses these sizes to step through arrays of strings.
extern const std::size_t ropewalk_cxx_string_size = sizeof(std::string);
extern const std::size_t ropewalk_cxx_u16string_size = sizeof(std::u16string);

const char * ropewalk_cxx_string(const void * string, std::size_t * size) noexcept
{
  const auto & s = *static_cast<const std::string *>(string);
  *size = s.size();
  return s.data();
}

const char16_t * ropewalk_cxx_u16string(const void * string, std::size_t * size) noexcept
{
  const auto & s = *static_cast<const std::u16string *>(string);
  *size = s.size();
  return s.data();
}

bool ropewalk_cxx_set_string(void * string, const char * data, std::size_t size) noexcept
{
  try {
    static_cast<std::string *>(string)->assign(data, size);
    return true;
  } catch (...) {
    return false;
  }
}

// `data` points to `size` units of two bytes that need no alignment.
bool ropewalk_cxx_set_u16string(void * string, const unsigned char * data, std::size_t size) noexcept
{
  try {
    auto & s = *static_cast<std::u16string *>(string);
    s.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      s[i] = static_cast<char16_t>(data[2 * i] | data[2 * i + 1] << 8);
    }
    return true;
  } catch (...) {
    return false;
  }
}

// For an unbounded vector of numbers: writes each element once, unlike a resize and a copy. Types are those of
// rosidl_typesupport_introspection_c/field_types.h; `data` must be aligned for them.
bool ropewalk_cxx_assign(std::uint8_t type, void * vector, const void * data, std::size_t count) noexcept
{
  try {
    switch (type) {
      case 1: return assign<float>(vector, data, count);
      case 2: return assign<double>(vector, data, count);
      case 4:
      case 7:
      case 8: return assign<std::uint8_t>(vector, data, count);
      case 9: return assign<std::int8_t>(vector, data, count);
      case 10: return assign<std::uint16_t>(vector, data, count);
      case 11: return assign<std::int16_t>(vector, data, count);
      case 12: return assign<std::uint32_t>(vector, data, count);
      case 13: return assign<std::int32_t>(vector, data, count);
      case 14: return assign<std::uint64_t>(vector, data, count);
      case 15: return assign<std::int64_t>(vector, data, count);
      default: return false;
    }
  } catch (...) {
    return false;
  }
}

bool ropewalk_cxx_resize(void (* resize)(void *, std::size_t), void * member, std::size_t count) noexcept
{
  try {
    resize(member, count);
    return true;
  } catch (...) {
    return false;
  }
}

bool ropewalk_cxx_init(void (* init)(void *, int), void * message) noexcept
{
  try {
    init(message, 0);
    return true;
  } catch (...) {
    return false;
  }
}

const void * ropewalk_cxx_handle(
  const void * (* find)(const void *, const char *), const void * handle, const char * identifier) noexcept
{
  try {
    return find(handle, identifier);
  } catch (...) {
    return nullptr;
  }
}

}  // extern "C"
