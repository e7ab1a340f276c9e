//! The handshake: both ends identify themselves, check that they match, and pass what the other end needs.
//!
//! The connecting end speaks first. The publisher resolves duplicate connections, which arise when both ends
//! find each other at the same moment.

use super::{Core, Shared};
use crate::budget::{CONNECTION, Grant, Holder};
use crate::connection::Connection;
use crate::definition::shown;
use crate::frame::{Frame, FrameError, Hello, Info, MAX_FRAME, MAX_HANDSHAKE, RefuseCode, Role, Wishes};
use crate::peer::Attached;
use crate::publisher::PubCore;
use crate::ring::{self, Geometry};
use crate::subscriber::SubCore;
use crate::sys::Variant;
use crate::sys::process::Peer;
use crate::sys::segment::RingMemory;
use crate::sys::socket::{Received, Socket};
use crate::topic::{Offer, Refusal, Ros, TopicType};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

/// A handshake in progress.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) endpoint: u64,
    pub(super) peer: Peer,
    /// Identity of the peer, from its socket's name or its hello.
    pub(super) peer_id: Option<u64>,
    pub(super) deadline: Instant,
    core: Core,
    /// Taken, like the grant, when the handshake becomes a connection.
    socket: Option<Socket>,
    grant: Option<Grant>,
    we_connected: bool,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Waits for the peer's hello.
    Hello,
    /// The sums differ and the peer has this end's definition: waits for the peer's definition. The text is
    /// the reason known so far.
    Definition(String),
    /// This end publishes: waits for the peer's ring and doorbell.
    Attach,
    /// This end subscribes: waits for the publisher's acceptance. Holds what the publisher announced.
    Welcome(RingMemory, Geometry, Offer, Ros),
}

/// The result of a handshake step.
#[derive(Debug)]
pub(super) enum Outcome {
    Wait,
    /// Nothing more to do.
    Done,
    /// May be tried again.
    Failed,
    /// Must not be tried again with that peer.
    Never(Option<u64>),
    /// This end publishes and has a new subscriber.
    Subscriber {
        subscriber: u64,
        peer: i32,
        socket: Arc<Socket>,
    },
    /// This end subscribes and has a new publisher.
    Publisher {
        connection: Arc<Connection>,
        peer: i32,
    },
}

impl Pending {
    /// Starts the handshake with a peer that connected to this end. Returns `None` if the peer was refused.
    pub(super) fn accepted(shared: &Shared, endpoint: u64, core: Core, socket: Socket) -> Option<Pending> {
        let peer = socket.peer().ok()?;
        if let Some(reason) = forbids(shared, peer) {
            // A peer that only checks whether this process is alive neither sends nor reads anything.
            let _ = socket.send(&refuse(RefuseCode::Mismatch, &reason), &[]);
            core.refuse(Refusal {
                pid: peer.pid,
                uid: peer.uid,
                reason,
            });
            return None;
        }
        let grant = match shared.budget.take(peer, CONNECTION) {
            Ok(grant) => grant,
            Err(reason) => {
                let _ = socket.send(&refuse(RefuseCode::Busy, &reason), &[]);
                core.refuse(Refusal {
                    pid: peer.pid,
                    uid: peer.uid,
                    reason,
                });
                return None;
            }
        };
        Some(Pending::new(shared, endpoint, core, socket, peer, None, grant))
    }

    /// Starts the handshake after this end connected to endpoint `peer_id`. An error says whether never to
    /// try again.
    pub(super) fn connected(
        shared: &Shared,
        endpoint: u64,
        core: Core,
        socket: Socket,
        peer_id: u64,
    ) -> Result<Pending, bool> {
        let peer = socket.peer().map_err(|_| false)?;
        if let Some(reason) = forbids(shared, peer) {
            let _ = socket.send(&refuse(RefuseCode::Mismatch, &reason), &[]);
            core.refuse(Refusal {
                pid: peer.pid,
                uid: peer.uid,
                reason,
            });
            return Err(true);
        }
        let grant = shared.budget.take(peer, CONNECTION).map_err(|reason| {
            core.refuse(Refusal {
                pid: peer.pid,
                uid: peer.uid,
                reason,
            });
            false
        })?;
        let hello = core.hello(shared).ok_or(true)?;
        socket
            .send(&Frame::Hello(hello).encode(), &[])
            .map_err(|_| false)?;
        crate::hooks::step("hello-sent");
        Ok(Pending::new(
            shared,
            endpoint,
            core,
            socket,
            peer,
            Some(peer_id),
            grant,
        ))
    }

