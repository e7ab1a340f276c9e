/* Preloaded (LD_PRELOAD): this process's clocks run at another rate and miss the time of a suspend.
 *
 * Programs read clocks through the vDSO, with or without libc, so its function is replaced there. The mapping is private and
 * the kernel allows writing to it (debuggers set breakpoints in it). The file CLOCK_FILE holds `struct clocks`, which the
 * test may change at any time. */
#define _GNU_SOURCE
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct clocks {
    int64_t parts_per_billion; /* by how much they are fast */
    int64_t suspended_ns;      /* what CLOCK_MONOTONIC did not count */
    int64_t since_ns;          /* of the true CLOCK_MONOTONIC: since when they are fast */
};
static const volatile struct clocks *clocks;
/* From the true CLOCK_MONOTONIC to CLOCK_REALTIME. */
static int64_t offset;

static int64_t now_of(int id) {
    struct timespec t;
    syscall(SYS_clock_gettime, id, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int gettime(clockid_t id, struct timespec *out) {
    int64_t t;
    if (id != CLOCK_MONOTONIC && id != CLOCK_REALTIME)
        return (int)syscall(SYS_clock_gettime, id, out);
    t = now_of(id);
    t += (int64_t)((double)(t - clocks->since_ns - (id == CLOCK_REALTIME ? offset : 0)) * 1e-9 * (double)clocks->parts_per_billion);
    if (id == CLOCK_MONOTONIC)
        t -= clocks->suspended_ns;
    out->tv_sec = t / 1000000000LL;
    out->tv_nsec = t % 1000000000LL;
    return 0;
}

static void fail(const char *what) {
    perror(what);
    _exit(70);
}

static uint8_t *vdso_function(const char *const *names) {
    uint8_t *base = (uint8_t *)getauxval(AT_SYSINFO_EHDR);
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *part = (const Elf64_Phdr *)(base + head->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    const Elf64_Sym *symbols = NULL;
    const char *strings = NULL;
    const uint32_t *hash = NULL;
    for (int i = 0; i < head->e_phnum; i++)
        if (part[i].p_type == PT_DYNAMIC)
            dynamic = (const Elf64_Dyn *)(base + part[i].p_offset);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        const uint8_t *at = base + dynamic->d_un.d_ptr;
        if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym *)at;
        if (dynamic->d_tag == DT_STRTAB) strings = (const char *)at;
        if (dynamic->d_tag == DT_HASH) hash = (const uint32_t *)at;
    }
    /* Newer kernels have only the GNU hash; the symbols stand right before their names. */
    uint32_t count = hash ? hash[1] : (uint32_t)(((const uint8_t *)strings - (const uint8_t *)symbols) / sizeof *symbols);
    for (uint32_t i = 0; i < count; i++)
        for (const char *const *name = names; *name; name++)
            if (symbols[i].st_shndx != SHN_UNDEF && !strcmp(strings + symbols[i].st_name, *name))
                return base + symbols[i].st_value;
    return NULL;
}

__attribute__((constructor)) static void begin(void) {
    static const char *const names[] = {"__vdso_clock_gettime", "__kernel_clock_gettime", NULL};
    const char *path = getenv("CLOCK_FILE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) fail("CLOCK_FILE");
    clocks = mmap(NULL, sizeof *clocks, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (clocks == MAP_FAILED) fail("mapping CLOCK_FILE");
    offset = now_of(CLOCK_REALTIME) - now_of(CLOCK_MONOTONIC);
    uint8_t *at = vdso_function(names);
    if (!at) fail("finding the clock in the vDSO");
#if defined(__x86_64__)
    /* movabs $gettime, %rax; jmp *%rax */
    uint8_t jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
    void *to = (void *)gettime;
    memcpy(jump + 2, &to, 8);
#elif defined(__aarch64__)
    /* ldr x16, .+8; br x16; .quad gettime */
    uint8_t jump[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1f, 0xd6};
    void *to = (void *)gettime;
    memcpy(jump + 8, &to, 8);
#else
#error "no jump for this processor"
#endif
    uintptr_t page = (uintptr_t)at & ~4095UL;
    if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) && mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
        fail("writing to the vDSO");
    memcpy(at, jump, sizeof jump);
    __builtin___clear_cache((char *)at, (char *)at + sizeof jump);
}
