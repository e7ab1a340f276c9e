//! Seals messages through relays for their destination hosts, with keys agreed on with each of them.
//!
//! Hosts exchange greetings over any path ([`greeting`]): certificate, a key of this run, a challenge, and the
//! answer to the other's challenge. Messages then cross as envelopes ([`envelope`]). Relays see a message's
//! source, its destinations and its length, but cannot read it, change it, or forge one (decision 289).

pub(crate) mod envelope;
mod evidence;
mod greeting;
mod identity;
mod kept;
mod session;

pub(crate) use greeting::MAX_LEN as MAX_GREETING;

use crate::carrier::{CarrierError, Watch};
use crate::config::Config;
use crate::error::LinkError;
use crate::keys::Bundle;
use crate::names::host_id;
use crate::outgoing::Outgoing;
use envelope::{DirectedKey, Label, SECRET, SealError, Shape, Tally};
use evidence::Evidence;
use greeting::Greeting;
use identity::Identity;
use kept::Kept;
use proto::{Announcement, Body, FlowKey, Geometry, Message, PeerId, Sealed, Sealer, Sealing, Via};
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::CertificateDer;
use serde::Serialize;
use session::{Pending, Session};
use stats::{DropReason, Time};
use std::collections::BTreeMap;
use std::time::Duration;

/// The topic of greetings. No bus topic can have this name.
pub(crate) const GREETING: &str = "?greeting";
/// Interval before an unanswered greeting is repeated, which then doubles up to the maximum.
const AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(8));
/// Least interval between answers to one host.
const APART: Duration = Duration::from_millis(100);
/// Most greetings from one neighbour at once, and per second: each costs two signature verifications.
const GREETINGS: (f64, f64) = (64.0, 8.0);
/// Interval at which to check certificates again, which may have expired.
const RECHECK: Duration = Duration::from_secs(60);
/// Least interval between log messages about refusals from one source.
const SILENT: Duration = Duration::from_secs(30);
/// Delays of the notices that prove a topic to a host, repeated since a relay may have failed on the way.
const NOTICES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(10)];

/// Counts of sealed and opened messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SealStats {
    /// The hosts with keys shared with this one.
    pub keys: Vec<String>,
    /// Messages sealed, and their bytes, each copied once for it.
    pub sealed: u64,
    /// See `sealed`.
    pub sealed_bytes: u64,
    /// Messages opened, and their bytes, each copied once for it.
    pub opened: u64,
    /// See `opened`.
    pub opened_bytes: u64,
    /// Messages refused: without a seal, or under a key that is unknown, or no longer known.
    pub unsealed: u64,
    /// Messages refused: their seal is not their source's.
    pub forged: u64,
    /// Paths abandoned because nothing arrived over them, despite the neighbour's reports.
    pub doubted: u64,
    /// Messages that waited in vain for a host's keys.
    pub waited: u64,
    /// Greetings refused: too many, malformed, or from a host whose certificate is not valid.
    pub greetings_refused: u64,
}

/// The content of a sealed message.
pub(crate) enum Opened {
    /// A message of this shape, with its parts in sequence.
    Message(Geometry, Vec<u8>),
    /// Only the proof that the topic belongs to its source.
    Notice,
}

