//! Single keys from the terminal.

use rustix::event::{PollFd, PollFlags};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr,
};
use std::io::{self, IsTerminal, Stdin, stdin};

/// The terminal on standard input in a mode that delivers single keys without echo, until this is dropped.
pub(super) struct Keys {
    terminal: Stdin,
    before: Termios,
}

impl Keys {
    /// `None` if standard input is no terminal, or a terminal with another program in the foreground: changing its
    /// settings would stop this process.
    pub(super) fn open() -> Option<Self> {
        let terminal = stdin();
        if !terminal.is_terminal() || tcgetpgrp(&terminal).ok()? != rustix::process::getpgrp() {
            return None;
        }
        let before = tcgetattr(&terminal).ok()?;
        let mut settings = before.clone();
        // Ctrl-C and Ctrl-Z remain signals.
        settings.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        settings.special_codes[SpecialCodeIndex::VMIN] = 0;
        settings.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Now, &settings).ok()?;
        Some(Keys { terminal, before })
    }

    /// File descriptor to poll.
    pub(super) fn poll(&self) -> PollFd<'_> {
        PollFd::new(&self.terminal, PollFlags::IN)
    }

    /// Keys pressed since the last call.
    pub(super) fn pressed(&self) -> io::Result<Vec<u8>> {
        let mut keys = [0; 64];
        let n = match rustix::io::read(&self.terminal, &mut keys) {
            Ok(n) => n,
            Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => 0,
            Err(error) => return Err(error.into()),
        };
        Ok(keys[..n].to_vec())
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}