    fn new(
        shared: &Shared,
        endpoint: u64,
        core: Core,
        socket: Socket,
        peer: Peer,
        peer_id: Option<u64>,
        grant: Grant,
    ) -> Pending {
        Pending {
            endpoint,
            peer,
            we_connected: peer_id.is_some(),
            peer_id,
            deadline: Instant::now() + shared.config.handshake_timeout,
            core,
            socket: Some(socket),
            grant: Some(grant),
            stage: Stage::Hello,
        }
    }

    /// Returns its socket, until it becomes a connection.
    pub(super) fn socket(&self) -> Option<&Socket> {
        self.socket.as_ref()
    }

    /// Returns the holder that the peer counts towards, if the peer connected to this end.
    pub(super) fn visitor(&self) -> Option<Holder> {
        (!self.we_connected).then(|| Holder::of(self.peer))
    }

    /// Whether this end publishes and waits for the peer to attach.
    pub(super) fn awaits_attach(&self) -> bool {
        matches!(self.stage, Stage::Attach)
    }

    /// Continues with the received frames. `concurrent` are the peers of this endpoint's other handshakes that
    /// wait for their attachment.
    pub(super) fn advance(&mut self, shared: &Arc<Shared>, concurrent: &[u64]) -> Outcome {
        loop {
            let Some(socket) = &self.socket else {
                return Outcome::Done;
            };
            let mut buffer = match self.stage {
                Stage::Hello | Stage::Definition(_) => vec![0; MAX_HANDSHAKE],
                Stage::Attach | Stage::Welcome(..) => vec![0; MAX_FRAME],
            };
            let (bytes, fds) = match socket.receive(&mut buffer) {
                Ok(Received::Nothing) => return Outcome::Wait,
                Ok(Received::Message(n, fds)) => (&buffer[..n], fds),
                Ok(Received::Oversized) => return self.turn_away("the peer sent an oversized frame".into()),
                Ok(Received::End) | Err(_) if matches!(self.stage, Stage::Definition(_)) => {
                    let Stage::Definition(reason) = &self.stage else {
                        return Outcome::Done;
                    };
                    return self.note(reason.clone());
                }
                // A peer that disconnects after checking for a live process, or that died, is not a failure
                // of this end.
                Ok(Received::End) | Err(_) if self.we_connected => return Outcome::Failed,
                Ok(Received::End) | Err(_) => return Outcome::Done,
            };
            let outcome = match Frame::decode(bytes) {
                Ok(frame) => self.handle(shared, frame, fds, concurrent),
                Err(FrameError::Version { theirs }) => {
                    let reason = FrameError::Version { theirs }.to_string();
                    self.turn_away(reason)
                }
                Err(e) => self.turn_away(e.to_string()),
            };
            if !matches!(outcome, Outcome::Wait) {
                return outcome;
            }
        }
    }

    fn handle(
        &mut self,
        shared: &Arc<Shared>,
        frame: Frame,
        fds: Vec<OwnedFd>,
        concurrent: &[u64],
    ) -> Outcome {
        match (frame, &self.stage) {
            (Frame::Refuse { code, text }, _) => match code {
                RefuseCode::Mismatch => {
                    self.core.refuse(Refusal {
                        pid: self.peer.pid,
                        uid: self.peer.uid,
                        reason: text,
                    });
                    Outcome::Never(self.peer_id)
                }
                // The other of the two connections is established or in progress.
                RefuseCode::Duplicate => Outcome::Failed,
                RefuseCode::Busy => {
                    self.core.refuse(Refusal {
                        pid: self.peer.pid,
                        uid: self.peer.uid,
                        reason: text,
                    });
                    Outcome::Failed
                }
            },
            (Frame::Definition { hash, text }, Stage::Hello) if self.we_connected => {
                self.compare(shared, hash, &text, true)
            }
            (Frame::Definition { hash, text }, Stage::Definition(_)) => {
                self.compare(shared, hash, &text, false)
            }
            (Frame::Hello(hello), Stage::Hello) => self.on_hello(shared, hello, concurrent),
            (Frame::Attach(wishes), Stage::Attach) => self.on_attach(shared, wishes, fds),
            (Frame::Welcome, Stage::Welcome(..)) => self.on_welcome(shared),
            _ => self.turn_away("the peer sent a frame that is not part of the handshake".into()),
        }
    }

