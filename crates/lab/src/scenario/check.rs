//! Turns a parsed scenario into a valid one; every error names line and column.

use super::settings::{Change, Target};
use super::yaml::{
    Written, WrittenHearing, WrittenMedium, WrittenProfile, WrittenStandard, WrittenTopology, WrittenWifi,
    WrittenWire,
};
use super::{Kind, MAX_EVENTS, MAX_HOSTS, MAX_MEDIA, Medium, Scenario, ScenarioError, Settings, Wifi, Wire};
use crate::sys::MAX_DEVICE_NAME;
use medium::{Hearing, Standard, Topology};
use serde_saphyr::Spanned;
use stats::quantity;
use std::path::Path;
use std::time::Duration;

/// Queue of a long haul in bytes: a fifth of a second at 10 Mbit/s.
const LONG_HAUL_QUEUE: usize = 250_000;

/// A message and the value that it is about.
struct Problem {
    line: u64,
    column: u64,
    text: String,
}

/// Refuses a value.
fn bad<T>(at: &Spanned<T>, text: impl Into<String>) -> Problem {
    Problem {
        line: at.referenced.line(),
        column: at.referenced.column(),
        text: text.into(),
    }
}

pub(super) fn scenario(written: Written, text: &str, place: &str) -> Result<Scenario, ScenarioError> {
    let refuse = |p: Problem| ScenarioError::Bad {
        place: format!("{place}:{}:{}", p.line, p.column),
        problem: p.text,
    };
    let is_file = place.contains(['/', '.']);
    let stem = Path::new(place).file_stem().filter(|_| is_file);
    let mut scenario = Scenario {
        name: stem.map_or_else(|| place.to_owned(), |s| s.to_string_lossy().into_owned()),
        place: place.to_owned(),
        text: text.to_owned(),
        description: written.description.clone(),
        seed: written.seed,
        congestion_control: None,
        hosts: hosts(&written).map_err(refuse)?,
        media: Vec::new(),
        changes: Vec::new(),
    };
    if let Some(name) = &written.congestion_control {
        congestion_control(&name.value).map_err(|e| refuse(bad(name, e)))?;
        scenario.congestion_control = Some(name.value.clone());
    }
    scenario.media = media(&written, &scenario.hosts).map_err(refuse)?;
    scenario.changes = changes(&written, &scenario).map_err(refuse)?;
    scenario.plan()?;
    // The model has the last word, before anything is started.
    let whole = |problem| ScenarioError::Bad {
        place: place.to_owned(),
        problem,
    };
    let mut channels = scenario.channels::<()>().map_err(whole)?;
    for (at, change) in &scenario.changes {
        let applied = channels.apply(stats::Time::ZERO + *at, change);
        applied.map_err(|e| whole(format!("the event at {at:?}: {e}")))?;
    }
    Ok(scenario)
}

/// Whether `name` can be a congestion control of the kernel (TCP_CA_NAME_MAX is 16, including the zero).
pub(super) fn congestion_control(name: &str) -> Result<(), String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    if (1..=15).contains(&name.len()) && name.chars().all(good) {
        return Ok(());
    }
    Err(format!(
        "'{}' cannot be a TCP congestion control: name one of `sysctl net.ipv4.tcp_available_congestion_control`",
        name.escape_debug()
    ))
}

fn hosts(written: &Written) -> Result<Vec<String>, Problem> {
    let all = &written.hosts;
    if !(2..=MAX_HOSTS).contains(&all.value.len()) {
        let count = all.value.len();
        return Err(bad(
            all,
            format!("the lab has {count} hosts: give 2 to {MAX_HOSTS}"),
        ));
    }
    let mut names: Vec<String> = Vec::new();
    for name in &all.value {
        let host = &name.value;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let starts = host.starts_with(|c: char| c.is_ascii_lowercase());
        if host.len() > 63 || !starts || host.ends_with('-') || !host.chars().all(good) {
            return Err(bad(
                name,
                format!(
                    "'{host}' cannot be a host's name: use a letter, then a-z, 0-9 and '-', at most 63 \
                         characters"
                ),
            ));
        }
        if host == "localhost" {
            return Err(bad(name, "'localhost' is every host's own name: give another"));
        }
        if names.contains(host) {
            return Err(bad(
                name,
                format!("the host '{host}' is named twice: give each its own name"),
            ));
        }
        names.push(host.clone());
    }
    Ok(names)
}

