//! Reports peers that do not answer: which, where, for how long, and what to check. Reported in the log and
//! in the status, at either end.

use crate::carrier::Carrier;
use crate::config::{CarrierKind, Config, PeerConfig};
use proto::{PeerId, PeerStats, Radio};
use serde::Serialize;
use stats::Time;
use std::fmt::Write;
use std::time::Duration;

/// A peer is reported after it has not answered for this long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The log repeats the report after the first interval, which then doubles up to the second.
const AGAIN: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(600));
/// A peer whose datagrams arrived within this time is alive, and does not receive this host's datagrams.
const LATELY: Duration = Duration::from_secs(2);

/// A peer that does not answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unheard {
    /// How long it has not answered, in seconds.
    pub for_s: f64,
    /// Whether it has answered since the link started.
    pub ever: bool,
    /// Its expected address; none on a serial line.
    pub address: Option<String>,
    /// The whole report as text, with what to check.
    pub text: String,
}

/// Watches the peers of one radio.
#[derive(Debug)]
pub(crate) struct Reach {
    start: Time,
    peers: Vec<Silence>,
}

#[derive(Clone, Debug, Default)]
struct Silence {
    ever: bool,
    since: Option<Time>,
    /// When the log repeats the report, and the interval after that.
    next: Option<(Time, Duration)>,
    now: Option<Unheard>,
}

/// Known facts about a peer.
pub(crate) struct Facts<'a> {
    pub(crate) peer: &'a PeerConfig,
    pub(crate) carrier: CarrierKind,
    pub(crate) stats: &'a PeerStats,
    /// The carrier's explanation.
    pub(crate) trouble: Option<String>,
}

impl Reach {
    pub(crate) fn new(start: Time) -> Self {
        Reach {
            start,
            peers: Vec::new(),
        }
    }

    /// Checks all peers of a radio, and logs due reports.
    pub(crate) fn look_at<B: proto::Body>(
        &mut self,
        now: Time,
        (config, peers): (&Config, &[PeerId]),
        radio: &Radio<B>,
        carrier: &impl Carrier,
    ) {
        for (i, (peer, id)) in std::iter::zip(&config.peers, peers).enumerate() {
            let Some(stats) = radio.peer_stats(*id) else {
                continue;
            };
            let trouble = (!stats.up).then(|| carrier.trouble(i)).flatten();
            let facts = Facts {
                peer,
                carrier: config.carrier(),
                stats: &stats,
                trouble,
            };
            if let Some(line) = self.look(now, i, &facts) {
                tracing::warn!("{line}");
            }
        }
    }

    /// Checks a peer. Returns the report to log, if one is due.
    pub(crate) fn look(&mut self, now: Time, peer: usize, facts: &Facts<'_>) -> Option<String> {
        if self.peers.len() <= peer {
            self.peers.resize(peer + 1, Silence::default());
        }
        let silence = &mut self.peers[peer];
        if facts.stats.up {
            *silence = Silence {
                ever: true,
                ..Silence::default()
            };
            return None;
        }
        let start = if silence.ever { now } else { self.start };
        let since = *silence.since.get_or_insert(start);
        let span = now.since(since);
        if span < PATIENCE {
            return None;
        }
        let unheard = Unheard {
            for_s: (span.as_secs_f64() * 10.0).round() / 10.0,
            ever: silence.ever,
            address: facts.peer.address.map(|a| a.to_string()),
            text: text(facts, silence.ever, span, now),
        };
        let text = unheard.text.clone();
        silence.now = Some(unheard);
        let (next, pause) = silence.next.unwrap_or((now, AGAIN.0));
        (next <= now).then(|| {
            silence.next = Some((now + pause, (pause * 2).min(AGAIN.1)));
            text
        })
    }

    /// The report of a peer that does not answer at present.
    pub(crate) fn unheard(&self, peer: usize) -> Option<Unheard> {
        self.peers.get(peer)?.now.clone()
    }
}

