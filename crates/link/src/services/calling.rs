//! Services of peers, for callers on this host.

use super::dispatcher::{EndpointId, Job};
use super::header::{CallId, Header, Kind, MAX_LEFT, Outcome};
use super::path::{Air, REQUEST, ServicePath};
use super::{Failure, MAX_OPEN, Of, Shared};
use crate::inbound::{IDLE, KEPT};
use crate::outgoing::Outgoing;
use bus::{CreateError, Loan, MAX_REJECTION, Request, Server, ServerOptions, ServiceType};
use proto::{Body, PeerId, Radio, RemoteTopic};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Limits of a caller's queued requests and of its unanswered requests. A service's `depth` is a tighter
/// limit.
const QUEUE: u32 = 64;
const HELD: u32 = 256;
/// How long a service stays after the last relay stopped announcing it.
const ORPHANED_FOR: Duration = Duration::from_secs(10);

/// The peers' services, and the open calls of this host.
#[derive(Default)]
pub(super) struct Calling {
    uses: BTreeMap<Of, Use>,
    /// Withdrawn services, or earlier ones of another type; [`Calling::retire`] ends them.
    over: Vec<(Of, Use)>,
    /// By number.
    calls: BTreeMap<u64, Call>,
    last: u64,
}

/// A service that a peer offers.
struct Use {
    endpoint: EndpointId,
    kind: ServiceType,
    /// Present while the peer is up.
    server: Option<Arc<Server>>,
    path: Option<ServicePath>,
    /// The announcements of it.
    from: BTreeSet<(PeerId, RemoteTopic)>,
    /// When the last announcement ended.
    orphan: Option<Time>,
    /// When the last message for it arrived, a reply or otherwise.
    came: Time,
}

struct Call {
    of: Of,
    endpoint: EndpointId,
    server: Arc<Server>,
    path: ServicePath,
    request: Arc<Request>,
    stamp: Time,
    deadline: Time,
}

impl Calling {
    /// Serves a service that a peer offers on this host's bus. Returns its endpoint, and whether it is new.
    ///
    /// # Errors
    /// If the bus rejects it.
    pub(super) fn offered(
        &mut self,
        shared: &mut Shared,
        of: Of,
        kind: ServiceType,
        from: (PeerId, RemoteTopic),
    ) -> Result<(EndpointId, bool), CreateError> {
        if let Some(used) = self.uses.get_mut(&of).filter(|u| u.kind == kind) {
            used.from.insert(from);
            used.orphan = None;
            return Ok((used.endpoint, false));
        }
        self.end(of);
        let endpoint = shared.new_endpoint();
        let used = Use {
            endpoint,
            server: Some(serve(shared, &kind, endpoint)?),
            kind,
            path: None,
            from: BTreeSet::from([from]),
            orphan: None,
            came: Time::ZERO,
        };
        self.uses.insert(of, used);
        Ok((endpoint, true))
    }

    /// Removes one announcement of a service. Without any left, the peer no longer offers it.
    pub(super) fn withdrawn(&mut self, of: Of, from: (PeerId, RemoteTopic)) {
        if let Some(used) = self.uses.get_mut(&of)
            && used.from.remove(&from)
            && used.from.is_empty()
        {
            self.end(of);
        }
    }

    /// A peer no longer offers a service.
    fn end(&mut self, of: Of) {
        self.over.extend(self.uses.remove(&of).map(|used| (of, used)));
    }

    /// The server for a peer's service, while the peer is up.
    pub(super) fn server(&self, of: Of, endpoint: EndpointId) -> Option<&Arc<Server>> {
        let used = self.uses.get(&of).filter(|u| u.endpoint == endpoint)?;
        used.server.as_ref()
    }

    /// Opens the radio topic for requests.
    pub(super) fn open(&mut self, shared: &mut Shared, air: &mut Air<'_>, of: Of) {
        let Some(used) = self.uses.get_mut(&of).filter(|u| u.path.is_none()) else {
            return;
        };
        let depth = u32::from(shared.setting(of).depth);
        match shared.open_path(air, of, REQUEST, &used.kind, depth) {
            Ok(path) => used.path = Some(path),
            Err(error) => {
                tracing::error!(%error, service = used.kind.service, "cannot offer a peer's service here");
            }
        }
    }

