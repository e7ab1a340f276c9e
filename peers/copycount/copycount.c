// Counts a program's copies. LD_PRELOAD this library with COPYCOUNT_OUT=FILE and COPYCOUNT_MIN=BYTES; at exit, or
// on SIGTERM if the program does not handle it itself, it writes one line of JSON to FILE:
//   user_copies, user_copies_bytes   memcpy, memmove and similar calls of at least COPYCOUNT_MIN bytes each
//   kernel_in_bytes                  bytes copied into the kernel: write, send and similar calls, all of them
//   kernel_out_bytes                 bytes copied out of the kernel: read, recv and similar calls, all of them
// Fills (memset) are not copies. Not counted: copies that the compiler inlined or unrolled, those inside the C
// library itself (stdio), and splice and similar calls, which copy no bytes through the program.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_ullong user_copies, user_copies_bytes, kernel_in_bytes, kernel_out_bytes;
static size_t least = SIZE_MAX;  // nothing is counted before initialization
static atomic_flag written = ATOMIC_FLAG_INIT;

// ---- Copies of the program ----

// The C library's own copy functions are looked up by name at the start, and may be needed before that: the loader
// and dlsym copy.
typedef void *(*copy_function)(void *, const void *, size_t);
static _Atomic(copy_function) real_memmove;

static void *move(void *to, const void *from, size_t n) {
    copy_function real = atomic_load_explicit(&real_memmove, memory_order_acquire);
    if (real) return real(to, from, n);
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t < f)
        for (size_t i = 0; i < n; ++i) ((volatile unsigned char *)t)[i] = f[i];
    else
        for (size_t i = n; i-- > 0;) ((volatile unsigned char *)t)[i] = f[i];
    return to;
}

static void count_copy(size_t n) {
    if (n < least) return;
    atomic_fetch_add_explicit(&user_copies, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&user_copies_bytes, n, memory_order_relaxed);
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    count_copy(n);
    return move(to, from, n);
}

void *memmove(void *to, const void *from, size_t n) {
    count_copy(n);
    return move(to, from, n);
}

void *mempcpy(void *restrict to, const void *restrict from, size_t n) {
    count_copy(n);
    return (char *)move(to, from, n) + n;
}

static void check(size_t n, size_t room) {
    if (n > room) abort();
}

void *__memcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room) {
    check(n, room);
    return memcpy(to, from, n);
}

void *__memmove_chk(void *to, const void *from, size_t n, size_t room) {
    check(n, room);
    return memmove(to, from, n);
}

void *__mempcpy_chk(void *restrict to, const void *restrict from, size_t n, size_t room) {
    check(n, room);
    return mempcpy(to, from, n);
}

void bcopy(const void *from, void *to, size_t n) {
    count_copy(n);
    move(to, from, n);
}

// ---- Copies by the kernel ----

// Looks up the next definition of a function, once.
#define REAL(name)                                                           \
    static _Atomic(__typeof__(&name)) real;                                  \
    __typeof__(&name) call = atomic_load_explicit(&real, memory_order_acquire); \
    if (!call) {                                                             \
        call = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                   \
        atomic_store_explicit(&real, call, memory_order_release);            \
    }

static ssize_t in(ssize_t n) {
    if (n > 0) atomic_fetch_add_explicit(&kernel_in_bytes, (unsigned long long)n, memory_order_relaxed);
    return n;
}

static ssize_t out(ssize_t n) {
    if (n > 0) atomic_fetch_add_explicit(&kernel_out_bytes, (unsigned long long)n, memory_order_relaxed);
    return n;
}

#define COUNTED(direction, name, parameters, arguments) \
    ssize_t name parameters {                           \
        REAL(name)                                      \
        return direction(call arguments);               \
    }