fn text(facts: &Facts<'_>, ever: bool, span: Duration, now: Time) -> String {
    let Facts {
        peer,
        carrier,
        stats,
        trouble,
    } = facts;
    let (name, span) = (&peer.name, in_words(span));
    let at = peer.address.map(|a| format!(" at {a}")).unwrap_or_default();
    let mut text = if ever {
        format!("{name} has not answered{at} for {span}")
    } else {
        format!("{name} has not answered{at} since this link started {span} ago")
    };
    if let Some(theirs) = stats.other_version {
        let _ = write!(
            text,
            ": it speaks version {theirs} of the link's protocol, this host version {}: run the same release on both",
            proto::VERSION
        );
    } else if let Some(trouble) = trouble {
        let _ = write!(text, ": {trouble}");
    } else if stats.session != 0 && now.since(stats.last_heard) < LATELY {
        let _ = write!(
            text,
            ": its datagrams arrive here, but it receives none of this host's: check this host's address in its \
             configuration, and that its port accepts datagrams"
        );
    } else {
        let check = match carrier.transport() {
            None => "check the cable, that its link runs, and that `radio.baud` is the same at both ends"
                .to_owned(),
            Some(transport) => {
                let keys = match carrier.has_keys() {
                    true => ", that both hosts have keys of one team (`ropewalk keys --help`)",
                    false => "",
                };
                let port = peer.address.map_or(0, |a| a.port());
                format!(
                    "check that its link runs and lists this host, that this is its address, that \
                     {transport} port {port} is open on the path{keys}"
                )
            }
        };
        let _ = write!(text, ": {check}");
    }
    text
}

fn in_words(span: Duration) -> String {
    match span.as_secs() {
        s if s < 120 => format!("{s} s"),
        s if s < 7200 => format!("{} min", s / 60),
        s => format!("{} h", s / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::parse(
            "host: robot\nkeys: keys/robot\nradio: {bind: '0.0.0.0:7400', rate: 6Mbit/s}\n\
             peers:\n  - {name: base, address: '192.168.1.7:7400'}\n",
        )
        .expect("is good")
    }

    fn looks(
        reach: &mut Reach,
        at: f64,
        up: bool,
        but: impl Fn(&mut Facts<'_>, &mut PeerStats),
    ) -> Option<String> {
        let (config, mut stats) = (
            config(),
            PeerStats {
                up,
                ..PeerStats::default()
            },
        );
        let mut facts = Facts {
            peer: &config.peers[0],
            carrier: config.carrier(),
            stats: &PeerStats::default(),
            trouble: None,
        };
        but(&mut facts, &mut stats);
        facts.stats = &stats;
        reach.look(Time((at * 1e9) as u64), 0, &facts)
    }

    #[test]
    fn peers_that_never_answered_are_named_after_five_seconds_and_then_rarely() {
        let mut reach = Reach::new(Time::ZERO);
        let mut said = Vec::new();
        for tenth in 0..36_000 {
            let at = f64::from(tenth) / 10.0;
            said.extend(looks(&mut reach, at, false, |_, _| {}).map(|text| (at, text)));
        }
        let times: Vec<f64> = said.iter().map(|(at, _)| *at).collect();
        assert_eq!(
            times,
            [
                5.0, 35.0, 95.0, 215.0, 455.0, 935.0, 1535.0, 2135.0, 2735.0, 3335.0
            ]
        );
        assert_eq!(
            said[0].1,
            "base has not answered at 192.168.1.7:7400 since this link started 5 s ago: check that its link runs and lists this \
             host, that this is its address, that UDP port 7400 is open on the path, that both hosts have keys of one team \
             (`ropewalk keys --help`)"
        );
        let unheard = reach.unheard(0).expect("it is silent");
        assert_eq!(
            (unheard.ever, unheard.address.as_deref()),
            (false, Some("192.168.1.7:7400"))
        );
    }

    #[test]
    fn peers_that_answer_and_are_lost_again_are_named_again() {
        let mut reach = Reach::new(Time::ZERO);
        assert!(looks(&mut reach, 6.0, false, |_, _| {}).is_some());
        assert!(looks(&mut reach, 7.0, true, |_, _| {}).is_none());
        assert_eq!(reach.unheard(0), None);
        assert!(looks(&mut reach, 8.0, false, |_, _| {}).is_none());
        let text = looks(&mut reach, 14.0, false, |_, _| {}).expect("the report is repeated");
        assert!(
            text.starts_with("base has not answered at 192.168.1.7:7400 for 6 s: "),
            "{text}"
        );
    }

    #[test]
    fn a_known_cause_is_stated_instead_of_what_to_check() {
        let cause = |but: fn(&mut Facts<'_>, &mut PeerStats)| {
            let mut reach = Reach::new(Time::ZERO);
            looks(&mut reach, 6.0, false, but).expect("it does not answer")
        };
        let old = cause(|_, stats| stats.other_version = Some(5));
        assert!(old.contains("speaks version 5 of the link's protocol"), "{old}");
        let refused = cause(|facts, _| facts.trouble = Some("it does not list this host".into()));
        assert!(refused.ends_with(": it does not list this host"), "{refused}");
        let deaf = cause(|_, stats| (stats.session, stats.last_heard) = (7, Time::from_millis(5_500)));
        assert!(
            deaf.contains("arrive here, but it receives none of this host's"),
            "{deaf}"
        );
    }
}
