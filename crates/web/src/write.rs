//! Writes the waiting messages of a client to its socket.

use crate::frame::{self, MAX_HEAD, Opcode};
use crate::queue::{Body, Next, Queue};
use std::io::{self, ErrorKind, IoSlice, Write};
use std::time::{Duration, Instant};

/// How often a thread that has nothing to write checks whether the connection ended.
const PATIENCE: Duration = Duration::from_secs(1);
/// Pieces that one system call takes.
const MAX_SLICES: usize = 64;

/// Writes until the queue closes or the client is gone. Blocks while the client reads nothing.
///
/// # Errors
/// What the socket returns, such as the end of its patience.
pub(crate) fn write_all(queue: &Queue, socket: &mut impl Write) -> io::Result<()> {
    loop {
        match queue.next(PATIENCE) {
            Next::Control(opcode, bytes) => {
                write_frame(socket, opcode, &[&bytes])?;
                if opcode == Opcode::Close {
                    return Ok(());
                }
            }
            Next::Topic(body) => {
                let (since, bytes) = write_body(socket, &*body)?;
                if let Some(number) = queue.wrote(since, bytes) {
                    write_frame(socket, Opcode::Ping, &[&number])?;
                }
            }
            Next::Ping(number) => write_frame(socket, Opcode::Ping, &[&number])?,
            Next::Nothing => {}
            Next::Closed => return Ok(()),
        }
    }
}

/// Returns when it began to write, and how many bytes it wrote.
fn write_body(socket: &mut impl Write, body: &dyn Body) -> io::Result<(Instant, usize)> {
    let mut begun = (Instant::now(), 0);
    let written = body.pieces(&mut |pieces| {
        begun = (Instant::now(), pieces.iter().map(|piece| piece.len()).sum());
        write_frame(socket, Opcode::Binary, pieces)
    });
    match written {
        // The publisher's message does not have its type; none of it was sent.
        Err(error) if begun.1 == 0 && error.kind() == ErrorKind::InvalidData => {
            tracing::debug!(%error, "a message was left out");
            Ok(begun)
        }
        written => written.map(|()| begun),
    }
}

fn write_frame(socket: &mut impl Write, opcode: Opcode, pieces: &[&[u8]]) -> io::Result<()> {
    let mut head = [0; MAX_HEAD];
    let len = pieces.iter().map(|piece| piece.len()).sum();
    let size = frame::head(opcode, len, &mut head);
    let mut slices = Vec::with_capacity(pieces.len() + 1);
    slices.push(IoSlice::new(&head[..size]));
    slices.extend(pieces.iter().map(|piece| IoSlice::new(piece)));
    let mut rest = &mut slices[..];
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        let some = rest.len().min(MAX_SLICES);
        match socket.write_vectored(&rest[..some]) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let n = bytes.len().min(3);
            self.0.extend_from_slice(&bytes[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pieces_arrive_whole_however_little_the_socket_takes() {
        let pieces: Vec<Vec<u8>> = (0..200_u8).map(|n| vec![n; usize::from(n % 5)]).collect();
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let mut socket = Slow(Vec::new());
        write_frame(&mut socket, Opcode::Binary, &pieces).unwrap();
        let whole = pieces.concat();
        assert_eq!(
            socket.0[..4],
            [0x82, 126, (whole.len() >> 8) as u8, whole.len() as u8]
        );
        assert_eq!(socket.0[4..], whole);
    }
}