    /// All announcements by this peer are void.
    pub(super) fn peer_renewed(&mut self, now: Time, peer: PeerId) {
        let mut ended = Vec::new();
        for (of, used) in &mut self.uses {
            let had = used.from.len();
            used.from.retain(|(p, _)| *p != peer);
            if used.from.is_empty() && had > 0 {
                used.orphan = Some(now);
                ended.extend((of.peer == peer).then_some(*of));
            }
        }
        ended.into_iter().for_each(|of| self.end(of));
    }

    /// Ends services that no relay has announced for long. Frees the memory of received replies after a while
    /// without any.
    pub(super) fn sweep(&mut self, now: Time) {
        let idle = self.uses.values().filter(|u| u.came + IDLE <= now);
        for server in idle.filter_map(|u| u.server.as_ref()) {
            if server.reserved() > KEPT {
                server.trim();
            }
        }
        let old = |u: &Use| u.orphan.is_some_and(|t| now.since(t) >= ORPHANED_FOR);
        let orphans: Vec<Of> = self
            .uses
            .iter()
            .filter(|(_, u)| old(u))
            .map(|(of, _)| *of)
            .collect();
        orphans.into_iter().for_each(|of| self.end(of));
    }

    /// Closes ended services. Their servers disappear, which also notifies callers.
    pub(super) fn retire(&mut self, shared: &mut Shared, air: &mut Air<'_>) {
        for (of, used) in std::mem::take(&mut self.over) {
            let open = self.calls.iter().filter(|(_, c)| c.endpoint == used.endpoint);
            let mut requests = Vec::new();
            for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
                if let Some(call) = self.calls.remove(&number) {
                    call.path.end(air, call.stamp, Err(DropReason::Unannounced));
                    shared.tally(of).failed(Failure::ServerDied);
                    requests.push(call.request);
                }
            }
            if let Some(path) = &used.path {
                path.close(air);
            }
            if let Some(server) = used.server {
                shared
                    .dispatcher
                    .ask(Job::Unserve(used.endpoint, server, requests));
            }
        }
    }

    /// The services that peers offer.
    pub(super) fn services(&self) -> impl Iterator<Item = (Of, &ServiceType)> {
        self.uses.iter().map(|(of, used)| (*of, &used.kind))
    }

    /// The services with any state left.
    pub(super) fn all(&self) -> impl Iterator<Item = Of> {
        let over = self.over.iter().map(|(of, _)| *of);
        let calls = self.calls.values().map(|c| c.of);
        self.uses.keys().copied().chain(over).chain(calls)
    }

    /// The peers with any state, and whether their services are available here.
    pub(super) fn peers(&self) -> BTreeMap<PeerId, bool> {
        self.uses
            .iter()
            .map(|(of, u)| (of.peer, u.server.is_some()))
            .collect()
    }

    /// The connection to a peer is lost: its services are unavailable here until it returns.
    pub(super) fn lost(&mut self, shared: &mut Shared, air: &mut Air<'_>, peer: PeerId) {
        let open = self.calls.iter().filter(|(_, c)| c.of.peer == peer);
        for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
            let text = lost_link(shared.peer(peer));
            self.fail(shared, air, number, Failure::Unreachable, text);
        }
        for (_, used) in self.uses.iter_mut().filter(|(of, _)| of.peer == peer) {
            if let Some(server) = used.server.take() {
                shared
                    .dispatcher
                    .ask(Job::Unserve(used.endpoint, server, Vec::new()));
            }
        }
    }

    /// A peer is up again.
    pub(super) fn found(&mut self, shared: &mut Shared, peer: PeerId) {
        let away = |(of, u): &(&Of, &mut Use)| of.peer == peer && u.server.is_none();
        for (_, used) in self.uses.iter_mut().filter(away) {
            match serve(shared, &used.kind, used.endpoint) {
                Ok(server) => used.server = Some(server),
                Err(error) => tracing::error!(%error, service = used.kind.service, "not offered again"),
            }
        }
    }

    /// A caller on this host sends a request.
    pub(super) fn asked(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        endpoint: EndpointId,
        request: Request,
    ) {
        let used = self.uses.iter().find(|(_, u)| u.endpoint == endpoint);
        let Some((of, server, path)) =
            used.and_then(|(of, u)| Some((*of, u.server.clone()?, u.path.clone())))
        else {
            // Its server is gone, which already notified its caller.
            return;
        };
        let setting = shared.setting(of);
        let (depth, limit) = (usize::from(setting.depth), setting.timeout());
        let (name, peer) = (setting.name.clone(), shared.peer(of.peer).to_owned());
        let left = request.time_left().min(limit).min(MAX_LEFT);
        let number = self.last + 1;
        self.last = number;
        let header = Header {
            call: CallId {
                run: shared.run,
                number,
            },
            kind: Kind::Request(left),
        };
        let tally = shared.tally(of);
        tally.calls += 1;
        let request = Arc::new(request);
        let here = self.calls.values().filter(|c| c.of == of).count();
        let no = |shared: &mut Shared, request, failure: Failure, text: String| {
            shared.tally(of).failed(failure);
            shared.dispatcher.ask(Job::Respond {
                server: server.clone(),
                request,
                with: Err((failure, text)),
            });
        };
        if here >= depth || self.calls.len() >= MAX_OPEN {
            let (open, of_what) = match here >= depth {
                true => (
                    here,
                    format!("to {name} of {peer}, the limit (`depth` in the link's configuration)"),
                ),
                false => (self.calls.len(), "over this link, the limit".into()),
            };
            let text = format!("{open} calls are open {of_what}; call again later");
            return no(shared, request, Failure::Busy, text);
        }
        let body = match Outgoing::request(header, request.clone()) {
            Ok(body) => body,
            Err(error) => {
                let text = format!("the request cannot cross the link: {error}");
                return no(shared, request, Failure::Dropped, text);
            }
        };
        let Some(path) = path else {
            drop(body);
            let text = format!("the link has no path to {peer} yet; see its log");
            return no(shared, request, Failure::Unreachable, text);
        };
        let bytes = u64::from(body.geometry().total_len());
        let stamp = shared.stamp(air.now);
        let deadline = air.now + left;
        let offered = path.offer(air, body, stamp, deadline);
        let call = Call {
            of,
            endpoint,
            server,
            deadline,
            path,
            request,
            stamp,
        };
        self.calls.insert(number, call);
        match offered {
            Ok(()) => shared.tally(of).request_bytes += bytes,
            Err(reason) => self.dropped(shared, air, number, reason),
        }
    }

    /// The radio gave up a request, or the peer refused it.
    fn dropped(&mut self, shared: &mut Shared, air: &mut Air<'_>, number: u64, reason: DropReason) {
        let Some(call) = self.calls.get(&number) else {
            return;
        };
        let peer = shared.peer(call.of.peer).to_owned();
        let name = &shared.setting(call.of).name;
        let is_refused = call.path.is_refused(air.radio);
        let (failure, text) = lost_request(reason, is_refused, &peer, name);
        self.fail(shared, air, number, failure, text);
    }

    /// The radio reports that it gave up the message with this stamp. Returns false if it is not a request of
    /// these calls.
    pub(super) fn lost_message(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        stamp: Time,
        reason: DropReason,
    ) -> bool {
        let of_it = self.calls.iter().find(|(_, c)| c.stamp == stamp).map(|(n, _)| *n);
        if let Some(number) = of_it {
            self.dropped(shared, air, number, reason);
        }
        of_it.is_some()
    }

    /// A reply arrived.
    pub(super) fn replied(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        (of, endpoint): (Of, EndpointId),
        (call, outcome): (CallId, Outcome),
        (mut loan, bytes): (Loan, u64),
    ) {
        if let Some(used) = self.uses.get_mut(&of) {
            used.came = air.now;
        }
        // Only the host that received the request may answer.
        let ours = |c: &Call| c.endpoint == endpoint && call.run == shared.run;
        if !self.calls.get(&call.number).is_some_and(ours) {
            shared.tally(of).late += 1;
            return;
        }
        shared.tally(of).reply_bytes += bytes;
        let control = loan.control_mut();
        let text = String::from_utf8_lossy(&control[..control.len().min(MAX_REJECTION)]).into_owned();
        let peer = shared.peer(of.peer).to_owned();
        let name = shared.setting(of).name.clone();
        if outcome == Outcome::Answered {
            return self.close(shared, air, call.number, Ok(()), Ok(loan));
        }
        let (failure, text) = outcome_text(outcome, text, &peer, &name);
        // The loan belongs to the same server and returns to it.
        drop(loan);
        self.close(shared, air, call.number, Ok(()), Err((failure, text)));
    }

    fn fail(&mut self, shared: &mut Shared, air: &mut Air<'_>, number: u64, failure: Failure, text: String) {
        let why = match failure {
            Failure::TimedOut => DropReason::Expired,
            _ => DropReason::PeerLost,
        };
        self.close(shared, air, number, Err(why), Err((failure, text)));
    }

    /// Ends a call: at the radio, which releases its request, and for its caller.
    fn close(
        &mut self,
        shared: &mut Shared,
        air: &mut Air<'_>,
        number: u64,
        sent: Result<(), DropReason>,
        with: Result<Loan, (Failure, String)>,
    ) {
        let Some(call) = self.calls.remove(&number) else {
            return;
        };
        call.path.end(air, call.stamp, sent);
        let tally = shared.tally(call.of);
        match &with {
            Ok(_) => tally.answered += 1,
            Err((failure, _)) => tally.failed(*failure),
        }
        shared.dispatcher.ask(Job::Respond {
            server: call.server,
            request: call.request,
            with,
        });
    }

    /// Ends calls whose time is over.
    pub(super) fn expire(&mut self, shared: &mut Shared, air: &mut Air<'_>) {
        let late = self.calls.iter().filter(|(_, c)| c.deadline <= air.now);
        for number in late.map(|(n, _)| *n).collect::<Vec<_>>() {
            self.dropped(shared, air, number, DropReason::Expired);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.calls.values().map(|c| c.deadline).min()
    }

    /// The type of a peer's service, whether it is available here, whether the peer refuses its requests, and
    /// the number of open calls.
    pub(super) fn state(&self, radio: &Radio<Outgoing>, of: Of) -> Option<(&ServiceType, bool, bool, u64)> {
        let used = self.uses.get(&of)?;
        let refused = used.path.as_ref().is_some_and(|l| l.is_refused(radio));
        let open = self.calls.values().filter(|c| c.of == of).count() as u64;
        Some((&used.kind, used.server.is_some(), refused, open))
    }
}

