// Functions that LLVM, which compiles the library, expects in ThreadSanitizer's runtime, and that GCC's runtime does
// not have under these names. Its own versions of these functions also look for races.
#include <cstring>

extern "C" {
void* __tsan_memcpy(void* to, const void* from, std::size_t len) { return std::memcpy(to, from, len); }
void* __tsan_memmove(void* to, const void* from, std::size_t len) { return std::memmove(to, from, len); }
void* __tsan_memset(void* to, int byte, std::size_t len) { return std::memset(to, byte, len); }
}
