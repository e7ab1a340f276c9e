//! Services of peers, for callers on this host.

use super::Calls;
use super::event::{Arrived, Asked, Content, EndpointId, Event};
use super::failure::{Failed, Failure, lost_link, lost_request, outcome_text};
use super::found::Of;
use super::header::{CallId, Header, Kind, MAX_LEFT, Outcome};
use super::shared::{MAX_OPEN, Shared};
use crate::engine::path::{Air, ServicePath};
use crate::outgoing::Outgoing;
use bus::{MAX_REJECTION, ServiceType};
use proto::{Body, GeometryError, PeerId, Radio, RemoteTopic};
use stats::{DropReason, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a service stays after the last relay stopped announcing it.
const ORPHANED_FOR: Duration = Duration::from_secs(10);

/// The peers' services, and the open calls of this host.
pub(super) struct Calling<K> {
    uses: BTreeMap<Of, Use>,
    /// Withdrawn services, or earlier ones of another type; [`Calling::retire`] ends them.
    over: Vec<(Of, Use)>,
    /// By number.
    calls: BTreeMap<u64, Call<K>>,
    last: u64,
}

/// A service that a peer offers.
struct Use {
    endpoint: EndpointId,
    kind: ServiceType,
    /// Whether it can be called: the peer is up.
    is_up: bool,
    path: Option<ServicePath>,
    /// The announcements of it.
    from: BTreeSet<(PeerId, RemoteTopic)>,
    /// When the last announcement ended.
    orphan: Option<Time>,
}

struct Call<K> {
    of: Of,
    endpoint: EndpointId,
    path: ServicePath,
    caller: K,
    stamp: Time,
    deadline: Time,
}

impl<K> Default for Calling<K> {
    fn default() -> Self {
        Calling {
            uses: BTreeMap::new(),
            over: Vec::new(),
            calls: BTreeMap::new(),
            last: 0,
        }
    }
}

impl<C: Content, K> Calls<C, K> {
    /// A peer offers a service. Returns its endpoint, and whether it is new.
    pub(super) fn offered(
        &mut self,
        of: Of,
        kind: ServiceType,
        from: (PeerId, RemoteTopic),
    ) -> (EndpointId, bool) {
        if let Some(used) = self.calling.uses.get_mut(&of).filter(|u| u.kind == kind) {
            used.from.insert(from);
            used.orphan = None;
            return (used.endpoint, false);
        }
        self.calling.end(of);
        let endpoint = self.shared.new_endpoint();
        let used = Use {
            endpoint,
            kind,
            is_up: false,
            path: None,
            from: BTreeSet::from([from]),
            orphan: None,
        };
        self.calling.uses.insert(of, used);
        (endpoint, true)
    }

    /// Opens the radio topic for requests.
    pub(super) fn open(&mut self, air: &mut Air<'_>, of: Of) {
        let Some(used) = self.calling.uses.get_mut(&of).filter(|u| u.path.is_none()) else {
            return;
        };
        match self.shared.open_path(air, of, &used.kind) {
            Ok(path) => used.path = Some(path),
            Err(error) => {
                tracing::error!(%error, service = used.kind.service, "cannot offer a peer's service here");
            }
        }
        used.rise(&mut self.shared);
    }

    /// Closes ended services, and the calls to them.
    pub(super) fn retire(&mut self, air: &mut Air<'_>) {
        for (of, used) in std::mem::take(&mut self.calling.over) {
            let open = self
                .calling
                .calls
                .iter()
                .filter(|(_, c)| c.endpoint == used.endpoint);
            let mut callers = Vec::new();
            for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
                if let Some(call) = self.calling.calls.remove(&number) {
                    call.path.end(air, call.stamp, Err(DropReason::Unannounced));
                    self.shared.tally(of).failed(Failure::ServerDied);
                    callers.push(call.caller);
                }
            }
            if let Some(path) = &used.path {
                path.close(air);
            }
            if used.is_up || !callers.is_empty() {
                self.shared.events.push_back(Event::Down(used.endpoint, callers));
            }
        }
    }

    /// The connection to a peer is lost: its services are unavailable here until it returns.
    pub(super) fn lost(&mut self, air: &mut Air<'_>, peer: PeerId) {
        let open = self.calling.calls.iter().filter(|(_, c)| c.of.peer == peer);
        for number in open.map(|(n, _)| *n).collect::<Vec<_>>() {
            let text = lost_link(self.shared.peer(peer));
            self.end_call(air, number, (Failure::Unreachable, text));
        }
        let of_it = self
            .calling
            .uses
            .iter_mut()
            .filter(|(of, u)| of.peer == peer && u.is_up);
        for (_, used) in of_it {
            used.is_up = false;
            self.shared
                .events
                .push_back(Event::Down(used.endpoint, Vec::new()));
        }
    }

    /// A peer is up again.
    pub(super) fn found(&mut self, peer: PeerId) {
        let of_it = self.calling.uses.iter_mut().filter(|(of, _)| of.peer == peer);
        of_it.for_each(|(_, used)| used.rise(&mut self.shared));
    }

    /// An endpoint that is up cannot be called here after all.
    pub(crate) fn fell(&mut self, endpoint: EndpointId) {
        let of_it = self.calling.uses.values_mut().filter(|u| u.endpoint == endpoint);
        of_it.for_each(|u| u.is_up = false);
    }

    /// A caller of this host calls a peer's service. `body` is the request behind its header.
    pub(crate) fn ask(
        &mut self,
        air: &mut Air<'_>,
        asked: Asked<K>,
        body: impl FnOnce(Header) -> Result<Outgoing, GeometryError>,
    ) {
        let Asked { endpoint, caller, .. } = asked;
        let used = self
            .calling
            .uses
            .iter()
            .find(|(_, u)| u.endpoint == endpoint && u.is_up);
        let Some((of, path)) = used.map(|(of, u)| (*of, u.path.clone())) else {
            self.shared.events.push_back(Event::Down(endpoint, vec![caller]));
            return;
        };
        let setting = self.shared.setting(of);
        let (depth, limit) = (usize::from(setting.depth), setting.timeout());
        let (name, peer) = (setting.name.clone(), self.shared.peer(of.peer).to_owned());
        let left = asked.timeout.min(limit).min(MAX_LEFT);
        self.calling.last += 1;
        let number = self.calling.last;
        let header = Header {
            call: CallId {
                run: self.shared.run,
                number,
            },
            kind: Kind::Request(left),
        };
        self.shared.tally(of).calls += 1;
        let here = self.calling.calls.values().filter(|c| c.of == of).count();
        if here >= depth || self.calling.calls.len() >= MAX_OPEN {
            let (open, of_what) = match here >= depth {
                true => (
                    here,
                    format!("to {name} of {peer}, the limit (`depth` in the link's configuration)"),
                ),
                false => (self.calling.calls.len(), "over this link, the limit".into()),
            };
            let failed = Failed {
                failure: Failure::Busy,
                text: format!("{open} calls are open {of_what}; call again later"),
                open: Some(here.max(1)),
            };
            return self.refuse_call(of, caller, failed);
        }
        let body = match body(header) {
            Ok(body) => body,
            Err(error) => {
                let text = format!("the request cannot cross the link: {error}");
                return self.refuse_call(of, caller, Failed::new((Failure::Dropped, text)));
            }
        };
        let Some(path) = path else {
            drop(body);
            let text = format!("the link has no path to {peer} yet; see its log");
            return self.refuse_call(of, caller, Failed::new((Failure::Unreachable, text)));
        };
        let bytes = u64::from(body.geometry().total_len());
        let stamp = self.shared.stamp(air.now);
        let deadline = air.now + left;
        let offered = path.offer(air, body, stamp, deadline);
        let call = Call {
            of,
            endpoint,
            deadline,
            path,
            caller,
            stamp,
        };
        self.calling.calls.insert(number, call);
        match offered {
            Ok(()) => self.shared.tally(of).request_bytes += bytes,
            Err(reason) => self.lose_call(air, number, reason),
        }
    }

    /// A call ends before its request is sent.
    fn refuse_call(&mut self, of: Of, caller: K, failed: Failed) {
        self.shared.tally(of).failed(failed.failure);
        self.shared.events.push_back(Event::Ended(caller, Err(failed)));
    }

    /// The radio gave up a request, or the peer refused it.
    fn lose_call(&mut self, air: &mut Air<'_>, number: u64, reason: DropReason) {
        let Some(call) = self.calling.calls.get(&number) else {
            return;
        };
        let (peer, name) = (self.shared.peer(call.of.peer), &self.shared.setting(call.of).name);
        let why = lost_request(reason, call.path.is_refused(air.radio), peer, name);
        self.end_call(air, number, why);
    }

    /// The radio reports that it gave up the message with this stamp. Returns false if it is not a request of
    /// these calls.
    pub(super) fn lost_message(&mut self, air: &mut Air<'_>, stamp: Time, reason: DropReason) -> bool {
        let of_it = self
            .calling
            .calls
            .iter()
            .find(|(_, c)| c.stamp == stamp)
            .map(|(n, _)| *n);
        if let Some(number) = of_it {
            self.lose_call(air, number, reason);
        }
        of_it.is_some()
    }

    /// A reply arrived.
    pub(super) fn replied(&mut self, air: &mut Air<'_>, arrived: Arrived<C>, outcome: Outcome) {
        let (of, call) = (arrived.of, arrived.header.call);
        // Only the host that received the request may answer.
        let ours = |c: &Call<K>| c.endpoint == arrived.endpoint && call.run == self.shared.run;
        if !self.calling.calls.get(&call.number).is_some_and(ours) {
            self.shared.tally(of).late += 1;
            return;
        }
        self.shared.tally(of).reply_bytes += arrived.bytes;
        let mut content = arrived.content;
        if outcome == Outcome::Answered {
            return self.close_call(air, call.number, Ok(()), Ok(content));
        }
        let control = content.control();
        let text = String::from_utf8_lossy(&control[..control.len().min(MAX_REJECTION)]).into_owned();
        let (peer, name) = (self.shared.peer(of.peer), &self.shared.setting(of).name);
        let why = outcome_text(outcome, text, peer, name);
        // Its memory may belong to what the caller gets.
        drop(content);
        self.close_call(air, call.number, Ok(()), Err(Failed::new(why)));
    }

    fn end_call(&mut self, air: &mut Air<'_>, number: u64, why: (Failure, String)) {
        let reason = match why.0 {
            Failure::TimedOut => DropReason::Expired,
            _ => DropReason::PeerLost,
        };
        self.close_call(air, number, Err(reason), Err(Failed::new(why)));
    }

    /// Ends a call: at the radio, which releases its request, and for its caller.
    fn close_call(
        &mut self,
        air: &mut Air<'_>,
        number: u64,
        sent: Result<(), DropReason>,
        with: Result<C, Failed>,
    ) {
        let Some(call) = self.calling.calls.remove(&number) else {
            return;
        };
        call.path.end(air, call.stamp, sent);
        let tally = self.shared.tally(call.of);
        match &with {
            Ok(_) => tally.answered += 1,
            Err(failed) => tally.failed(failed.failure),
        }
        self.shared.events.push_back(Event::Ended(call.caller, with));
    }

    /// Ends calls whose time is over.
    pub(super) fn expire_calls(&mut self, air: &mut Air<'_>) {
        let late = self.calling.calls.iter().filter(|(_, c)| c.deadline <= air.now);
        for number in late.map(|(n, _)| *n).collect::<Vec<_>>() {
            self.lose_call(air, number, DropReason::Expired);
        }
    }
}

