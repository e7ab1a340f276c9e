//! One host of a lab: its namespaces, its devices, and its view of the others.

use super::folder;
use super::plan::Plan;
use crate::sys;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};

/// The namespaces of one host, in the order in which a program enters them.
pub(crate) struct Namespaces {
    pub(crate) ipc: OwnedFd,
    pub(crate) uts: OwnedFd,
    pub(crate) net: OwnedFd,
    pub(crate) mount: OwnedFd,
}

/// The step that failed, and the system's error.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Adds the failed step to an error.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failed>;
}

impl<T, E: fmt::Display> Doing<T> for Result<T, E> {
    fn doing(self, what: impl fmt::Display) -> Result<T, Failed> {
        self.map_err(|e| Failed(format!("{what}: {e}")))
    }
}

/// The emulator's own namespaces, to return to.
pub(crate) struct Base {
    mount: OwnedFd,
    net: OwnedFd,
}

impl Base {
    /// Prepares the emulator's own mount namespace: its mounts stay in it, and `/proc` shows the lab's processes.
    pub(crate) fn prepare() -> Result<Base, Failed> {
        // Not private: a lab must not keep a mount alive that the system unmounts later.
        let slave = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        rustix::mount::mount_change("/", slave).doing(
            "separating the lab's mounts (without root on Ubuntu: `sysctl -w \
             kernel.apparmor_restrict_unprivileged_userns=0`)",
        )?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount("proc", "/proc", "proc", flags, None)
            .doing("mounting /proc for the lab (in a container without rights start it with --privileged)")?;
        Ok(Base {
            mount: own_namespace("mnt")?,
            net: own_namespace("net")?,
        })
    }

    /// Returns from a host.
    pub(crate) fn enter(&self) -> Result<(), Failed> {
        enter(&self.mount, LinkNameSpaceType::Mount)?;
        enter(&self.net, LinkNameSpaceType::Network)
    }
}

/// Moves the calling thread into a namespace.
pub(crate) fn enter(namespace: impl AsFd, kind: LinkNameSpaceType) -> Result<(), Failed> {
    move_into_link_name_space(namespace.as_fd(), Some(kind)).doing("entering a namespace")
}

/// Creates host `host` of the plan, with the devices of its interfaces, in that order. The calling thread, which must
/// be the only one of the process, stays inside.
pub(crate) fn make(
    base: &Base,
    plan: &Plan,
    host: usize,
    folder: &Path,
) -> Result<(Namespaces, Vec<OwnedFd>), Failed> {
    base.enter()?;
    sys::unshare(UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWUTS | UnshareFlags::NEWIPC)
        .doing("making a host's namespaces")?;
    let name = &plan.hosts[host];
    rustix::system::sethostname(name.as_bytes()).doing("naming the host")?;
    let names = Path::new("/etc/hosts");
    if names.exists() {
        rustix::mount::mount_bind(folder.join(folder::HOSTS), names).doing("replacing /etc/hosts")?;
    } else if host == 0 {
        tracing::warn!(
            "there is no /etc/hosts: hosts of the lab are not found by name; `touch /etc/hosts` fixes that"
        );
    }
    // Two emulated hosts must not share POSIX shared memory, which contains the bus's runtime folder.
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    rustix::mount::mount("tmpfs", "/dev/shm", "tmpfs", flags, Some(c"mode=1777"))
        .doing("mounting /dev/shm")?;

    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        // A relay forwards packets through the device they came from; redirects must not report that as a detour.
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/ip_forward", if plan.relays[host] { "1" } else { "0" }),
    ] {
        let path = Path::new("/proc/sys/net").join(setting);
        match std::fs::write(&path, value) {
            // A kernel without IPv6 has nothing to switch off.
            Err(e) if e.kind() == io::ErrorKind::NotFound && setting.starts_with("ipv6") => {}
            other => other.doing(format_args!("writing {}", path.display()))?,
        }
    }
    prefer(&plan.congestion_control)?;
    let taps = plan.of_host[host]
        .iter()
        .map(|i| sys::tap(&plan.interfaces[*i].device).doing("making a TAP device"))
        .collect::<Result<Vec<_>, Failed>>()?;
    configure(&plan.ip_batch(host))?;
    let namespaces = Namespaces {
        ipc: own_namespace("ipc")?,
        uts: own_namespace("uts")?,
        net: own_namespace("net")?,
        mount: own_namespace("mnt")?,
    };
    Ok((namespaces, taps))
}

/// Makes `name` the default congestion control of this network namespace, for routes that name none.
fn prefer(name: &str) -> Result<(), Failed> {
    let folder = Path::new("/proc/sys/net/ipv4");
    match std::fs::write(folder.join("tcp_congestion_control"), name) {
        Ok(()) => Ok(()),
        // The machine allows namespaces only others (tcp_allowed_congestion_control). The routes name it all the same.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let has = std::fs::read_to_string(folder.join("tcp_available_congestion_control"));
            Err(Failed(format!(
                "this kernel has no TCP congestion control '{name}' (it has {}): `sudo modprobe tcp_{name}`, or choose \
                 another with `lab up --congestion-control` or the scenario's `congestion_control`",
                has.unwrap_or_default()
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(", ")
            )))
        }
        Err(e) => Err(e).doing("setting TCP's congestion control"),
    }
}

fn own_namespace(kind: &str) -> Result<OwnedFd, Failed> {
    let path = format!("/proc/thread-self/ns/{kind}");
    rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .doing(format_args!("opening {path}"))
}

/// Sets addresses, neighbours and routes of the caller's namespace.
fn configure(batch: &str) -> Result<(), Failed> {
    let mut ip = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .doing("starting `ip` (install iproute2)")?;
    let mut stdin = ip.stdin.take().expect("is piped");
    let written = stdin.write_all(batch.as_bytes());
    drop(stdin);
    let output = ip.wait_with_output().doing("waiting for `ip`")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failed(format!("`ip -batch` failed: {}", said.trim())));
    }
    written.doing("writing to `ip`")
}
