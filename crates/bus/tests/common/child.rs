//! Other processes: this test binary, started again in a role.

use super::LONG;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// The role of this process, if it was started by [`Child::start`], and the runtime folder.
pub fn role() -> Option<(Vec<String>, std::path::PathBuf)> {
    let role = std::env::var("RW_ROLE").ok()?;
    let dir = std::env::var_os("RW_DIR")?.into();
    Some((role.split(' ').map(str::to_owned).collect(), dir))
}

/// Sends `text` to the process that started this one.
pub fn say(text: impl std::fmt::Display) {
    println!("@{text}");
}

/// Waits for the next line from the process that started this one; ends when that process has ended.
pub fn hear() -> String {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
    line.trim().to_owned()
}

/// A process in a role; killed when dropped.
pub struct Child {
    process: std::process::Child,
    lines: Receiver<String>,
}

impl Child {
    /// Starts this binary's test `child_entry`, which must call [`role`].
    pub fn start(role: &str, dir: &Path, env: &[(&str, &str)]) -> Child {
        Self::launch(Command::new(std::env::current_exe().unwrap()), role, dir, env)
    }

    /// The same in a container: with its own PID and mount namespaces, and its own `/dev/shm` of 64 MiB.
    /// Before it starts, `burnt` pids are used up, so that its pid is not 1 unless `burnt` is 0.
    pub fn start_contained(role: &str, dir: &Path, burnt: u32) -> Child {
        let script = "mount -t tmpfs -o size=64m none /dev/shm || exit 1
            burnt=$1; shift
            [ $burnt = 0 ] && exec \"$@\"
            while [ $burnt -gt 0 ]; do /bin/true; burnt=$((burnt - 1)); done
            \"$@\"; exit $?";
        let mut command = Self::container();
        command
            .args(["sh", "-c", script, "sh", &burnt.to_string()])
            .arg(std::env::current_exe().unwrap());
        Self::launch(command, role, dir, &[])
    }

    /// Runs its further arguments as a command in a container, and kills that when it is itself killed.
    pub fn container() -> Command {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--mount", "--fork", "--kill-child", "--mount-proc", "--"]);
        command
    }

    fn launch(mut command: Command, role: &str, dir: &Path, env: &[(&str, &str)]) -> Child {
        let mut process = command
            .args(["child_entry", "--exact", "--nocapture", "--test-threads=1"])
            .env("RW_ROLE", role)
            .env("RW_DIR", dir)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let (tx, lines) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if let Some((_, text)) = line.split_once('@') {
                    let _ = tx.send(text.to_owned());
                }
            }
        });
        Child { process, lines }
    }

    pub fn pid(&self) -> i32 {
        self.process.id() as i32
    }

    /// Returns the next line that it sends.
    pub fn hear(&self) -> String {
        self.lines.recv_timeout(LONG).expect("the child says nothing")
    }

    /// Whether it has sent `text`, and nothing else before.
    pub fn has_said(&self, text: &str) -> bool {
        self.lines.try_recv().is_ok_and(|line| {
            assert_eq!(line, text);
            true
        })
    }

    /// Returns a line that it has sent, if any.
    pub fn poll(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Returns the next line that it sends, unless it ends first.
    pub fn try_hear(&self) -> Option<String> {
        match self.lines.recv_timeout(LONG) {
            Ok(line) => Some(line),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => None,
            Err(e) => panic!("the child neither speaks nor ends: {e}"),
        }
    }

    pub fn say(&mut self, text: &str) {
        let _ = writeln!(self.process.stdin.as_mut().unwrap(), "{text}");
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Whether a signal has stopped all its threads.
    pub fn is_stopped(&self) -> bool {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let id = WaitId::Pid(Pid::from_raw(self.pid()).unwrap());
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        waitid(id, options).unwrap().is_some()
    }

    pub fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Waits until it ends.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        drop(self.process.stdin.take());
        let mut status = None;
        super::eventually("the child ends", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}
