// RouDi, the iceoryx daemon that Cyclone DDS needs for shared memory. The first process of a cell starts a
// supervising process with RouDi as its child; the supervisor ends both when no process of the cell runs any
// more.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "peer.hpp"

namespace roudi {

inline int open_lock(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) peer::fail_errno(path.c_str());
    return fd;
}

// Locks the file that currently has this name: the supervisor removes it when it ends.
inline int lock_current(const std::string& path, int kind) {
    for (;;) {
        const int fd = open_lock(path);
        struct stat ours, named;
        if (flock(fd, kind)) peer::fail_errno(path.c_str());
        if (!fstat(fd, &ours) && !stat(path.c_str(), &named) && ours.st_ino == named.st_ino) return fd;
        close(fd);
    }
}

// Pools for this cell's messages: queues of 16, the messages that the writer holds, and some spare.
inline void write_configuration(const std::string& path, uint64_t size) {
    FILE* file = fopen(path.c_str(), "w");
    if (!file) peer::fail_errno(path.c_str());
    fprintf(file, "# payload %llu\n[general]\nversion = 1\n[[segment]]\n[[segment.mempool]]\nsize = 1024\ncount = 64\n[[segment.mempool]]\nsize = %llu\ncount = 40\n",
            static_cast<unsigned long long>(size), static_cast<unsigned long long>((size + 4096 + 1023) / 1024 * 1024));
    fclose(file);
}

[[noreturn]] inline void keep(const std::string& users, const std::string& configuration, int started) {
    setsid();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 2);
    int output[2];
    if (pipe2(output, O_CLOEXEC)) _exit(1);
    const pid_t owner = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != owner) _exit(1);
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        dup2(output[1], 1);
        execlp("iox-roudi", "iox-roudi", "-m", "off", "-l", "warning", "-c", configuration.c_str(), nullptr);
        _exit(127);
    }
    dup2(null, 1);
    close(output[1]);
    // RouDi prints "RouDi is ready for clients" when it is.
    std::string said;
    char bytes[256];
    bool reported = false;
    for (ssize_t n; !reported && (n = read(output[0], bytes, sizeof bytes)) > 0;) {
        said.append(bytes, static_cast<size_t>(n));
        reported = said.find("ready for clients") != std::string::npos;
    }
    if (reported && write(started, "r", 1) != 1) reported = false;
    close(started);
    // The pipe stays open for further output of RouDi; the pipe's capacity suffices at log level
    // `warning`.
    if (reported) flock(open_lock(users), LOCK_EX);  // granted once no process holds it any more, however they ended
    kill(child, SIGTERM);
    waitpid(child, nullptr, 0);
    unlink(configuration.c_str());
    unlink(users.c_str());
    _exit(0);
}

// The files belong to the host, as RouDi does, and not to the cell.
inline std::string host_path(const char* suffix) { return "/tmp/ropewalk-roudi-" + std::to_string(getuid()) + suffix; }

// Returns the payload size for which the running RouDi is configured; 0 if none runs.
inline unsigned long long running_size(const std::string& configuration) {
    unsigned long long size = 0;
    FILE* file = fopen(configuration.c_str(), "r");
    if (!file) return 0;
    if (fscanf(file, "# payload %llu", &size) != 1) size = 0;
    fclose(file);
    return size;
}

// Keeps RouDi running until this process ends. Call it before any other thread is started.
inline void use(const peer::Options& o) {
    const std::string users = host_path(".users"), starting = host_path(".starting"), configuration = host_path(".toml");
    const int start = lock_current(starting, LOCK_EX);
    // Held until the process ends. A RouDi that is ending releases it when it is gone.
    int held = lock_current(users, LOCK_SH);
    for (int tries = 0;; ++tries) {
        const unsigned long long size = running_size(configuration);
        if (size == 0 || size == o.size) break;
        if (tries == 300) peer::fail(1, "cyclonedds: a cell with payloads of %llu bytes still runs on this host: end it first", size);
        close(held);  // otherwise the supervisor of the last cell, with pools of another size, would stay
        usleep(50000);
        held = lock_current(users, LOCK_SH);
    }
    if (access(configuration.c_str(), F_OK)) {
        write_configuration(configuration, o.size);
        int started[2];
        if (pipe2(started, O_CLOEXEC)) peer::fail_errno("pipe");
        const pid_t first = fork();
        if (first < 0) peer::fail_errno("fork");
        if (first == 0) {
            close(held);
            close(start);
            close(started[0]);
            if (fork()) _exit(0);
            keep(users, configuration, started[1]);
        }
        close(started[1]);
        waitpid(first, nullptr, 0);
        char byte;
        const bool runs = read(started[0], &byte, 1) == 1;
        close(started[0]);
        if (!runs) peer::fail(1, "cyclonedds: iox-roudi does not start: install Debian's package iceoryx, and end any RouDi that runs");
    }
    unlink(starting.c_str());
    close(start);
}

}  // namespace roudi