struct Peer {
    name: String,
    host: u64,
    pending: Option<Pending>,
    session: Option<(Session, CertificateDer<'static>)>,
    /// The challenge for it to echo next.
    challenge: [u8; 16],
    /// Its challenge for this host to echo.
    echo: [u8; 16],
    /// It has another key than that of the session.
    is_new: bool,
    due: bool,
    next: Time,
    pause: Duration,
    greeted: Option<Time>,
    notified: Option<Time>,
    has_way: bool,
    evidence: Evidence,
}

/// The keys shared with other hosts, and the messages that wait for them.
pub(crate) struct Seals {
    own: u64,
    identity: Identity,
    watch: Watch<Identity>,
    random: SystemRandom,
    peers: Vec<Peer>,
    /// For each neighbour: the number of greetings that it may still bring, and as of when.
    brings: BTreeMap<PeerId, (f64, Time)>,
    kept: BTreeMap<FlowKey, Kept>,
    /// Notices, which prove topics to hosts that have no message of them yet.
    notices: Vec<(FlowKey, u64, Time, usize)>,
    /// Hosts that are ready for waiting messages, and whether their keys are new.
    ready: Vec<(u64, bool)>,
    next_look: Time,
    /// Whether the messages being offered are kept already.
    again: bool,
    serial: u64,
    recheck: Time,
    /// The flows of greetings, once opened.
    pub(crate) flows: Vec<FlowKey>,
    stats: SealStats,
    now: Time,
}

/// The digest of a topic's announcement, to which its messages are bound.
pub(crate) fn context(a: &Announcement, via: &Via) -> [u8; 32] {
    let mut all = b"ropewalk seal 2".to_vec();
    all.extend_from_slice(&via.source.to_le_bytes());
    all.extend_from_slice(&via.run.to_le_bytes());
    all.push(via.to.len() as u8);
    via.to
        .iter()
        .for_each(|h| all.extend_from_slice(&h.to_le_bytes()));
    all.extend_from_slice(&a.type_hash);
    all.extend_from_slice(&a.flavour.0);
    all.extend_from_slice(&[a.ordering as u8, u8::from(a.latched)]);
    for text in [&a.name, &a.type_name, &a.definition] {
        all.extend_from_slice(&(text.len() as u32).to_le_bytes());
        all.extend_from_slice(text.as_bytes());
    }
    let mut out = [0; 32];
    out.copy_from_slice(digest::digest(&digest::SHA256, &all).as_ref());
    out
}

impl Seals {
    /// Starts it for a host that has keys and uses relays; `None` for others.
    ///
    /// # Errors
    /// [`LinkError`] if the keys cannot be read, or no thread can start.
    pub(crate) fn start(config: &Config) -> Result<Option<Box<Self>>, LinkError> {
        if !config.routes() || !config.carrier().has_keys() {
            return Ok(None);
        }
        let bad = |e| LinkError::Carrier(CarrierError::Keys(e));
        let folder = config.keys.as_deref().unwrap_or("".as_ref());
        let bundle = Bundle::load(folder, &config.host).map_err(bad)?;
        let identity = Identity::new(&bundle).map_err(bad)?;
        let watch = Watch::start(bundle, Identity::new).map_err(LinkError::system("start a thread"))?;
        let random = SystemRandom::new();
        let peers = config.peers.iter().map(|p| Peer {
            name: p.name.clone(),
            host: host_id(&p.name),
            pending: None,
            session: None,
            challenge: fresh(&random),
            echo: [0; 16],
            is_new: false,
            due: false,
            next: Time::ZERO,
            pause: AGAIN.0,
            greeted: None,
            notified: None,
            has_way: false,
            evidence: Evidence::default(),
        });
        Ok(Some(Box::new(Seals {
            own: host_id(&config.host),
            identity,
            watch,
            peers: peers.collect(),
            random,
            brings: BTreeMap::new(),
            kept: BTreeMap::new(),
            notices: Vec::new(),
            ready: Vec::new(),
            next_look: Time::ZERO,
            again: false,
            serial: 0,
            recheck: Time::ZERO,
            flows: Vec::new(),
            stats: SealStats::default(),
            now: Time::ZERO,
        })))
    }

    /// Counts so far.
    pub(crate) fn stats(&self) -> SealStats {
        let with = self.peers.iter().filter(|p| p.is_ready());
        SealStats {
            keys: with.map(|p| p.name.clone()).collect(),
            waited: self.stats.waited + self.kept.values().map(|k| k.lost).sum::<u64>(),
            ..self.stats.clone()
        }
    }

    /// A topic of this host may use relays from now on.
    pub(crate) fn opened(&mut self, now: Time, key: &FlowKey, announcement: &Announcement, via: &Via) {
        let kept = Kept::new(context(announcement, via), &via.to, announcement.latched);
        self.kept.insert(key.clone(), kept);
        let hosts: Vec<u64> = self
            .peers
            .iter()
            .filter(|p| p.is_ready())
            .map(|p| p.host)
            .collect();
        hosts.iter().for_each(|host| self.notify(now, key, *host));
    }

    /// The topic no longer uses relays.
    pub(crate) fn closed(&mut self, key: &FlowKey) {
        self.stats.waited += self.kept.remove(key).map_or(0, |k| k.lost);
        self.notices.retain(|(k, ..)| k != key);
    }

