//! Clients and servers in a domain, with the framing of Fast DDS and of Cyclone DDS.

use super::peer::{Peer, reliable};
use rtps::{EntityId, Guid, Sample, SampleIdentity, VendorId, WriteOptions};
use schema::Service;
use std::time::Duration;

/// How requests and responses are correlated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Framing {
    /// Through inline QoS.
    Fast,
    /// Through 16 bytes in the payload after its encapsulation: the client, and a number.
    Cyclone,
}

impl Framing {
    pub(crate) fn vendor(self) -> VendorId {
        match self {
            Framing::Fast => VendorId::FAST_DDS,
            Framing::Cyclone => VendorId::CYCLONE,
        }
    }
}

pub(crate) struct Client {
    pub(crate) requests: EntityId,
    pub(crate) responses: EntityId,
    framing: Framing,
    mark: [u8; 8],
    asked: i64,
}

impl Client {
    pub(crate) fn new(peer: &Peer, name: &str, service: &Service, framing: Framing) -> Self {
        let responses = peer.subscriber(&format!("rr{name}Reply"), service.response(), reliable());
        let requests = peer.publisher(&format!("rq{name}Request"), service.request(), reliable());
        let mut mark = [0; 8];
        mark[..4].copy_from_slice(&peer.node.guid().prefix.0[8..]);
        mark[4..].copy_from_slice(&requests.0);
        Client {
            requests,
            responses,
            framing,
            mark,
            asked: 0,
        }
    }

    pub(crate) fn connected(&self, peer: &Peer) {
        peer.connected(self.requests, 1);
        peer.connected(self.responses, 1);
    }

    /// Sends a request and returns its number.
    pub(crate) fn ask(&mut self, peer: &Peer, request: &[u8]) -> i64 {
        self.asked += 1;
        let mut options = WriteOptions::default();
        let payload = match self.framing {
            Framing::Fast => {
                options.related = Some(SampleIdentity {
                    writer: Guid::new(peer.node.guid().prefix, self.responses),
                    sequence: SampleIdentity::UNKNOWN,
                });
                request.to_vec()
            }
            Framing::Cyclone => {
                let number = self.asked.to_le_bytes();
                [&request[..4], &self.mark, &number, &request[4..]].concat()
            }
        };
        let sent = peer
            .node
            .write(self.requests, payload, options)
            .expect("a request");
        match self.framing {
            Framing::Fast => sent.sequence,
            Framing::Cyclone => self.asked,
        }
    }

    /// Returns the next response to this client: the number of its request, and the payload.
    pub(crate) fn answer(&self, peer: &Peer, patience: Duration) -> Option<(i64, Vec<u8>)> {
        while let Some(sample) = peer.next_within(self.responses, patience) {
            match self.framing {
                Framing::Fast => {
                    // A response to a client of the other framing has none.
                    let own = Guid::new(peer.node.guid().prefix, self.responses);
                    if let Some(related) = sample.related.filter(|r| r.writer == own) {
                        return Some((related.sequence, sample.payload));
                    }
                }
                Framing::Cyclone if sample.payload.get(4..12) == Some(&self.mark) => {
                    let (number, payload) = unframed(&sample.payload);
                    return Some((number, payload));
                }
                Framing::Cyclone => {}
            }
        }
        None
    }
}

fn unframed(payload: &[u8]) -> (i64, Vec<u8>) {
    let number = payload[12..20].try_into().expect("8 bytes");
    (
        i64::from_le_bytes(number),
        [&payload[..4], &payload[20..]].concat(),
    )
}

pub(crate) struct Server {
    pub(crate) requests: EntityId,
    pub(crate) responses: EntityId,
    framing: Framing,
}

impl Server {
    pub(crate) fn new(peer: &Peer, name: &str, service: &Service, framing: Framing) -> Self {
        Server {
            responses: peer.publisher(&format!("rr{name}Reply"), service.response(), reliable()),
            requests: peer.subscriber(&format!("rq{name}Request"), service.request(), reliable()),
            framing,
        }
    }

    /// Returns the next request, and its payload without a header.
    pub(crate) fn request(&self, peer: &Peer, patience: Duration) -> Option<(Sample, Vec<u8>)> {
        let sample = peer.next_within(self.requests, patience)?;
        let payload = match self.framing {
            Framing::Fast => sample.payload.clone(),
            Framing::Cyclone => unframed(&sample.payload).1,
        };
        Some((sample, payload))
    }

    pub(crate) fn respond(&self, peer: &Peer, to: &Sample, response: &[u8]) {
        let mut options = WriteOptions::default();
        let payload = match self.framing {
            Framing::Fast => {
                options.related = Some(SampleIdentity {
                    writer: to.related.map_or(to.writer, |r| r.writer),
                    sequence: to.sequence,
                });
                response.to_vec()
            }
            Framing::Cyclone => [&response[..4], &to.payload[4..20], &response[4..]].concat(),
        };
        peer.node
            .write(self.responses, payload, options)
            .expect("a response");
    }
}