impl<K> Calling<K> {
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

    /// Ends all services.
    pub(super) fn end_all(&mut self) {
        self.over.extend(std::mem::take(&mut self.uses));
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

    /// Ends services that no relay has announced for long.
    pub(super) fn sweep(&mut self, now: Time) {
        let old = |u: &Use| u.orphan.is_some_and(|t| now.since(t) >= ORPHANED_FOR);
        let orphans: Vec<Of> = self
            .uses
            .iter()
            .filter(|(_, u)| old(u))
            .map(|(of, _)| *of)
            .collect();
        orphans.into_iter().for_each(|of| self.end(of));
    }

    /// The services that peers offer.
    pub(super) fn services(&self) -> impl Iterator<Item = (Of, &ServiceType)> {
        self.uses.iter().map(|(of, used)| (*of, &used.kind))
    }

    /// The type of an endpoint's service.
    pub(super) fn kind(&self, endpoint: EndpointId) -> Option<&ServiceType> {
        let used = self.uses.values().find(|u| u.endpoint == endpoint)?;
        Some(&used.kind)
    }

    /// Returns whether replies of this endpoint are awaited.
    pub(super) fn awaits(&self, of: Of, endpoint: EndpointId) -> bool {
        let used = self.uses.get(&of).filter(|u| u.endpoint == endpoint);
        used.is_some_and(|u| u.is_up)
    }

    /// The services with any state left.
    pub(super) fn all(&self) -> impl Iterator<Item = Of> {
        let over = self.over.iter().map(|(of, _)| *of);
        let calls = self.calls.values().map(|c| c.of);
        self.uses.keys().copied().chain(over).chain(calls)
    }

    /// The peers with any state, and whether their services are available here.
    pub(super) fn peers(&self) -> BTreeMap<PeerId, bool> {
        self.uses.iter().map(|(of, u)| (of.peer, u.is_up)).collect()
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
        Some((&used.kind, used.is_up, refused, open))
    }
}

impl Use {
    /// It can be called from here.
    fn rise<C, K>(&mut self, shared: &mut Shared<C, K>) {
        if !self.is_up {
            self.is_up = true;
            shared.events.push_back(Event::Up(self.endpoint));
        }
    }
}
