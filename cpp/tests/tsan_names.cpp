// What LLVM, which compiles the library, calls of ThreadSanitizer's runtime, and GCC's runtime does not have by these
// names: its own versions of these functions look for races, too.
#include <cstring>

extern "C" {
void* __tsan_memcpy(void* to, const void* from, std::size_t len) { return std::memcpy(to, from, len); }
void* __tsan_memmove(void* to, const void* from, std::size_t len) { return std::memmove(to, from, len); }
void* __tsan_memset(void* to, int byte, std::size_t len) { return std::memset(to, byte, len); }
}
