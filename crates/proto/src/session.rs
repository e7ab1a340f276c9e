//! Whether a peer is up, and which run of it.

use crate::config::RadioConfig;
use core::time::Duration;
use stats::Time;
use std::collections::VecDeque;

/// Least interval between greetings that answer something.
const REPLY_SPACING: Duration = Duration::from_millis(50);
/// Number of past sessions that are remembered, so that a late datagram does not bring one back.
const RETIRED: usize = 8;

/// A new run of the peer counts once the old run has been silent for this long although it was asked: a host that has
/// restarted no longer sends as the old run.
const SUCCESSION: Duration = Duration::from_millis(150);
/// Two runs that are heard this long after each other are alive at the same time, on two hosts: no datagram is delayed
/// by as much.
const BESIDE: Duration = Duration::from_millis(100);

/// A timeout that fires later than this was slept through: the host was suspended or had no processor.
pub(crate) const OVERSLEPT: Duration = Duration::from_millis(200);

/// Interval of greetings to a silent peer that another route leads to: over 802.11 a frame to a host out of reach is
/// tried eight times, and the frames behind it in the device queue wait that long.
const SELDOM: Duration = Duration::from_secs(2);

/// Share of lost datagrams from which on keep-alives are sent `MORE_OFTEN` times as often.
const LOSSY: f64 = 0.03;
const MORE_OFTEN: u32 = 4;

/// Meaning of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// This host's own, reflected; one of a session that is over; or one of a session that has to wait until the known
    /// one is silent.
    Ignored,
    /// The datagram belongs to the known session.
    Known,
    /// Of a new session; all state of the one before is void.
    New {
        /// There was a session before.
        restarted: bool,
    },
}

/// Handshake and liveness of one peer.
///
/// Both ends greet until each knows that the other hears it; from then on any datagram shows that the other end is
/// alive.
#[derive(Debug)]
pub(crate) struct Session {
    ours: u32,
    remote: Option<u32>,
    retired: VecDeque<u32>,
    /// Another session that contends for the place of the known one, and since when.
    contender: Option<(u32, Time)>,
    /// The peer has confirmed that it knows our session.
    confirmed: bool,
    up: bool,
    heard: Time,
    sent: Time,
    greeted: Option<Time>,
    greet_at: Time,
    greet_due: bool,
    ping_due: bool,
    greet_every: Duration,
    /// Another route leads to the peer.
    elsewhere: bool,
    keep_alive: Duration,
    lost_after: Duration,
}

impl Session {
    pub(crate) fn new(now: Time, config: &RadioConfig) -> Self {
        Session {
            ours: config.session,
            remote: None,
            retired: VecDeque::new(),
            contender: None,
            confirmed: false,
            up: false,
            heard: now,
            sent: now,
            greeted: None,
            greet_at: Time::MAX,
            greet_due: true,
            ping_due: false,
            greet_every: config.hello_interval,
            elsewhere: false,
            keep_alive: config.keep_alive,
            lost_after: config.lost_after,
        }
    }