fn serve(shared: &mut Shared, kind: &ServiceType, endpoint: EndpointId) -> Result<Arc<Server>, CreateError> {
    let options = ServerOptions::default()
        .with_depth(QUEUE)
        .with_max_held(HELD)
        .with_wait_set(shared.dispatcher.wait_set());
    let server = Arc::new(shared.bus.server(kind.clone(), options)?);
    shared.ids.insert(server.id());
    shared.dispatcher.ask(Job::Serve(endpoint, server.clone()));
    Ok(server)
}

/// Error text for a caller whose peer is lost.
pub(crate) fn lost_link(peer: &str) -> String {
    format!("the link to {peer} is lost; {peer} may have executed the request")
}

/// Failure and error text for a request to `peer` that the radio gave up or the peer refused.
pub(crate) fn lost_request(
    reason: DropReason,
    is_refused: bool,
    peer: &str,
    name: &str,
) -> (Failure, String) {
    match reason {
        DropReason::Unannounced if is_refused => (
            Failure::Refused,
            format!(
                "{peer} does not permit this host to call {name}: add it to `allow: call` in the configuration of {peer}"
            ),
        ),
        DropReason::Expired => (
            Failure::TimedOut,
            format!("{peer} has not answered in time; it may still execute the request"),
        ),
        DropReason::Unannounced => (Failure::Unserved, format!("{name} is not served on {peer}")),
        DropReason::NoPeer | DropReason::PeerLost => (
            Failure::Unreachable,
            format!("{peer} does not answer over the link, or has restarted"),
        ),
        DropReason::TooLarge => (
            Failure::Dropped,
            "the request is too large for the link: raise `radio.queue_bytes` of both ends".into(),
        ),
        DropReason::ReceiverMemory => (Failure::Dropped, format!("{peer} has no memory for the request")),
        other => (
            Failure::Dropped,
            format!(
                "the link has dropped the request ({}): call again later",
                other.name()
            ),
        ),
    }
}

/// Failure and error text for an end without an answer, with `text` from the server's host.
pub(crate) fn outcome_text(outcome: Outcome, text: String, peer: &str, name: &str) -> (Failure, String) {
    match outcome {
        Outcome::Rejected => (Failure::Rejected, text),
        Outcome::Died => (
            Failure::ServerDied,
            format!(
                "the server of {name} on {peer} died before it answered: repeat the call if that is safe"
            ),
        ),
        Outcome::Unserved => (Failure::Unserved, format!("{name} is no longer served on {peer}")),
        Outcome::Busy => (Failure::Busy, format!("{peer}: {text}")),
        Outcome::TimedOut => (Failure::TimedOut, format!("{peer}: {text}")),
        Outcome::Failed | Outcome::Answered => (Failure::Dropped, text),
    }
}