COUNTED(in, write, (int fd, const void *p, size_t n), (fd, p, n))
COUNTED(in, writev, (int fd, const struct iovec *v, int n), (fd, v, n))
COUNTED(in, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
COUNTED(in, pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))
COUNTED(in, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
COUNTED(in, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags))
COUNTED(in, sendto, (int fd, const void *p, size_t n, int flags, const struct sockaddr *to, socklen_t length), (fd, p, n, flags, to, length))
COUNTED(in, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
COUNTED(out, read, (int fd, void *p, size_t n), (fd, p, n))
COUNTED(out, readv, (int fd, const struct iovec *v, int n), (fd, v, n))
COUNTED(out, pread, (int fd, void *p, size_t n, off_t at), (fd, p, n, at))
COUNTED(out, pread64, (int fd, void *p, size_t n, off64_t at), (fd, p, n, at))
COUNTED(out, preadv, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
COUNTED(out, recv, (int fd, void *p, size_t n, int flags), (fd, p, n, flags))
COUNTED(out, recvfrom, (int fd, void *restrict p, size_t n, int flags, struct sockaddr *restrict from, socklen_t *restrict length), (fd, p, n, flags, from, length))
COUNTED(out, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
COUNTED(in, process_vm_writev, (pid_t pid, const struct iovec *l, unsigned long ln, const struct iovec *r, unsigned long rn, unsigned long flags), (pid, l, ln, r, rn, flags))
COUNTED(out, process_vm_readv, (pid_t pid, const struct iovec *l, unsigned long ln, const struct iovec *r, unsigned long rn, unsigned long flags), (pid, l, ln, r, rn, flags))

// Functions that a program compiled with _FORTIFY_SOURCE calls.
#define COUNTED_CHECKED(name, parameters, arguments, n, room) \
    ssize_t __##name##_chk parameters {                       \
        check(n, room);                                       \
        return name arguments;                                \
    }

COUNTED_CHECKED(read, (int fd, void *p, size_t n, size_t room), (fd, p, n), n, room)
COUNTED_CHECKED(recv, (int fd, void *p, size_t n, size_t room, int flags), (fd, p, n, flags), n, room)
COUNTED_CHECKED(recvfrom, (int fd, void *p, size_t n, size_t room, int flags, struct sockaddr *from, socklen_t *length), (fd, p, n, flags, from, length), n, room)

static unsigned long long total(const struct mmsghdr *m, int n) {
    unsigned long long sum = 0;
    for (int i = 0; i < n; ++i) sum += m[i].msg_len;
    return sum;
}

int sendmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags) {
    REAL(sendmmsg)
    const int sent = call(fd, m, n, flags);
    if (sent > 0) in((ssize_t)total(m, sent));
    return sent;
}

int recvmmsg(int fd, struct mmsghdr *m, unsigned int n, int flags, struct timespec *timeout) {
    REAL(recvmmsg)
    const int received = call(fd, m, n, flags, timeout);
    if (received > 0) out((ssize_t)total(m, received));
    return received;
}

// ---- The result ----

static void append(char *text, size_t *at, const char *key, unsigned long long value) {
    while (*key) text[(*at)++] = *key++;
    char digits[24];
    int n = 0;
    do digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n) text[(*at)++] = digits[--n];
}

// Uses only calls that are allowed in a signal handler, and that are not counted.
static void result(void) {
    const char *path = getenv("COPYCOUNT_OUT");
    if (!path || atomic_flag_test_and_set(&written)) return;
    char text[256];
    size_t at = 0;
    append(text, &at, "{\"user_copies_bytes\": ", user_copies_bytes);
    append(text, &at, ", \"user_copies\": ", user_copies);
    append(text, &at, ", \"kernel_in_bytes\": ", kernel_in_bytes);
    append(text, &at, ", \"kernel_out_bytes\": ", kernel_out_bytes);
    text[at++] = '}';
    text[at++] = '\n';
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        static const char complaint[] = "copycount: cannot write the file of COPYCOUNT_OUT\n";
        syscall(SYS_write, STDERR_FILENO, complaint, sizeof complaint - 1);
        return;
    }
    syscall(SYS_write, fd, text, at);
    close(fd);
}

static void on_term(int number) {
    result();
    signal(number, SIG_DFL);
    raise(number);
}

__attribute__((constructor)) static void start(void) {
    atomic_store_explicit(&real_memmove, (copy_function)dlsym(RTLD_NEXT, "memmove"), memory_order_release);
    const char *text = getenv("COPYCOUNT_MIN");
    least = text ? strtoull(text, NULL, 10) : 1;
    if (!getenv("COPYCOUNT_OUT")) return;
    unsetenv("LD_PRELOAD");  // a child would overwrite the result
    struct sigaction old;
    if (!sigaction(SIGTERM, NULL, &old) && old.sa_handler == SIG_DFL) signal(SIGTERM, on_term);
}

__attribute__((destructor)) static void finish(void) { result(); }

// A program that ends by _exit runs no destructors.
__attribute__((noreturn)) void _exit(int code) {
    result();
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}