fn media(written: &Written, hosts: &[String]) -> Result<Vec<Medium>, Problem> {
    let all = &written.media;
    if !(1..=MAX_MEDIA).contains(&all.value.len()) {
        let count = all.value.len();
        return Err(bad(
            all,
            format!("the lab has {count} media: give 1 to {MAX_MEDIA}"),
        ));
    }
    let mut media: Vec<Medium> = Vec::new();
    for medium in &all.value {
        let name = &medium.name.value;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if !(1..=MAX_DEVICE_NAME).contains(&name.len()) || !name.chars().all(good) || name == "lo" {
            return Err(bad(
                &medium.name,
                format!(
                    "'{name}' cannot be a medium's name, which also names its devices: use 1 to \
                     {MAX_DEVICE_NAME} characters of a-z and 0-9, not 'lo'"
                ),
            ));
        }
        if media.iter().any(|m| m.name == *name) || hosts.contains(name) {
            return Err(bad(
                &medium.name,
                format!("the name '{name}' is taken by another medium or a host: give another"),
            ));
        }
        media.push(one_medium(medium, hosts)?);
    }
    let lonely = (0..hosts.len()).find(|h| media.iter().all(|m| !m.hosts.contains(h)));
    if let Some(host) = lonely {
        return Err(bad(
            &written.hosts.value[host],
            format!(
                "the host '{}' is not on any medium: add it to the `hosts` of one",
                hosts[host]
            ),
        ));
    }
    Ok(media)
}

fn one_medium(written: &WrittenMedium, hosts: &[String]) -> Result<Medium, Problem> {
    let members = match &written.hosts {
        None => (0..hosts.len()).collect(),
        Some(names) => members(names, hosts)?,
    };
    if members.len() < 2 {
        let text = format!(
            "the medium '{}' has fewer than two hosts: name two or more",
            written.name.value
        );
        return Err(bad(&written.name, text));
    }
    let station = |name: &Spanned<String>| {
        let host = find_host(name, hosts)?;
        let found = members.iter().position(|m| *m == host);
        found.ok_or_else(|| {
            let medium = &written.name.value;
            bad(
                name,
                format!(
                    "the host '{}' is not on the medium '{medium}': add it to its `hosts`",
                    name.value
                ),
            )
        })
    };
    let kind = match (&written.wifi, &written.wire) {
        (Some(w), None) => Kind::Wifi(wifi(w, written, station)?),
        (None, Some(w)) => Kind::Wire(wire(w, written, members.len())?),
        _ => {
            let text = format!(
                "the medium '{}' needs either `wifi: {{rate: 6Mbit/s}}` or `wire: {{rate: 100Mbit/s}}`",
                written.name.value
            );
            return Err(bad(&written.name, text));
        }
    };
    let queue_frames = match &written.queue {
        None => None,
        Some(q) if (1..=100_000).contains(&q.value) => Some(q.value as usize),
        Some(q) => {
            let text = format!("the queue has {} frames: give 1 to 100000", q.value);
            return Err(bad(q, text));
        }
    };
    Ok(Medium {
        name: written.name.value.clone(),
        hosts: members,
        kind,
        queue_frames,
    })
}

fn wifi(
    written: &WrittenWifi,
    medium: &WrittenMedium,
    station: impl Fn(&Spanned<String>) -> Result<usize, Problem>,
) -> Result<Wifi, Problem> {
    let name = &medium.name;
    if let Some(ap) = &written.access_point
        && written.topology != WrittenTopology::AccessPoint
    {
        return Err(bad(
            ap,
            "`access_point` goes with `topology: access_point`: add that, or leave it out",
        ));
    }
    if written.links.is_some() && written.topology != WrittenTopology::Links {
        return Err(bad(
            name,
            "`links` of a wifi goes with `topology: links`: add that, or leave it out",
        ));
    }
    let topology = match written.topology {
        WrittenTopology::Chain => Topology::Chain,
        WrittenTopology::Mesh => Topology::Mesh,
        WrittenTopology::AccessPoint => match &written.access_point {
            Some(ap) => Topology::AccessPoint { ap: station(ap)? },
            None => {
                return Err(bad(
                    name,
                    "`topology: access_point` needs `access_point: HOST`: name the host",
                ));
            }
        },
        WrittenTopology::Links => {
            let Some(links) = &written.links else {
                return Err(bad(
                    name,
                    "`topology: links` needs `links: [HOST-HOST, ...]`: name the pairs",
                ));
            };
            let pair = |link: &Spanned<String>| {
                let halves = link.value.match_indices('-').find_map(|(at, _)| {
                    let half = |text: &str| station(&respan(link, text)).ok();
                    Some((half(&link.value[..at])?, half(&link.value[at + 1..])?))
                });
                halves.filter(|(a, b)| a != b).ok_or_else(|| {
                    let (link_text, medium) = (&link.value, &name.value);
                    bad(
                        link,
                        format!(
                            "'{link_text}' is not a pair of hosts of the medium '{medium}': write HOST-HOST"
                        ),
                    )
                })
            };
            Topology::Links(links.iter().map(pair).collect::<Result<_, _>>()?)
        }
    };
    Ok(Wifi {
        standard: match written.standard {
            WrittenStandard::A => Standard::A,
            WrittenStandard::B => Standard::B,
            WrittenStandard::G => Standard::G,
        },
        rate_bits: rate(&written.rate)?,
        topology,
        hearing: match written.hearing {
            WrittenHearing::All => Hearing::All,
            WrittenHearing::Linked => Hearing::Linked,
        },
        edca: written.edca,
        retries: written.retries.unwrap_or(7),
    })
}

