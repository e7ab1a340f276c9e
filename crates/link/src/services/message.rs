//! A request or a reply from the radio, written directly into a block of this host's server or client.

use crate::blocks::{fill, no_memory};
use crate::engine::calls::header::{LEN, inner};
use bus::{Client, Loan, Server};
use proto::Geometry;
use stats::DropReason;
use std::sync::Arc;

/// The client or server that provides the block.
#[derive(Clone, Debug)]
pub(crate) enum Taker {
    /// For requests to a server of this host.
    Client(Arc<Client>),
    /// For replies to callers of this host.
    Server(Arc<Server>),
}

/// A message in reassembly. The header is stored separately, since the block belongs to the next recipient.
#[derive(Debug)]
pub(crate) struct ServiceMessage {
    head: [u8; LEN],
    loan: Loan,
    inner: Geometry,
}

impl ServiceMessage {
    /// Allocates memory for a message of this shape.
    pub(crate) fn new(taker: &Taker, geometry: &Geometry) -> Result<ServiceMessage, DropReason> {
        let inner = inner(geometry).ok_or(DropReason::Malformed)?;
        let parts: Vec<usize> = inner.part_lens().iter().map(|n| *n as usize).collect();
        let control = inner.control_len() as usize;
        let (loan, service) = match taker {
            Taker::Client(c) => (c.loan(control, &parts), c.service()),
            Taker::Server(s) => (s.loan(control, &parts), s.service()),
        };
        Ok(ServiceMessage {
            head: [0; LEN],
            loan: loan.map_err(|e| no_memory(&service.service, e))?,
            inner,
        })
    }

    /// Writes bytes at a flat offset of the complete message.
    pub(crate) fn write(&mut self, offset: u32, bytes: &[u8]) {
        let at = offset as usize;
        let n = LEN.saturating_sub(at).min(bytes.len());
        let (head, rest) = bytes.split_at(n);
        if n > 0 {
            self.head[at..at + n].copy_from_slice(head);
        }
        if !rest.is_empty() {
            fill(&mut self.loan, &self.inner, (at + n - LEN) as u32, rest);
        }
    }

    /// Returns the header and the content of the complete message.
    pub(crate) fn open(self) -> ([u8; LEN], Loan) {
        (self.head, self.loan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_make_the_whole() {
        use crate::engine::calls::header::{CallId, Header, Kind, Outcome};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::Builder::new()
            .prefix("rwl")
            .tempdir()
            .expect("a folder");
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).expect("sets");
        let bus = bus::Bus::open(bus::BusConfig::new(folder.path())).expect("opens");
        let kind = bus::ServiceType {
            service: "/add".into(),
            type_name: "t/Add".into(),
            type_hash: [1; 16],
            flavour: Default::default(),
            definition: "".into(),
        };
        let taker = Taker::Client(Arc::new(bus.client(kind, Default::default()).expect("a client")));
        let header = Header {
            call: CallId { run: 7, number: 9 },
            kind: Kind::Reply(Outcome::Answered),
        };
        let parts = [vec![1u8; 70], vec![], (0..200).collect::<Vec<u8>>()];
        let control: Vec<u8> = (100..150).collect();
        let whole = [&header.encode()[..], &control, &parts.concat()].concat();
        let lens = parts.each_ref().map(|p| p.len() as u32);
        let geometry = Geometry::new((LEN + control.len()) as u32, &lens).expect("a geometry");
        for size in [1, 3, 7, 19, 20, 21, 64, 500] {
            let mut service_message = ServiceMessage::new(&taker, &geometry).expect("a loan");
            let mut pieces: Vec<_> = whole.chunks(size).enumerate().collect();
            // Backwards, but every third one first.
            pieces.sort_by_key(|(i, _)| (i % 3 != 0, usize::MAX - i));
            for (i, piece) in pieces {
                service_message.write((i * size) as u32, piece);
            }
            let (head, mut loan) = service_message.open();
            assert_eq!(Header::parse(&head), Ok(header));
            assert_eq!(loan.control_mut(), control);
            for (i, part) in parts.iter().enumerate() {
                assert_eq!(loan.part_mut(i), part, "{size}: part {i}");
            }
        }
        let service_message = ServiceMessage::new(&taker, &geometry).expect("a loan");
        assert!(
            Header::parse(&service_message.open().0).is_err(),
            "no byte is written"
        );
        let short = Geometry::new(LEN as u32 - 1, &[8]).expect("a geometry");
        assert_eq!(
            ServiceMessage::new(&taker, &short).expect_err("too short"),
            DropReason::Malformed
        );
    }
}