    fn on_hello(&mut self, shared: &Arc<Shared>, hello: Hello, concurrent: &[u64]) -> Outcome {
        let Some(ours) = self.core.hello(shared) else {
            return Outcome::Done;
        };
        if hello.role == Role::Observer && !self.we_connected {
            if let Some(info) = self.core.info(shared) {
                let _ = self.send(&Frame::Info(info), &[]);
            }
            return Outcome::Done;
        }
        if self.peer_id.is_some_and(|id| id != hello.id) {
            return self.turn_away("the peer's hello has another identity than its socket".into());
        }
        self.peer_id = Some(hello.id);
        if let Some(reason) = difference(&ours, &hello) {
            let same_type = Hello {
                type_hash: ours.type_hash,
                ..hello
            };
            // Only the sums differ: each end sends the other its definition, and both report the difference.
            if difference(&ours, &same_type).is_none()
                && let Some(topic) = self.core.topic()
                && self.send(&definition_of(&topic), &[]).is_ok()
            {
                self.stage = Stage::Definition(reason);
                return Outcome::Wait;
            }
            return self.turn_away(reason);
        }
        if !self.we_connected && self.send(&Frame::Hello(ours), &[]).is_err() {
            return Outcome::Failed;
        }
        crate::hooks::step("hello-answered");
        match self.core.clone() {
            Core::Publisher(core) => {
                let Some(core) = core.upgrade() else {
                    return Outcome::Done;
                };
                let admitted = if concurrent.contains(&hello.id) {
                    Err((RefuseCode::Duplicate, "connecting already".into()))
                } else {
                    core.admits(hello.id, self.peer)
                };
                if let Err((code, text)) = admitted {
                    let _ = self.send(&Frame::Refuse { code, text }, &[]);
                    return Outcome::Done;
                }
                self.stage = Stage::Attach;
                Outcome::Wait
            }
            Core::Subscriber(core) => {
                let Some(core) = core.upgrade() else {
                    return Outcome::Done;
                };
                if core.is_connected(hello.id) {
                    return Outcome::Done;
                }
                if let Err(text) = core.admits(self.peer) {
                    return self.put_off(text);
                }
                self.attach(&core, hello.offer, hello.flavour.ros)
            }
        }
    }

    /// This end subscribes: creates the ring and sends it, with the doorbell.
    fn attach(&mut self, core: &Arc<SubCore>, offer: Offer, ros: Ros) -> Outcome {
        let options = &core.options;
        let Some(geometry) = Geometry::new(options.depth, options.max_held) else {
            return Outcome::Done;
        };
        let (memory, fd) = match RingMemory::new(geometry.words()) {
            Ok(ring) => ring,
            Err(e) => {
                tracing::warn!("cannot create a ring: {e}");
                return Outcome::Failed;
            }
        };
        ring::arm(memory.words(), true);
        let frame = Frame::Attach(Wishes {
            depth: options.depth,
            max_held: options.max_held,
            max_bytes: options.max_held_bytes,
            queue: options.queue_policy,
            history: options.history,
            after: self.peer_id.map_or(0, |id| core.last_taken(id)),
        });
        let mut fds = vec![fd.as_fd()];
        fds.extend(core.waiter.waker.for_peer());
        if self.send(&frame, &fds).is_err() {
            return Outcome::Failed;
        }
        crate::hooks::step("attach-sent");
        self.stage = Stage::Welcome(memory, geometry, offer, ros);
        Outcome::Wait
    }