fn wire(written: &WrittenWire, medium: &WrittenMedium, hosts: usize) -> Result<Wire, Problem> {
    let name = &medium.name;
    if hosts != 2 {
        let text = format!(
            "the wire '{}' has {hosts} hosts, but joins two: name two under its `hosts`, and make a medium for each \
             further pair",
            name.value
        );
        return Err(bad(name, text));
    }
    let queue_bytes = match (&written.queue_bytes, written.profile) {
        (None, WrittenProfile::Ethernet) => None,
        (None, WrittenProfile::LongHaul) => Some(LONG_HAUL_QUEUE),
        (Some(q), WrittenProfile::Ethernet) => {
            return Err(bad(
                q,
                "`queue_bytes` goes with `profile: long_haul`; an Ethernet's queue is `queue: FRAMES`",
            ));
        }
        (Some(q), WrittenProfile::LongHaul) => {
            let bytes = quantity::bytes(&q.value).map_err(|e| bad(q, e.to_string()))?;
            Some(usize::try_from(bytes).unwrap_or(usize::MAX))
        }
    };
    if let Some(queue) = medium.queue.as_ref().filter(|_| queue_bytes.is_some()) {
        return Err(bad(
            queue,
            "a long haul's queue is bounded by bytes: write `queue_bytes: 250KB` under `wire`",
        ));
    }
    Ok(Wire {
        rate_bits: written.rate.as_ref().map(rate).transpose()?,
        queue_bytes,
    })
}

fn changes(written: &Written, scenario: &Scenario) -> Result<Vec<(Duration, Change)>, Problem> {
    if written.events.len() > MAX_EVENTS {
        let first = &written.events[MAX_EVENTS].at;
        return Err(bad(
            first,
            format!("more than {MAX_EVENTS} events: leave some out"),
        ));
    }
    let folder = Path::new(&scenario.place).parent();
    let resolve = |set: &Spanned<Settings>| {
        if set.value == Settings::default() {
            return Err(bad(
                set,
                "nothing is set: write for example {loss: 20%, delay: 10ms} or {down: true}",
            ));
        }
        set.value.resolve(folder).map_err(|e| bad(set, e))
    };
    let find = |target: &Spanned<String>| {
        Target::find(&target.value, &scenario.hosts, &scenario.media).map_err(|e| bad(target, e))
    };
    let mut changes = Vec::new();
    for (medium, set) in written.media.value.iter().enumerate() {
        if let Some(set) = &set.set {
            let target = Target::Medium(medium);
            changes.push((
                Duration::ZERO,
                Change {
                    target,
                    effect: resolve(set)?,
                },
            ));
        }
    }
    for link in &written.links {
        let change = Change {
            target: find(&link.target)?,
            effect: resolve(&link.set)?,
        };
        changes.push((Duration::ZERO, change));
    }
    let mut events = Vec::new();
    for event in &written.events {
        let at = quantity::duration(&event.at.value).map_err(|e| bad(&event.at, e.to_string()))?;
        let change = Change {
            target: find(&event.target)?,
            effect: resolve(&event.set)?,
        };
        events.push((at, change));
    }
    // A stable sort: of two events at the same time the later line has the last word.
    events.sort_by_key(|(at, _)| *at);
    changes.extend(events);
    Ok(changes)
}

fn members(names: &[Spanned<String>], hosts: &[String]) -> Result<Vec<usize>, Problem> {
    let mut members = Vec::new();
    for name in names {
        let host = find_host(name, hosts)?;
        if members.contains(&host) {
            return Err(bad(
                name,
                format!("the host '{}' is listed twice: leave one out", name.value),
            ));
        }
        members.push(host);
    }
    Ok(members)
}

fn find_host(name: &Spanned<String>, hosts: &[String]) -> Result<usize, Problem> {
    hosts.iter().position(|h| *h == name.value).ok_or_else(|| {
        bad(
            name,
            format!(
                "there is no host '{}': add it to `hosts`, or correct the name",
                name.value
            ),
        )
    })
}

fn rate(text: &Spanned<String>) -> Result<u64, Problem> {
    quantity::bit_rate(&text.value).map_err(|e| bad(text, e.to_string()))
}

fn respan(at: &Spanned<String>, text: &str) -> Spanned<String> {
    Spanned::new(text.to_owned(), at.referenced, at.defined)
}