    /// The message with this stamp is no longer needed.
    pub(crate) fn end(&mut self, key: &FlowKey, stamp: Time) {
        if let Some(kept) = self.kept.get_mut(key) {
            kept.end(stamp);
        }
    }

    /// Schedules notices that prove a topic to a host before its first message: a publisher may wait for its
    /// subscribers, and a server sends nothing but replies.
    fn notify(&mut self, now: Time, key: &FlowKey, host: u64) {
        if let Some(kept) = self.kept.get(key).filter(|_| key.topic != GREETING)
            && let Some(i) = kept.to.iter().position(|h| *h == host)
        {
            self.notices.push((key.clone(), 1 << i, now, 0));
        }
    }

    /// Advances the time. Returns the greetings and tallies that are due, for hosts to which there is a way.
    pub(crate) fn tick(&mut self, now: Time, has_way: impl Fn(u64) -> bool) -> Vec<(u64, Vec<u8>)> {
        self.now = now;
        if let Some(identity) = self.watch.renewed() {
            self.identity = identity;
            self.recheck = now;
        }
        if now >= self.recheck {
            self.recheck = now + RECHECK;
            for p in &mut self.peers {
                let over = |(_, c): &mut (_, CertificateDer<'_>)| !self.identity.counts(c, &p.name);
                if p.session.take_if(over).is_some() {
                    tracing::warn!(
                        host = p.name,
                        "its certificate is no longer valid: nothing is sealed for it"
                    );
                }
            }
        }
        if now >= self.next_look {
            self.next_look = now + APART;
            for p in &mut self.peers {
                let (had, has) = (p.has_way, has_way(p.host));
                p.has_way = has;
                if has && !had && p.is_ready() {
                    self.ready.push((p.host, false));
                }
            }
        }
        let mut out = Vec::new();
        for p in self.peers.iter_mut().filter(|p| p.has_way && p.is_ready()) {
            if let (Some(asks), Some((session, _))) = (p.evidence.report_due(now), &p.session) {
                if asks {
                    p.evidence.asks(now);
                }
                let opened = p.evidence.opened;
                let tally = Tally { opened, asks }.seal(&session.seals, self.serial);
                self.serial += 1;
                out.extend(tally.map(|bytes| (p.host, bytes)));
            }
        }
        for p in self.peers.iter_mut().filter(|p| p.host != self.own) {
            let waits = !p.is_ready() && now >= p.next;
            let answers = p.due && p.greeted.is_none_or(|t| now >= t + APART);
            if !(waits || answers) {
                continue;
            }
            if !has_way(p.host) {
                p.due = false;
                continue;
            }
            if waits {
                (p.next, p.pause) = (now + p.pause, (p.pause * 2).min(AGAIN.1));
                p.evidence.asks(now);
            }
            (p.due, p.greeted) = (false, Some(now));
            if let Some(bytes) = p.greet(self.own, &self.identity, &self.random) {
                out.push((p.host, bytes));
            }
        }
        out
    }

    /// When [`Seals::tick`] is due.
    pub(crate) fn next_timeout(&self) -> Time {
        let peers = self.peers.iter().filter(|p| p.host != self.own);
        let answers = peers.clone().filter(|p| p.due);
        let answers = answers.map(|p| p.greeted.map_or(self.now, |t| t + APART));
        // Hosts without a way are checked again soon.
        let waits = peers
            .filter(|p| !p.is_ready())
            .map(|p| p.next.max(self.now + APART));
        let notices = self
            .notices
            .iter()
            .map(|(_, _, at, _)| (*at).max(self.now + APART));
        let tallies = self
            .peers
            .iter()
            .any(|p| p.evidence.opened > 0 || p.evidence.asked);
        let tallies = tallies.then_some(self.next_look);
        answers
            .chain(tallies)
            .chain(waits)
            .chain(notices)
            .fold(self.recheck, Time::min)
    }

    /// The hosts that messages do not reach, despite the reports of the neighbour on the way. Each is
    /// returned once.
    pub(crate) fn lost(&mut self, now: Time) -> Vec<u64> {
        let peers = self.peers.iter_mut();
        peers
            .filter_map(|p| p.evidence.is_lost(now).then_some(p.host))
            .collect()
    }

    /// A neighbour reports that a host declined a flow of this one.
    pub(crate) fn declined(&mut self, key: &FlowKey, host: u64) {
        if let Some(p) = self.peers.iter_mut().find(|p| p.host == host) {
            p.evidence.declined(key);
        }
    }

    /// Handles a greeting or a tally of the host `source`, brought by the neighbour `by`.
    pub(crate) fn hear(&mut self, now: Time, by: PeerId, source: u64, bytes: &[u8]) {
        if Tally::is_one(bytes) {
            let p = self.peers.iter_mut().find(|p| p.host == source);
            let session = p.and_then(|p| Some((&mut p.evidence, &p.session.as_ref()?.0)));
            let opened = session.map(|(e, s)| Tally::open(&s.opens, bytes).map(|t| (e, t)));
            match opened {
                Some(Ok((e, (tally, serial)))) => e.heard(serial, tally.opened, tally.asks),
                _ => self.stats.greetings_refused += 1,
            }
            return;
        }
        let known = self.peers.iter_mut().find(|p| p.host == source);
        let Some(p) = known.filter(|_| may_bring(&mut self.brings, by, now)) else {
            self.stats.greetings_refused += 1;
            return;
        };
        let heard = Greeting::read((source, self.own), bytes);
        let g = match heard {
            Ok(g) if self.identity.counts(&g.certificate(), &p.name) => g,
            other => {
                self.stats.greetings_refused += 1;
                if p.may_notify(now) {
                    let why = other
                        .err()
                        .map_or("its certificate is not valid".into(), |e| e.to_string());
                    tracing::warn!(host = p.name, why, "refused a greeting over a relay");
                }
                return;
            }
        };
        p.echo = g.challenge;
        (p.next, p.pause) = (now + AGAIN.0, AGAIN.0);
        let answers = g.echo == p.challenge;
        if answers {
            // A greeting without the echo may be an old one that a relay kept.
            p.evidence.greeted();
        }
        let session = p.session.as_mut().map(|(s, _)| s);
        if let Some(session) = session.filter(|s| s.id == g.session) {
            (p.due, p.is_new) = (p.due || g.asks, false);
            if !session.confirmed {
                session.confirmed = true;
                self.ready.push((source, true));
            }
        } else if g.session == 0 && p.session.as_ref().is_some_and(|(s, _)| s.theirs == g.public) {
            // It has not agreed yet.
            (p.due, p.is_new) = (true, false);
        } else if answers && let Some(pending) = p.pending.take() {
            // A new key of a host that is alive: it answered a fresh challenge.
            p.challenge = fresh(&self.random);
            let agreed = pending.agree(self.own, source, &g.public);
            (p.due, p.is_new) = (true, false);
            if let Some(mut session) = agreed {
                session.confirmed = g.session == session.id;
                if session.confirmed {
                    self.ready.push((source, true));
                }
                tracing::info!(host = p.name, "agreed on keys for messages over relays");
                p.session = Some((session, g.certificate()));
                p.evidence = Evidence::default();
            }
        } else {
            (p.due, p.is_new) = (true, true);
        }
    }

    /// The messages to offer now: to hosts with new keys, those that waited for them or are latched, and
    /// notices (without a message).
    pub(crate) fn due(&mut self, now: Time) -> Vec<(FlowKey, u64, Option<Message<Outgoing>>)> {
        let mut out = Vec::new();
        for (host, anew) in std::mem::take(&mut self.ready) {
            let mut of_it = Vec::new();
            for (key, kept) in &mut self.kept {
                if let Some(i) = kept.to.iter().position(|h| *h == host) {
                    of_it.push(key.clone());
                    let again = kept.again(now, 1 << i, anew).into_iter();
                    out.extend(again.map(|m| (key.clone(), 1 << i, Some(m))));
                }
            }
            for key in of_it.iter().filter(|_| anew) {
                self.notify(now, key, host);
            }
        }
        for (key, bit, at, sent) in &mut self.notices {
            if now >= *at {
                out.push((key.clone(), *bit, None));
                *sent += 1;
                *at = now + NOTICES.get(*sent).copied().unwrap_or_default();
            }
        }
        self.notices.retain(|(.., sent)| *sent < NOTICES.len());
        out
    }

    /// Returns whether a message of a flow was sealed for the host `bit` since it has its present keys, which
    /// proves the topic as well as a notice does.
    pub(crate) fn has_sealed(&self, key: &FlowKey, bit: u64) -> bool {
        self.kept.get(key).is_some_and(|k| k.sealed & bit != 0)
    }

    /// Records that a way was abandoned since nothing arrived over it. Returns until when it is doubted.
    pub(crate) fn doubts(&mut self, now: Time, host: &str, over: &str) -> Time {
        self.stats.doubted += 1;
        tracing::warn!(
            host,
            over,
            "nothing arrives over this path: using another one if possible"
        );
        now + evidence::DOUBTED
    }

    /// Sets whether the messages offered next were kept before.
    pub(crate) fn offers_again(&mut self, again: bool) {
        self.again = again;
    }

    /// Returns whether a host has proved that a topic with this announcement is its own.
    pub(crate) fn knows(&self, source: u64, context: &[u8; 32]) -> bool {
        let session = self.peers.iter().find(|p| p.host == source);
        let session = session.and_then(|p| p.session.as_ref());
        session.is_some_and(|(s, _)| s.knows(context))
    }

    /// Opens a message of the host `source`, for this host with the bit `own`.
    ///
    /// # Errors
    /// The reason under which its loss is counted.
    pub(crate) fn open(
        &mut self,
        source: u64,
        own: u64,
        label: &Label,
        mut bytes: Vec<u8>,
    ) -> Result<Opened, DropReason> {
        let p = self.peers.iter_mut().find(|p| p.host == source);
        let session = p.as_ref().and_then(|p| p.session.as_ref());
        let opened = match session {
            Some((s, _)) if s.has(&label.context, label.number) => return Err(DropReason::OtherWay),
            Some((s, _)) => envelope::open(label, own, &s.opens, &mut bytes),
            None => Err(SealError::Key),
        };
        let (shape, from, to) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                if let Some(p) = p.filter(|_| error != SealError::Key)
                    && p.may_notify(clock::monotonic())
                {
                    tracing::warn!(host = p.name, %error, "refused a message over a relay");
                }
                return Err(self.refuse(error != SealError::Key));
            }
        };
        let session = p.and_then(|p| Some((&mut p.evidence, &mut p.session.as_mut()?.0)));
        let noted = session.is_some_and(|(evidence, s)| {
            evidence.opened += 1;
            s.note(&label.context, label.number)
        });
        if !noted {
            return Err(DropReason::HoldLimit);
        }
        self.stats.opened += 1;
        self.stats.opened_bytes += (to - from) as u64;
        Ok(match shape {
            Shape::Notice => Opened::Notice,
            Shape::Message(geometry) => {
                bytes.truncate(to);
                bytes.drain(..from);
                Opened::Message(geometry, bytes)
            }
        })
    }

