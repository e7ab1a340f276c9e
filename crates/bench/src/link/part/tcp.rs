//! Messages over a plain TCP connection, with the kernel's defaults.

use super::subscribe::Log;
use super::{Flow, Gate, HEADER, PeerError, STAMPED, say};
use crate::kit::part::LOOK;
use serde_json::json;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Time between `go` and the first message.
const BEFORE: Duration = Duration::from_millis(200);

/// Sends `flow` to the client that connects to `address`.
pub(super) fn send(flow: &Flow, address: SocketAddr) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            Err(e) => return Err(e.into()),
        }
        if gate.stopped() {
            return Ok(());
        }
    };
    stream.set_nonblocking(false)?;
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let start = clock::monotonic() + BEFORE;
    let mut data = vec![0; flow.bytes - HEADER];
    for number in 0..flow.count {
        let due = start + Duration::from_micros(flow.offset_us + number * flow.period_us);
        if !clock::sleep_until(due, clock::SPIN, || gate.stopped())? {
            break;
        }
        data[8..STAMPED].copy_from_slice(&number.to_le_bytes());
        data[..8].copy_from_slice(&clock::monotonic().as_nanos().to_le_bytes());
        stream.write_all(&data)?;
    }
    say(&json!({ "published": [{ "topic": flow.topic, "sent": flow.count }] }))?;
    gate.wait_for_stop();
    Ok(())
}

/// Logs the arrival of messages of `flow` from `address`.
pub(super) fn receive(flow: &Flow, address: SocketAddr) -> Result<(), PeerError> {
    let gate = Gate::watch()?;
    let Some(mut stream) = connect(&gate, address)? else {
        return Ok(());
    };
    stream.set_read_timeout(Some(LOOK))?;
    say(&"ready")?;
    let mut log = Log::with_capacity(flow.count);
    let mut data = vec![0; flow.bytes - HEADER];
    let mut there = 0;
    while !gate.stopped() {
        match stream.read(&mut data[there..]) {
            Ok(0) => break,
            Ok(n) => there += n,
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e.into()),
        }
        if there == data.len() {
            let kept = log.keep(clock::monotonic(), &data, there);
            kept.ok_or_else(|| PeerError::Type("a message that is not of this run".into()))?;
            there = 0;
        }
    }
    gate.wait_for_stop();
    say(&json!({ "received": [log.json(&flow.topic)] }))
}

/// Connects to a server that may not be running yet; `None` if the run is over before.
pub(crate) fn connect(gate: &Gate, address: SocketAddr) -> std::io::Result<Option<TcpStream>> {
    while !gate.stopped() {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(Some(stream)),
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => std::thread::sleep(LOOK),
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}