    /// This end publishes: checks what the subscriber sent, and accepts it.
    fn on_attach(&mut self, shared: &Arc<Shared>, wishes: Wishes, fds: Vec<OwnedFd>) -> Outcome {
        crate::hooks::step("attach-received");
        let Core::Publisher(core) = self.core.clone() else {
            return Outcome::Done;
        };
        let (Some(core), Some(id)) = (core.upgrade(), self.peer_id) else {
            return Outcome::Done;
        };
        let (depth, max_held) = (wishes.depth, wishes.max_held);
        let Some(geometry) = Geometry::new(depth, max_held) else {
            let max = Geometry::MAX;
            return self.turn_away(format!(
                "depth {depth} and max_held {max_held}: both must be from 1 to {max}"
            ));
        };
        let granted = (self.grant.as_mut()).map(|g| g.add_ring(RingMemory::file_len(geometry.words())));
        if let Some(Err(text)) = granted {
            return self.put_off(text);
        }
        let mut fds = fds.into_iter();
        let (Some(ring), bell) = (fds.next(), fds.as_slice()) else {
            return self.turn_away("the ring is missing".into());
        };
        let ring = match RingMemory::from_peer(ring, geometry.words()) {
            Ok(ring) => (ring, geometry),
            Err(e) => return self.turn_away(format!("the ring is not acceptable: {e}")),
        };
        let bell = match shared.doorbell(bell) {
            Ok(bell) => bell,
            Err(e) => return self.turn_away(format!("the doorbell is not acceptable: {e}")),
        };
        if let Err((code, text)) = core.admits(id, self.peer) {
            let _ = self.send(&Frame::Refuse { code, text }, &[]);
            return Outcome::Done;
        }
        let (Some(socket), Some(grant)) = (self.socket.take().map(Arc::new), self.grant.take()) else {
            return Outcome::Done;
        };
        let terms = core.terms(&wishes);
        let attached = Attached::new(id, self.peer, socket.clone(), bell, ring, terms, grant);
        if core.attach(attached, wishes.history, wishes.after).is_err() {
            return Outcome::Failed;
        }
        crate::hooks::step("attached");
        Outcome::Subscriber {
            subscriber: id,
            peer: self.peer.pid,
            socket,
        }
    }

    /// This end subscribes and has been accepted.
    fn on_welcome(&mut self, shared: &Arc<Shared>) -> Outcome {
        crate::hooks::step("welcome-received");
        let Core::Subscriber(core) = self.core.clone() else {
            return Outcome::Done;
        };
        let (Some(core), Some(id)) = (core.upgrade(), self.peer_id) else {
            return Outcome::Done;
        };
        let Stage::Welcome(ring, geometry, offer, ros) = std::mem::replace(&mut self.stage, Stage::Hello)
        else {
            return Outcome::Done;
        };
        // Other publishers may have taken the last places since the check.
        if let Err(text) = core.admits(self.peer) {
            return self.put_off(text);
        }
        let (Some(socket), Some(grant)) = (self.socket.take(), self.grant.take()) else {
            return Outcome::Done;
        };
        let connection = Connection::new(
            id,
            offer,
            ros,
            self.peer,
            socket,
            ring,
            geometry,
            core.options.max_held as usize,
            core.waiter.clone(),
            shared.clone(),
            grant,
        );
        Outcome::Publisher {
            connection: Arc::new(connection),
            peer: self.peer.pid,
        }
    }

    /// Handles the peer's definition, whose sum differs from this end's. `answer`: the peer waits for this
    /// end's definition.
    fn compare(&mut self, shared: &Shared, hash: [u8; 16], text: &str, answer: bool) -> Outcome {
        let (Some(ours), Some(hello)) = (self.core.topic(), self.core.hello(shared)) else {
            return Outcome::Done;
        };
        if answer {
            let _ = self.send(&definition_of(&ours), &[]);
        }
        let theirs = TopicType {
            type_hash: hash,
            flavour: hello.flavour,
            definition: text.into(),
            topic: hello.topic,
            type_name: hello.type_name,
        };
        let Some(sums) = ours.difference(&theirs) else {
            return self.turn_away("the peer sent a definition with the same sum".into());
        };
        let fields = crate::definition::difference(shown(&ours.definition), text);
        self.note(format!("{sums}: {fields}"))
    }

    /// Records the reason and ends. The peer already knows it.
    fn note(&self, reason: String) -> Outcome {
        self.core.refuse(Refusal {
            pid: self.peer.pid,
            uid: self.peer.uid,
            reason,
        });
        Outcome::Never(self.peer_id)
    }