    /// Counts a refused message that arrived over a relay.
    pub(crate) fn refuse(&mut self, forged: bool) -> DropReason {
        if forged {
            self.stats.forged += 1;
            DropReason::Forged
        } else {
            self.stats.unsealed += 1;
            DropReason::Unsealed
        }
    }
}

impl Sealer<Outgoing> for Seals {
    fn seal(&mut self, of: &Sealing<'_>, message: &Message<Outgoing>) -> Sealed<Outgoing> {
        if of.key.topic == GREETING {
            return Sealed::Clear;
        }
        if let Some(hosts) = message.body.sealed_for() {
            return Sealed::For(message.body.clone(), hosts);
        }
        let Some(kept) = self.kept.get_mut(of.key) else {
            return Sealed::Nobody;
        };
        let (mut hosts, mut keys): (u64, Vec<&DirectedKey>) = (0, Vec::new());
        for (i, host) in of.via.to.iter().enumerate().filter(|(i, _)| of.to >> i & 1 == 1) {
            let session = self.peers.iter().find(|p| p.host == *host && p.is_ready());
            if let Some((session, _)) = session.and_then(|p| p.session.as_ref()) {
                hosts |= 1 << i;
                keys.push(&session.seals);
            }
        }
        let missing = of.to & !of.own & !hosts;
        let is_notice = message.body.is_notice();
        let keeps = !self.again
            && !is_notice
            && kept.offered(clock::monotonic(), of, message, missing)
            && missing != 0;
        if hosts & !of.own == 0 {
            return if keeps { Sealed::Later } else { Sealed::Nobody };
        }
        let label = Label {
            context: kept.context,
            number: of.number,
            stamp: message.stamp.0,
            origin: message.origin,
        };
        let mut secret = [0; SECRET];
        if keys.len() > 1 && self.random.fill(&mut secret).is_err() {
            return Sealed::Nobody;
        }
        let shape = match is_notice {
            true => Shape::Notice,
            false => Shape::Message(message.body.geometry()),
        };
        let content = |to: &mut [u8]| message.body.copy_at(0, to);
        let sealed = envelope::seal(&label, (hosts, &keys), self.serial, &secret, shape, content);
        self.serial += 1;
        let Some(bytes) = sealed else {
            return Sealed::Nobody;
        };
        for p in &mut self.peers {
            let at = of.via.to.iter().position(|h| *h == p.host);
            if at.is_some_and(|i| hosts & !of.own & (1 << i) != 0) {
                let bytes = message.body.geometry().total_len();
                p.evidence.sent(clock::monotonic(), of.key, bytes);
            }
        }
        if !is_notice {
            kept.sealed |= hosts & !of.own;
        }
        self.stats.sealed += 1;
        self.stats.sealed_bytes += u64::from(message.body.geometry().total_len());
        Sealed::For(Outgoing::sealed(bytes, hosts), hosts)
    }

