//! The system calls that no safe wrapper covers. The only unsafe code of this crate.
#![allow(unsafe_code)]

use rustix::fs::{Mode, OFlags};
use rustix::io;
use rustix::process::Signal;
use rustix::thread::UnshareFlags;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The device that creates TAP devices.
pub(crate) const TUN: &str = "/dev/net/tun";
/// Longest name of a network device (IFNAMSIZ without the terminating zero).
pub(crate) const MAX_DEVICE_NAME: usize = 15;

/// Moves the calling thread into new namespaces; other threads stay where they are.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    assert!(!flags.contains(UnshareFlags::FILES), "descriptors stay shared");
    // SAFETY: only a new descriptor table (FILES) could make another thread's descriptors unknown here, and
    // that is excluded above; namespaces change no memory.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Creates a TAP device in the calling thread's network namespace: whole Ethernet frames, non-blocking. It exists as
/// long as the descriptor.
pub(crate) fn tap(name: &str) -> io::Result<OwnedFd> {
    /// `struct ifreq` with the member `ifr_flags`.
    #[repr(C)]
    struct IfReq {
        name: [u8; MAX_DEVICE_NAME + 1],
        flags: i16,
        rest: [u8; 22],
    }
    const TUNSETIFF: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<i32>(b'T', 202);
    const IFF_TAP: i16 = 0x0002;
    const IFF_NO_PI: i16 = 0x1000;

    let mut request = IfReq {
        name: [0; MAX_DEVICE_NAME + 1],
        flags: IFF_TAP | IFF_NO_PI,
        rest: [0; 22],
    };
    if name.is_empty() || name.len() > MAX_DEVICE_NAME {
        return Err(io::Errno::NAMETOOLONG);
    }
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let tun = rustix::fs::open(TUN, flags, Mode::empty())?;
    // SAFETY: TUNSETIFF reads and writes one `struct ifreq` of 40 bytes, which `IfReq` is, and the kernel keeps no
    // pointer to it.
    unsafe {
        rustix::ioctl::ioctl(&tun, rustix::ioctl::Updater::<TUNSETIFF, _>::new(&mut request))?;
    }
    Ok(tun)
}

/// Makes the kernel kill the program that `command` starts when the calling thread ends.
pub(crate) fn die_with_parent(command: &mut Command) {
    let set =
        || rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from);
    // SAFETY: between fork and exec the closure makes one system call and nothing else: it takes no lock and
    // allocates nothing.
    unsafe { command.pre_exec(set) };
}
