//! A ROS master for the experiment, for the systems that need one.

use super::error::Error;
use super::group::{Group, how};
use super::programs::{Missing, Ready};
use super::sandbox::Sandbox;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long it may take to answer.
const START: Duration = Duration::from_secs(60);
/// How long it may take to end its own children.
const END: Duration = Duration::from_secs(10);

/// A running `roscore` on a free port. Dropping it ends it.
pub(crate) struct Roscore {
    group: Group,
    address: SocketAddrV4,
}

impl Roscore {
    /// Starts it for this host only, and waits until it answers. `None` if `stopped`.
    pub(crate) fn start(sandbox: &Sandbox, stopped: &dyn Fn() -> bool) -> Result<Option<Roscore>, String> {
        Roscore::start_at(Ipv4Addr::LOCALHOST, sandbox, stopped)
    }

    /// The same, reachable by one of this host's addresses.
    pub(crate) fn start_at(
        address: Ipv4Addr,
        sandbox: &Sandbox,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Roscore>, String> {
        let port = free_port(address).map_err(|e| format!("no free port: {e}"))?;
        let address = SocketAddrV4::new(address, port);
        // The shell ends roscore when its input ends, so that nothing stays behind even if this process is killed.
        let script =
            "roscore -p \"$1\" >/dev/null 2>&1 & core=$!; cat >/dev/null; kill \"$core\"; wait \"$core\"";
        let mut command = Command::new("sh");
        command.args([
            "-c",
            &format!("command -v roscore >/dev/null || exit 127; {script}"),
            "sh",
        ]);
        command.arg(port.to_string());
        sandbox.prepare(&mut command);
        command
            .env("ROS_MASTER_URI", uri(address))
            .env("ROS_IP", address.ip().to_string());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let group = Group::start(&mut command).map_err(|e| format!("cannot start sh: {e}"))?;
        let mut roscore = Roscore { group, address };
        let deadline = Instant::now() + START;
        while TcpStream::connect_timeout(&address.into(), Duration::from_millis(100)).is_err() {
            if let Ok(Some(status)) = roscore.group.try_wait() {
                return Err(match status.code() {
                    Some(127) => "roscore is not installed: on Debian install python3-roslaunch".into(),
                    _ => format!("roscore {}", how(status)),
                });
            }
            if stopped() {
                return Ok(None);
            }
            if Instant::now() > deadline {
                return Err(format!("roscore does not answer on port {port} within {START:?}"));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Some(roscore))
    }

    /// Sets the address of the master for a node.
    pub(crate) fn prepare(&self, command: &mut Command) {
        command.env("ROS_MASTER_URI", uri(self.address));
    }

    /// Returns the port on which it listens.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for Roscore {
    fn drop(&mut self) {
        self.group.child().stdin = None;
        let _ = self.group.wait(END);
    }
}

fn uri(address: SocketAddrV4) -> String {
    format!("http://{address}")
}

/// Starts a master if any of `systems` needs one, and returns the systems that can be measured; the others go to
/// `missing`.
pub(crate) fn start_for(
    systems: Vec<Ready>,
    missing: &mut Vec<Missing>,
    sandbox: &Sandbox,
    stopped: &dyn Fn() -> bool,
) -> Result<(Option<Roscore>, Vec<Ready>), Error> {
    if !systems.iter().any(|s| s.system.needs_roscore()) {
        return Ok((None, systems));
    }
    match Roscore::start(sandbox, stopped) {
        Ok(Some(roscore)) => Ok((Some(roscore), systems)),
        Ok(None) => Err(Error::Stopped),
        Err(why) => {
            let (without, rest): (Vec<Ready>, Vec<Ready>) =
                systems.into_iter().partition(|s| s.system.needs_roscore());
            missing.extend(without.iter().map(|s| Missing {
                system: s.system,
                why: why.clone(),
            }));
            Ok((None, rest))
        }
    }
}

/// Returns a port that is currently free.
fn free_port(address: Ipv4Addr) -> std::io::Result<u16> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?.port())
}
