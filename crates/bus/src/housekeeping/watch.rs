//! Watches for the end of the processes behind the connections.

use super::{Housekeeping, Source};
use crate::sys::process::death_watch;
use std::os::fd::OwnedFd;

#[derive(Debug)]
pub(super) struct Watch {
    fd: OwnedFd,
    token: u64,
    users: usize,
}

impl Housekeeping {
    /// Watches for the end of the process behind a connection.
    pub(super) fn watch(&mut self, token: u64, pid: i32) {
        if let Some(watch) = self.processes.get_mut(&pid) {
            watch.users += 1;
            return;
        }
        let Some(fd) = death_watch(pid) else { return };
        let watch_token = self.token();
        if self.shared.epoll.add(&fd, watch_token).is_ok() {
            self.sources.insert(watch_token, Source::Process(pid));
            self.processes.insert(
                pid,
                Watch {
                    fd,
                    token: watch_token,
                    users: 1,
                },
            );
        }
        debug_assert!(self.sources.contains_key(&token));
    }

    pub(super) fn unwatch(&mut self, pid: i32) {
        if let Some(watch) = self.processes.get_mut(&pid) {
            watch.users -= 1;
            if watch.users == 0 {
                self.end_watch(pid);
            }
        }
    }

    pub(super) fn end_watch(&mut self, pid: i32) {
        if let Some(watch) = self.processes.remove(&pid) {
            self.sources.remove(&watch.token);
            // A forked child may hold the descriptor too, so closing it here would leave it in the epoll set.
            self.shared.epoll.remove(&watch.fd);
        }
    }
}