    /// There is no room for the peer at the moment. Notifies it, records the refusal, and tries again later
    /// if this end connected.
    fn put_off(&self, text: String) -> Outcome {
        self.core.refuse(Refusal {
            pid: self.peer.pid,
            uid: self.peer.uid,
            reason: text.clone(),
        });
        let code = RefuseCode::Busy;
        let _ = self.send(&Frame::Refuse { code, text }, &[]);
        if self.we_connected {
            Outcome::Failed
        } else {
            Outcome::Done
        }
    }

    /// Sends the reason to the peer, records it, and ends.
    fn turn_away(&mut self, reason: String) -> Outcome {
        let _ = self.send(
            &Frame::Refuse {
                code: RefuseCode::Mismatch,
                text: reason.clone(),
            },
            &[],
        );
        self.note(reason)
    }

    fn send(&self, frame: &Frame, fds: &[std::os::fd::BorrowedFd<'_>]) -> std::io::Result<()> {
        match &self.socket {
            Some(socket) => socket.send(&frame.encode(), fds),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Core {
    fn hello(&self, shared: &Shared) -> Option<Hello> {
        let (role, id, topic, offer) = match self {
            Core::Publisher(core) => {
                let core: Arc<PubCore> = core.upgrade()?;
                (Role::Publisher, core.id, core.topic.clone(), core.offer())
            }
            Core::Subscriber(core) => {
                let core: Arc<SubCore> = core.upgrade()?;
                (Role::Subscriber, core.id, core.topic.clone(), Offer::default())
            }
        };
        Some(Hello {
            layout: Variant::layout(),
            role,
            domain: shared.config.domain,
            id,
            topic: topic.topic,
            type_name: topic.type_name,
            type_hash: topic.type_hash,
            flavour: topic.flavour,
            offer,
        })
    }

    fn topic(&self) -> Option<TopicType> {
        match self {
            Core::Publisher(core) => core.upgrade().map(|c| c.topic.clone()),
            Core::Subscriber(core) => core.upgrade().map(|c| c.topic.clone()),
        }
    }

    fn info(&self, shared: &Shared) -> Option<Info> {
        let domain = shared.config.domain;
        match self {
            Core::Publisher(core) => core.upgrade().map(|c| c.info(domain)),
            Core::Subscriber(core) => core.upgrade().map(|c| c.info(domain)),
        }
    }
}

fn definition_of(topic: &TopicType) -> Frame {
    Frame::Definition {
        hash: topic.type_hash,
        text: shown(&topic.definition).to_owned(),
    }
}

fn refuse(code: RefuseCode, text: &str) -> Vec<u8> {
    Frame::Refuse {
        code,
        text: text.into(),
    }
    .encode()
}

/// Returns why this peer may not connect, if so. With a group, the kernel has checked the socket's mode.
fn forbids(shared: &Shared, peer: Peer) -> Option<String> {
    let uid = rustix::process::geteuid().as_raw();
    (shared.config.group.is_none() && peer.uid != uid).then(|| {
        format!(
            "user {} and user {uid} may not share a bus: run both as one user, or set a group on both sides",
            peer.uid
        )
    })
}

/// Returns what differs between the two ends, naming both values.
fn difference(ours: &Hello, theirs: &Hello) -> Option<String> {
    let (layout, variant) = Variant::of_layout(theirs.layout);
    if variant != Variant::OURS {
        return Some(format!(
            "the shared memory is {} here and {variant} there: build both programs with the feature `posix`, or both \
             without",
            Variant::OURS
        ));
    }
    if ours.layout != theirs.layout {
        return Some(format!(
            "the memory layout is version {} here and {} there: update the older program",
            Variant::of_layout(ours.layout).0,
            layout
        ));
    }
    if ours.domain != theirs.domain {
        return Some(format!(
            "the domain is {} here and {} there",
            ours.domain, theirs.domain
        ));
    }
    let opposite = if ours.role == Role::Publisher {
        Role::Subscriber
    } else {
        Role::Publisher
    };
    if theirs.role != opposite {
        return Some(format!(
            "the peer is a {:?}, expected a {opposite:?}",
            theirs.role
        ));
    }
    let topic = |h: &Hello| TopicType {
        topic: h.topic.clone(),
        type_name: h.type_name.clone(),
        type_hash: h.type_hash,
        flavour: h.flavour,
        definition: "".into(),
    };
    topic(ours).difference(&topic(theirs))
}
