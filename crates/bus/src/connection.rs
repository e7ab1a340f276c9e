//! A connection to a publisher, as its subscriber keeps it.
//!
//! Messages share it: the socket closes with the last view. A hang-up therefore always means that nobody
//! reads the publisher's memory through this connection any more.

use crate::budget::{Copies, Grant, Holder, SEGMENT};
use crate::content::{Content, ContentBox, Unreadable};
use crate::frame::{Frame, MAX_FRAME};
use crate::housekeeping::{Command, Shared};
use crate::losses::Losses;
use crate::ring::{self, Geometry, Taken};
use crate::sys::process::Peer;
use crate::sys::segment::{PeerSegment, RingMemory, UnmappedSegment};
use crate::sys::socket::{Received, Socket};
use crate::topic::{Offer, Ros};
use crate::waitset::Waiter;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection to a publisher.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) publisher: u64,
    /// What the publisher announces about itself.
    pub(crate) offer: Offer,
    /// The ROS version of its messages.
    pub(crate) ros: Ros,
    pub(crate) peer: Peer,
    pub(crate) geometry: Geometry,
    /// The housekeeping thread's token for this connection; 0 while it has none.
    pub(crate) token: AtomicU64,
    ring: RingMemory,
    socket: Socket,
    incoming: Mutex<Incoming>,
    /// Whether the publisher is gone, or must be treated as gone.
    ended: AtomicBool,
    held: AtomicUsize,
    max_held: usize,
    waiter: Arc<Waiter>,
    /// Memory of past messages, kept for reuse.
    spare: Mutex<Vec<ContentBox>>,
    shared: Arc<Shared>,
    grant: Grant,
    copies: Option<Arc<Copies>>,
}

/// A segment of the publisher.
#[derive(Debug)]
struct Segment {
    id: u64,
    map: Map,
    _grant: Grant,
}

#[derive(Debug)]
enum Map {
    Here(Arc<PeerSegment>),
    /// This process had no memory to map it. Mapping is retried with each message.
    Wanting(UnmappedSegment),
    /// While mapping is retried.
    Busy,
}

#[derive(Debug, Default)]
struct Incoming {
    segments: Vec<Segment>,
    /// Unmapped segments that have not been reported to the publisher yet.
    unreported: Vec<u64>,
}