    fn missed(&mut self, of: &Sealing<'_>, message: &Message<Outgoing>) {
        if let Some(kept) = self.kept.get_mut(of.key).filter(|_| !self.again) {
            kept.offered(clock::monotonic(), of, message, of.to);
        }
    }
}

impl Peer {
    /// Returns whether both hosts know that they share keys.
    fn is_ready(&self) -> bool {
        self.session.as_ref().is_some_and(|(s, _)| s.confirmed)
    }

    fn may_notify(&mut self, now: Time) -> bool {
        let may = self.notified.is_none_or(|t| now >= t + SILENT);
        if may {
            self.notified = Some(now);
        }
        may
    }

    fn greet(&mut self, own: u64, identity: &Identity, random: &SystemRandom) -> Option<Vec<u8>> {
        let session = self.session.as_ref().map(|(s, _)| s);
        let public = match session.filter(|_| !self.is_new) {
            Some(s) => s.own,
            None => {
                if self.pending.is_none() {
                    self.pending = Pending::new(random);
                }
                self.pending.as_ref()?.public
            }
        };
        let said = Greeting {
            asks: !self.is_ready(),
            public,
            challenge: self.challenge,
            echo: self.echo,
            session: session.map_or(0, |s| s.id),
            certificate: &identity.certificate,
        };
        Some(said.sign((own, self.host), &identity.key))
    }
}

