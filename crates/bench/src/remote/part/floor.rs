//! Bare sockets: a TCP connection with TCP_NODELAY and blocking ends, which no transport between processes beats by
//! much.

use super::{PartError, Plan, say, tell};
use crate::kit::part::Gate;
use crate::link::part::tcp::connect;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// Answers each message of `bytes` with `answer` bytes.
pub(super) fn serve(
    gate: &Gate,
    address: SocketAddr,
    (bytes, answer): (usize, usize),
) -> Result<(), PartError> {
    let listener = TcpListener::bind(address)?;
    say(&"ready")?;
    std::thread::spawn(move || -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let mut data = vec![0; bytes.max(answer)];
        loop {
            stream.read_exact(&mut data[..bytes])?;
            stream.write_all(&data[..answer])?;
        }
    });
    gate.wait_for_stop();
    Ok(())
}

/// Sends messages of `bytes` and waits for answers of `answer`. Prints the round trips in ms.
pub(super) fn call(
    gate: &Gate,
    address: SocketAddr,
    plan: Plan,
    (bytes, answer): (usize, usize),
) -> Result<(), PartError> {
    let Some(mut stream) = connect(gate, address)? else {
        return Ok(());
    };
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    say(&"ready")?;
    if !gate.wait_for_go() {
        return Ok(());
    }
    let mut data = vec![7; bytes.max(answer)];
    let mut took = Vec::with_capacity(plan.count as usize);
    for n in 0..plan.warm_up + plan.count {
        let sent = clock::monotonic();
        stream.write_all(&data[..bytes])?;
        stream.read_exact(&mut data[..answer])?;
        if n >= plan.warm_up {
            took.push(clock::monotonic().since(sent).as_secs_f64() * 1e3);
        }
    }
    tell(gate, &took)
}
