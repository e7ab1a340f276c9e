//! The YAML that Pound reads at start-up.

use super::super::{ImportError, Notes, Scalar, check_length, keys, with_lines_below};
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// The bit rate that Pound assumes.
const RATE: f64 = 6.0;

/// Content of the YAML.
pub(super) struct Network {
    pub(super) base: Ipv4Addr,
    pub(super) rate: f64,
    /// Topics that nodes read at start-up, each with its line and fields.
    pub(super) topics: Vec<(usize, BTreeMap<String, Scalar>)>,
}

impl Default for Network {
    fn default() -> Self {
        Network {
            base: Ipv4Addr::new(192, 168, 1, 1),
            rate: RATE,
            topics: Vec::new(),
        }
    }
}

/// Keys of the YAML that are converted.
#[derive(serde::Deserialize)]
struct Keys {
    #[serde(default)]
    base_ip: Option<Spanned<Scalar>>,
    #[serde(default)]
    rate_mbps: Option<Spanned<Scalar>>,
    #[serde(default)]
    topics: Option<Spanned<Listed>>,
}

/// A list, or something else in place of one.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Listed {
    Topics(Vec<BTreeMap<String, Scalar>>),
    Other(IgnoredAny),
}

/// Keys that are not converted, with the reason.
const NOT_CARRIED: &[(&str, &str)] = &[
    ("use_ip", "links do not send raw frames"),
    (
        "device",
        "a link is bound to an address: set `radio.bind` to the device's if it has several",
    ),
    ("nodes", "no MAC addresses are needed: peers are found by IP"),
    (
        "routes",
        "routes stay in the kernel; set `radio.hops` for them, or `relay` if a host in between runs a link",
    ),
    ("feedback", "links always report losses"),
    (
        "auto_tuning",
        "write `rate: auto` in `radio` if the rate is not known",
    ),
    (
        "port",
        "links use 7400: change `radio.bind` and the peers' addresses alike",
    ),
    (
        "queue",
        "each topic has its own `depth`; `radio.queue_bytes` bounds the total",
    ),
    ("delay", "pacing follows from the radio's rate"),
    (
        "use_discard",
        "a newer message replaces a queued one; `deadline` drops late messages",
    ),
    ("quiet", "set RUST_LOG"),
];

impl Network {
    pub(super) fn read(file: &str, text: &str, notes: &mut Notes) -> Result<Self, ImportError> {
        check_length(file, text)?;
        let read: Keys = serde_saphyr::from_str(text).map_err(|e| ImportError::Syntax {
            file: file.to_owned(),
            line: e.location().map_or(1, |l| l.line() as usize),
            problem:
                "this is not YAML with `base_ip: ADDRESS`, `rate_mbps: NUMBER` and `topics: [{name: …}]`"
                    .into(),
        })?;
        for (line, key, below) in keys(text) {
            if matches!(key, "base_ip" | "rate_mbps" | "topics") {
                continue;
            }
            let all = with_lines_below(key, below);
            match NOT_CARRIED.iter().find(|(k, _)| *k == key) {
                Some((_, why)) => notes.add(file, line, format!("{all}: {why}")),
                None => notes.add(file, line, format!("{all}: is not understood: ignored")),
            }
        }
        let mut network = Network::default();
        let line_of = |referenced: serde_saphyr::Location| referenced.line() as usize;
        if let Some(base) = read.base_ip {
            match base.value.to_string().parse() {
                Ok(base) => network.base = base,
                Err(_) => notes.add(
                    file,
                    line_of(base.referenced),
                    format!(
                        "base_ip '{}' is not an address: using {}",
                        base.value, network.base
                    ),
                ),
            }
        }
        if let Some(rate) = read.rate_mbps {
            match rate.value.to_string().parse() {
                Ok(mbps) if (0.001..=100_000.0).contains(&mbps) => network.rate = mbps,
                _ => notes.add(
                    file,
                    line_of(rate.referenced),
                    format!("rate_mbps {} is not a valid rate: using {RATE}", rate.value),
                ),
            }
        }
        if let Some(topics) = read.topics {
            match topics.value {
                Listed::Topics(all) => {
                    network.topics = all.into_iter().zip(items(text)).map(|(t, l)| (l, t)).collect()
                }
                Listed::Other(_) => notes.add(
                    file,
                    line_of(topics.referenced),
                    "topics: is not a list of `- name: …` with names and numbers: ignored",
                ),
            }
        }
        Ok(network)
    }
}

/// Returns the lines at which the items of `topics` begin.
fn items(text: &str) -> impl Iterator<Item = usize> + '_ {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    let below = lines.skip_while(|(_, line)| !line.starts_with("topics"));
    let first = below.clone().next().map_or(1, |(number, _)| number);
    let begin = below.filter(|(_, line)| line.trim_start().starts_with('-'));
    // All items of a list on a single line have that line.
    begin.map(|(number, _)| number).chain(std::iter::repeat(first))
}
