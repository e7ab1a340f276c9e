//! `ropewalk control` at a terminal, which `script` (util-linux) provides.

use crate::support::{Host, eventually};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const WATCHDOG: Duration = Duration::from_secs(120);

/// A command at its own terminal.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    keys: ChildStdin,
    shows: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    pub(crate) fn open(command: &Command) -> Terminal {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<_> = words.map(|w| w.to_string_lossy()).collect();
        let mut script = Command::new("script");
        script.args(["-qec", &words.join(" "), "/dev/null"]);
        script
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        let mut child = script.spawn().expect("`script` of util-linux starts");
        let (send, shows) = channel();
        let mut output = child.stdout.take().expect("piped");
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut buffer) {
                if send.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let keys = child.stdin.take().expect("piped");
        Terminal {
            child,
            keys,
            shows,
            seen: String::new(),
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("writes");
        self.keys.flush().expect("writes");
    }

    /// Waits until `text` is shown, and discards the output up to then.
    pub(crate) fn until(&mut self, text: &str) {
        let end = Instant::now() + WATCHDOG;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.shows.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(e) => panic!("never {text:?}: {e}; shown: {:?}", self.seen),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Ctrl-C ends the program. It may not notice a closed terminal (`nohup`).
        let _ = self.keys.write_all(b"\x03");
        let end = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn tab_completes_and_keys_drive() {
    let host = Host::new();
    let mut robot = Terminal::open(&host.command(&["robot", "sim"]));
    robot.until("rover");
    let mut desk = Terminal::open(&host.command(&["control", "rover", "--wait", "60"]));
    desk.until("> ");
    desk.press("get joi\t");
    desk.until("get joint-state ");
    desk.press("\r");
    desk.until("arm_pan");
    desk.until("> ");
    // Completion lists the words that can follow.
    desk.press("call \t\t");
    desk.until("headlights");
    desk.until("call ");
    desk.press("ho\t\r");
    desk.until("> ");
    desk.press("joystick\r");
    desk.until("drive with arrow keys or WASD");
    for key in ["w", "\x1b[A"] {
        desk.press(key);
        desk.until("0.50 m/s");
        desk.until("executed");
    }
    desk.press("a");
    desk.until("0.80 rad/s");
    desk.press("q");
    desk.until("the last one, which stops the robot: executed");
    desk.until("> ");
    // The end of input.
    desk.press("\x04");
    let child = &mut desk.child;
    let ended = eventually("it ends", || child.try_wait().expect("waits"));
    assert!(ended.success(), "{ended}");
}