impl Connection {
    #[allow(
        clippy::too_many_arguments,
        reason = "they are all different things, and it is called once"
    )]
    pub(crate) fn new(
        publisher: u64,
        offer: Offer,
        ros: Ros,
        peer: Peer,
        socket: Socket,
        ring: RingMemory,
        geometry: Geometry,
        max_held: usize,
        waiter: Arc<Waiter>,
        shared: Arc<Shared>,
        grant: Grant,
    ) -> Self {
        let copies = shared.budget.copies(grant.holder());
        Connection {
            publisher,
            offer,
            ros,
            peer,
            geometry,
            token: AtomicU64::new(0),
            ring,
            socket,
            incoming: Mutex::default(),
            ended: AtomicBool::new(false),
            held: AtomicUsize::new(0),
            max_held,
            waiter,
            spare: Mutex::default(),
            shared,
            grant,
            copies,
        }
    }

    pub(crate) fn ring(&self) -> &[AtomicU64] {
        self.ring.words()
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The holder that it counts towards.
    pub(crate) fn holder(&self) -> Holder {
        self.grant.holder()
    }

    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn is_at_limit(&self) -> bool {
        self.held.load(Ordering::SeqCst) >= self.max_held
    }

    pub(crate) fn losses(&self) -> Losses {
        Losses::from_counts(ring::losses(self.ring()))
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Receives what the publisher sent. Returns false once the publisher is gone or broke the protocol.
    pub(crate) fn pump(&self) -> bool {
        let mut incoming = self.incoming();
        while !self.has_ended() {
            let mut buffer = [0; MAX_FRAME];
            let (bytes, mut fds) = match self.socket.receive(&mut buffer) {
                Ok(Received::Nothing) => break,
                Ok(Received::Message(n, fds)) => (&buffer[..n], fds),
                Ok(Received::End | Received::Oversized) | Err(_) => {
                    self.set_ended();
                    break;
                }
            };
            let result = match Frame::decode(bytes) {
                Ok(Frame::Segment { id, len }) => match (fds.pop(), fds.is_empty()) {
                    (Some(fd), true) => {
                        let grant = self.shared.budget.take(self.peer, SEGMENT);
                        grant.and_then(|grant| incoming.add(id, len, fd, grant))
                    }
                    _ => Err("a segment needs one descriptor".into()),
                },
                Ok(Frame::Retire { id }) => {
                    crate::hooks::step("retire-received");
                    incoming.segments.retain(|s| s.id != id);
                    incoming.unreported.push(id);
                    Ok(())
                }
                Ok(Frame::Refuse { text, .. }) => Err(stats::text::printable(&text).into_owned()),
                Ok(_) => Err("an unexpected frame".into()),
                Err(e) => Err(e.to_string()),
            };
            if let Err(reason) = result {
                tracing::warn!(
                    pid = self.peer.pid,
                    publisher = self.publisher,
                    reason,
                    "disconnected a publisher"
                );
                self.set_ended();
                self.socket.hang_up();
            }
        }
        while let Some(id) = incoming.unreported.last() {
            let sent = self.socket.send(&Frame::Unmapped { id: *id }.encode(), &[]);
            if sent.is_err() && !self.has_ended() {
                break;
            }
            incoming.unreported.pop();
            crate::hooks::step("unmapped-sent");
        }
        !self.has_ended()
    }

    /// Marks the connection as ended: the publisher's process is gone, although another process still holds
    /// the other end of its socket.
    pub(crate) fn end(&self) {
        self.pump();
        self.set_ended();
    }

    /// Hangs up on a publisher that broke the protocol.
    pub(crate) fn leave(&self) {
        self.socket.hang_up();
        self.set_ended();
    }

    /// Counts a message as held.
    pub(crate) fn hold(&self) {
        self.held.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a message to the publisher.
    pub(crate) fn release(&self, mut content: ContentBox) {
        if self.shared.birth.is_foreign() {
            return;
        }
        let worth_keeping = content.clear();
        let Taken { cell, number, .. } = content.taken;
        crate::hooks::step("releasing");
        ring::release(self.ring(), self.geometry, cell, number);
        if worth_keeping {
            let mut spare = self.spare();
            if spare.len() < self.max_held {
                spare.push(content);
            }
        }
        crate::hooks::step("released");
        if self.held.fetch_sub(1, Ordering::SeqCst) == self.max_held {
            // Until now no message could be taken, so the doorbell did not ring for the queued ones.
            self.waiter.ring();
        }
    }

    /// Notifies the publisher that this subscriber takes messages from now on.
    pub(crate) fn ready(&self) {
        let _ = self.socket.send(&Frame::Ready.encode(), &[]);
        crate::hooks::step("ready-sent");
    }

    /// Notifies the publisher that this subscriber takes no further messages.
    pub(crate) fn close(&self) {
        ring::close(self.ring());
        crate::hooks::step("close-reported");
        let _ = self.socket.send(&Frame::Closing.encode(), &[]);
        crate::hooks::step("close-sent");
    }

    /// Returns segment `id`, whose descriptor may still wait in the socket.
    pub(crate) fn segment(&self, id: u64) -> Result<Arc<PeerSegment>, Unreadable> {
        let found = self.incoming().find(id);
        found.unwrap_or_else(|| {
            // Its descriptor was sent before the message was queued, so it is in the socket.
            self.pump();
            self.incoming().find(id).unwrap_or(Err(Unreadable::Malformed))
        })
    }

    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns memory for the message that was taken, reused or new, to be filled by [`Content::read`].
    pub(crate) fn content(&self, taken: Taken) -> ContentBox {
        let spare = self.spare().pop();
        let mut content = spare.unwrap_or_else(|| Content::empty(self.copies.clone()));
        content.taken = taken;
        content
    }

    fn spare(&self) -> MutexGuard<'_, Vec<ContentBox>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Map {
    /// Maps the segment if there is memory now.
    fn tried(self) -> Map {
        let Map::Wanting(segment) = self else { return self };
        match segment.map() {
            Ok(map) => Map::Here(Arc::new(map)),
            Err(segment) => Map::Wanting(segment),
        }
    }
}

impl Incoming {
    fn add(&mut self, id: u64, len: u64, fd: std::os::fd::OwnedFd, mut grant: Grant) -> Result<(), String> {
        grant.add_space(len)?;
        if self.segments.iter().any(|s| s.id == id) {
            return Err(format!("segment {id} was sent twice"));
        }
        let segment = UnmappedSegment::new(fd, len).map_err(|e| format!("segment {id}: {e}"))?;
        let map = Map::Wanting(segment).tried();
        if let Map::Wanting(_) = map {
            tracing::warn!(
                len,
                "no memory to map a publisher's messages: they are lost until memory is free"
            );
        }
        crate::hooks::step("segment-mapped");
        self.segments.push(Segment {
            id,
            map,
            _grant: grant,
        });
        Ok(())
    }

    /// Returns segment `id`, if it has arrived.
    fn find(&mut self, id: u64) -> Option<Result<Arc<PeerSegment>, Unreadable>> {
        let segment = self.segments.iter_mut().find(|s| s.id == id)?;
        if !matches!(segment.map, Map::Here(_)) {
            segment.map = std::mem::replace(&mut segment.map, Map::Busy).tried();
        }
        Some(match &segment.map {
            Map::Here(map) => Ok(map.clone()),
            _ => Err(Unreadable::NoMemory),
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.shared.birth.is_foreign() {
            return;
        }
        // A forked child may hold the socket too, so hang up for both, and remove it from the epoll set while
        // this process still owns the descriptor number.
        self.shared.epoll.remove(&self.socket);
        self.socket.hang_up();
        let token = self.token.load(Ordering::Acquire);
        if token != 0 {
            self.shared.command(Command::Forget(token));
        }
    }
}
