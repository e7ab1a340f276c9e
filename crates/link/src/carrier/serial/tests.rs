use super::*;
use crate::carrier::conformance::{Rig, conformance};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

conformance!(conforms, Pair);

const BAUD: u32 = 921_600;

/// Two pseudo-terminals, and a thread that acts as the cable between them.
struct Pair {
    masters: [Arc<OwnedFd>; 2],
    carriers: Vec<SerialCarrier>,
    stop: Arc<AtomicBool>,
    cable: Option<JoinHandle<()>>,
}

pub(crate) fn terminal() -> OwnedFd {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = openpt(flags).expect("a pty");
    grantpt(&master).expect("grants");
    unlockpt(&master).expect("unlocks");
    rustix::io::ioctl_fionbio(&master, true).expect("sets");
    master
}

pub(crate) fn path(master: &OwnedFd) -> PathBuf {
    let name = ptsname(master, Vec::new()).expect("a name");
    PathBuf::from(name.to_str().expect("a path"))
}

/// Moves what `from` has to `to`. Returns false if it has nothing.
pub(crate) fn relay(from: &OwnedFd, to: &OwnedFd, stop: &AtomicBool) -> bool {
    let mut buffer = [0; 512];
    let Ok(n) = rustix::io::read(from, &mut buffer) else {
        return false;
    };
    let mut rest = &buffer[..n];
    while !rest.is_empty() && !stop.load(Ordering::Acquire) {
        match rustix::io::write(to, rest) {
            Ok(n) => rest = &rest[n..],
            Err(_) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
    true
}

impl Rig for Pair {
    type Carrier = SerialCarrier;

    fn new() -> Self {
        let masters = [Arc::new(terminal()), Arc::new(terminal())];
        let carriers = masters
            .iter()
            .map(|m| SerialCarrier::open(&path(m), BAUD).expect("opens"));
        let carriers = carriers.collect();
        let stop = Arc::new(AtomicBool::new(false));
        let cable = std::thread::spawn({
            let (stop, masters) = (stop.clone(), masters.clone());
            move || {
                while !stop.load(Ordering::Acquire) {
                    let moved =
                        relay(&masters[0], &masters[1], &stop) | relay(&masters[1], &masters[0], &stop);
                    if !moved {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                }
            }
        });
        Pair {
            masters,
            carriers,
            stop,
            cable: Some(cable),
        }
    }

    fn carrier(&mut self, which: usize) -> &mut SerialCarrier {
        &mut self.carriers[which]
    }

    fn restart(&mut self) {
        drop(self.carriers.pop());
        let again = SerialCarrier::open(&path(&self.masters[1]), BAUD).expect("opens again");
        self.carriers.push(again);
    }

    fn intrude(&mut self, bytes: &[u8]) {
        // Bytes written to the master come out of the line, as noise would.
        rustix::io::write(&self.masters[0], bytes).expect("writes");
        rustix::io::write(&self.masters[0], &[0]).expect("writes");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(cable) = self.cable.take() {
            let _ = cable.join();
        }
    }
}

#[test]
fn the_line_is_given_one_frame_at_a_time() {
    // Nothing reads at the other end, so that all written bytes stay countable.
    let master = terminal();
    let mut carrier = SerialCarrier::open(&path(&master), 115_200).expect("opens");
    let datagram = vec![9; carrier.max_datagram()];
    assert_eq!(carrier.send(0, 0, &datagram).expect("goes on"), Sent::Taken);
    assert!(!carrier.ready());
    assert_eq!(carrier.send(0, 0, &datagram).expect("goes on"), Sent::NotReady);
    let wait = carrier.service().expect("goes on").expect("busy");
    assert!(
        wait > Duration::from_millis(10) && wait <= Duration::from_millis(25),
        "{wait:?}"
    );
    assert!(carrier.writable().is_none(), "only time helps");
    let held = rustix::io::ioctl_fionread(&master).expect("counts");
    assert!(
        held as usize <= framed(datagram.len()),
        "{held} bytes in the line"
    );
}

#[test]
fn a_line_that_vanishes_is_looked_for() {
    let master = terminal();
    let mut carrier = SerialCarrier::open(&path(&master), BAUD).expect("opens");
    drop(master);
    let mut buffer = [0; 2048];
    assert_eq!(carrier.receive(&mut buffer).expect("goes on"), None);
    assert_eq!(carrier.send(0, 0, b"anyone?").expect("goes on"), Sent::Lost);
    assert!(carrier.service().expect("goes on").is_some());
}

#[test]
fn a_device_that_is_no_tty_is_named() {
    let error = SerialCarrier::open("/dev/null".as_ref(), BAUD)
        .expect_err("no tty")
        .to_string();
    assert!(error.contains("/dev/null") && error.contains("tty"), "{error}");
}