    /// Sends keep-alives more often where they get lost: otherwise a burst of loss looks like silence.
    pub(crate) fn set_keep_alive(&mut self, config: &RadioConfig, loss: f64) {
        let often = if loss < LOSSY { 1 } else { MORE_OFTEN };
        self.keep_alive = config.keep_alive / often;
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    pub(crate) fn remote(&self) -> Option<u32> {
        self.remote
    }

    pub(crate) fn heard_at(&self) -> Time {
        self.heard
    }

    /// Handles a greeting whose sender knows our session as `seen` and may ask for an answer.
    pub(crate) fn greeting(&mut self, now: Time, session: u32, seen: u32, asks: bool) -> Greeting {
        // A datagram of a past run may still arrive late. But if that past run was taken for the new one, the live run
        // is among the retired, and gets its place back once the other stays silent.
        let over = self.retired.contains(&session) && now < self.heard + self.lost_after;
        if session == self.ours || over {
            return Greeting::Ignored;
        }
        let new = self.remote != Some(session);
        if new && self.up && self.waits(now, session) {
            // Asks, so that the known session shows whether it is still there.
            self.greet_soon(now);
            return Greeting::Ignored;
        }
        self.retired.retain(|s| *s != session);
        let restarted = new && self.remote.is_some();
        if new {
            self.contender = None;
            if let Some(old) = self.remote.replace(session) {
                self.retired.truncate(RETIRED - 1);
                self.retired.push_front(old);
            }
            self.up = false;
            self.confirmed = false;
        }
        self.confirmed |= seen == self.ours;
        // An answer does not ask in turn once both are up, so this ends.
        if new || asks || seen != self.ours {
            self.greet_soon(now);
        }
        if new {
            Greeting::New { restarted }
        } else {
            Greeting::Known
        }
    }

    /// Whether a session that contends for the place of the known one still has to wait.
    fn waits(&mut self, now: Time, session: u32) -> bool {
        let since = match self.contender {
            Some((contender, since)) if contender == session => since,
            _ => now,
        };
        self.contender = Some((session, since));
        now < self.heard.max(since) + SUCCESSION
    }

    /// Whether a session belongs to another host with the same name as the peer: both are heard at the same time.
    pub(crate) fn is_of_another_host(&self, session: u32) -> bool {
        (self.contender)
            .is_some_and(|(contender, since)| contender == session && self.up && self.heard >= since + BESIDE)
    }

    /// A datagram of a session other than the peer's arrived: greet, so that the two ends find each other.
    pub(crate) fn other_session(&mut self, now: Time, session: u32) {
        if session != self.ours && !self.retired.contains(&session) {
            self.greet_soon(now);
        }
    }

    /// A datagram of the peer's session arrived. Returns true if that brings the peer up.
    pub(crate) fn hear(&mut self, now: Time) -> bool {
        self.heard = now;
        if !self.confirmed {
            // The peer may be up already, and its confirmation lost.
            self.greet_soon(now);
        }
        let rises = self.confirmed && !self.up;
        if rises {
            self.up = true;
            // The peer may not know yet that this host knows it, and ignores everything until it does.
            self.greet_due |= self.greet_at != Time::MAX;
            self.greet_at = Time::MAX;
        }
        rises
    }

    /// Another route leads to the peer, or no longer does: then greetings become frequent again.
    pub(crate) fn leads_elsewhere(&mut self, now: Time, elsewhere: bool) {
        if self.elsewhere && !elsewhere && self.greet_at != Time::MAX {
            self.greet_at = self.greet_at.min(now + self.greet_every);
        }
        self.elsewhere = elsewhere;
    }

    fn greet_soon(&mut self, now: Time) {
        let at = self.greeted.map_or(now, |t| now.max(t + REPLY_SPACING));
        if at <= now {
            self.greet_due = true;
        } else {
            self.greet_at = self.greet_at.min(at);
        }
    }

    /// Advances time. Returns true if that loses the peer.
    pub(crate) fn tick(&mut self, now: Time) -> bool {
        let slept = self
            .next_timeout()
            .map_or(Duration::ZERO, |asked| now.since(asked));
        if slept > OVERSLEPT {
            // Nothing could be received meanwhile.
            self.heard = now.min(self.heard + slept);
        }
        let lost = self.up && now >= self.heard + self.lost_after;
        if lost {
            self.up = false;
            self.greet_due = true;
        }
        if now >= self.greet_at {
            self.greet_due = true;
            self.greet_at = Time::MAX;
        }
        if self.up && now >= self.sent + self.keep_alive {
            self.ping_due = true;
        }
        lost
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        let greet = (!self.greet_due && self.greet_at != Time::MAX).then_some(self.greet_at);
        let lost = self.up.then(|| self.heard + self.lost_after);
        let ping = (self.up && !self.ping_due).then(|| self.sent + self.keep_alive);
        greet.into_iter().chain(lost).chain(ping).min()
    }

    /// Whether a greeting is due.
    pub(crate) fn greet_due(&self) -> bool {
        self.greet_due
    }

    /// Whether a keep-alive is due, if there is nothing else to send.
    pub(crate) fn ping_due(&self) -> bool {
        self.up && self.ping_due
    }

    /// A greeting was sent.
    pub(crate) fn greeted(&mut self, now: Time) {
        self.greeted = Some(now);
        self.greet_due = false;
        self.greet_at = match (self.up, self.elsewhere) {
            (true, _) => Time::MAX,
            (_, true) => now + SELDOM.max(self.greet_every),
            _ => now + self.greet_every,
        };
    }

    /// A datagram was sent.
    pub(crate) fn sent(&mut self, now: Time) {
        self.sent = now;
        self.ping_due = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airtime::AirtimeModel;

    fn session(id: u32) -> Session {
        Session::new(Time::ZERO, &RadioConfig::new(id, AirtimeModel::unlimited()))
    }

    #[test]
    fn a_late_greeting_of_an_earlier_run_changes_nothing() {
        let mut s = session(1);
        assert_eq!(
            s.greeting(Time(1), 10, 1, true),
            Greeting::New { restarted: false }
        );
        assert!(s.hear(Time(1)));
        s.greeting(Time::from_millis(1), 11, 0, true);
        let at = |ns| Time(Time::from_millis(200).0 + ns);
        assert_eq!(s.greeting(at(2), 11, 0, true), Greeting::New { restarted: true });
        assert!(!s.hear(at(2)), "the new run has not heard us yet");
        assert_eq!(s.greeting(at(3), 10, 1, true), Greeting::Ignored);
        assert_eq!(s.remote(), Some(11));
        assert_eq!(s.greeting(at(4), 11, 1, true), Greeting::Known);
        assert!(s.hear(at(4)));
        assert_eq!(
            s.greeting(at(5), 1, 0, true),
            Greeting::Ignored,
            "our own, reflected"
        );
    }

    #[test]
    fn the_run_that_lives_gets_its_place_back() {
        let mut s = session(1);
        s.greeting(Time(1), 10, 1, true);
        s.hear(Time(1));
        // Late, from an earlier run that never got through.
        s.greeting(Time(2), 9, 0, true);
        let at = Time::from_millis;
        assert_eq!(s.greeting(at(200), 9, 0, true), Greeting::New { restarted: true });
        s.hear(at(200));
        assert_eq!(s.greeting(at(500), 10, 1, true), Greeting::Ignored);
        assert_eq!(
            s.greeting(at(1_201), 10, 1, true),
            Greeting::New { restarted: true }
        );
        assert!(s.hear(at(1_201)));
        assert_eq!(s.greeting(at(1_202), 9, 0, true), Greeting::Ignored);
    }

    #[test]
    fn a_new_run_waits_until_the_old_one_is_silent() {
        let mut s = session(1);
        let at = Time::from_millis;
        s.greeting(at(0), 10, 1, true);
        assert!(s.hear(at(0)));
        assert_eq!(s.greeting(at(1), 11, 0, true), Greeting::Ignored);
        assert!(s.greet_due(), "the old one is asked whether it is there");
        // A datagram that was on its way when the host restarted.
        s.hear(at(20));
        assert_eq!(s.greeting(at(160), 11, 0, true), Greeting::Ignored);
        assert!(!s.is_of_another_host(11));
        assert_eq!(
            s.greeting(at(171), 11, 0, true),
            Greeting::New { restarted: true }
        );
    }

    #[test]
    fn of_two_hosts_with_one_name_the_first_stays() {
        let mut s = session(1);
        let at = Time::from_millis;
        s.greeting(at(0), 10, 1, true);
        s.hear(at(0));
        for ms in (1..10_000).step_by(50) {
            assert_eq!(s.greeting(at(ms), 11, 0, true), Greeting::Ignored);
            assert_eq!(s.is_of_another_host(11), ms > 101, "at {ms}");
            s.hear(at(ms + 10));
        }
        assert_eq!(s.remote(), Some(10));
        // It takes the place once that is free.
        assert_eq!(
            s.greeting(at(11_000), 11, 0, true),
            Greeting::New { restarted: true }
        );
        assert!(!s.is_of_another_host(11) && !s.is_of_another_host(10));
    }

    #[test]
    fn unknown_sessions_cannot_make_us_greet_endlessly() {
        let mut s = session(1);
        s.greeted(Time::ZERO);
        let mut sent = 0;
        for ms in 0..1000 {
            let now = Time::from_millis(ms);
            s.other_session(now, 99 + ms as u32);
            s.tick(now);
            if s.greet_due() {
                s.greeted(now);
                sent += 1;
            }
        }
        assert!(sent <= 20, "{sent} greetings in a second");
    }

    #[test]
    fn this_hosts_sleep_is_not_its_peers_silence() {
        let mut s = session(1);
        s.greeting(Time(1), 10, 1, true);
        assert!(s.hear(Time(1)));
        s.greeted(Time(2));
        s.sent(Time(2));
        // A keep-alive is due after 250 ms, and is checked for after ten seconds.
        assert!(!s.tick(Time::from_millis(10_000)) && s.ping_due());
        // From here on it is awake.
        s.sent(Time::from_millis(10_000));
        let mut now = Time::ZERO;
        while s.is_up() {
            now = s.next_timeout().expect("is up");
            if !s.tick(now) && s.ping_due() {
                s.sent(now);
            }
        }
        let since = now.since(Time::from_millis(10_000));
        assert!((700..=1_000).contains(&since.as_millis()), "{since:?}");
    }

    #[test]
    fn a_lost_answer_is_asked_for_again() {
        let mut s = session(1);
        s.greeting(Time(1), 10, 1, true);
        assert!(s.hear(Time(1)));
        s.greeted(Time(2));
        let later = Time::from_millis(100);
        s.greeting(later, 10, 1, false);
        assert!(!s.greet_due(), "an answer is not answered");
        s.greeting(later, 10, 1, true);
        assert!(s.greet_due(), "the other end has not heard ours");
    }
}