fn fresh(random: &SystemRandom) -> [u8; 16] {
    let mut bytes = [0; 16];
    // Without random numbers there are no keys either.
    let _ = random.fill(&mut bytes);
    bytes
}

/// Returns whether a neighbour may bring another greeting at `now` ([`GREETINGS`]).
fn may_bring(brings: &mut BTreeMap<PeerId, (f64, Time)>, by: PeerId, now: Time) -> bool {
    let (left, at) = brings.entry(by).or_insert((GREETINGS.0, now));
    *left = (*left + now.since(*at).as_secs_f64() * GREETINGS.1).min(GREETINGS.0);
    *at = now;
    let may = *left >= 1.0;
    if may {
        *left -= 1.0;
    }
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greetings_are_bounded_by_the_neighbour_that_brings_them() {
        let mut brings = BTreeMap::new();
        let mut at_once = |by, now| (0..1000).filter(|_| may_bring(&mut brings, by, now)).count();
        let (start, later) = (Time::ZERO, Time::ZERO + Duration::from_secs(2));
        assert_eq!(at_once(PeerId(0), start), 64);
        assert_eq!(at_once(PeerId(1), start), 64, "another has its own");
        assert_eq!(at_once(PeerId(0), later), 16);
        assert_eq!(at_once(PeerId(0), later + Duration::from_secs(60)), 64);
    }
}
