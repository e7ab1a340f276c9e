//! Finds the largest load that fits, what breaks first, and what would help. Every answer is simulated.

use super::host::HostCosts;
use super::simulate::{Effort, Simulated, processors, simulate};
use super::system::{Kind, System};
use serde::Serialize;
use std::time::Duration;

/// Trials are shorter than the plan itself.
const TRIAL: Effort = Effort {
    runs: 1,
    span: Duration::from_secs(5),
    seed: 11,
};
/// Largest load that is tried.
const MOST_LOAD: f64 = 8.0;
/// Rates of 802.11a, in Mbit/s.
const RATES: [u64; 8] = [6, 9, 12, 18, 24, 36, 48, 54];
/// Load of processors above which messages queue.
const FULL: f64 = 0.9;

/// The resource or topic that fails first if all frequencies grow equally.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreaksFirst {
    /// `topic`, `processors` or `nothing`.
    pub what: &'static str,
    /// Name of the topic or host.
    pub name: String,
    /// Load, as a multiple of the planned frequencies; below 1 the plan itself does not fit, 0 means that no load fits.
    pub at_load: f64,
    /// Explanation.
    pub why: String,
}

/// A simulated change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Description.
    pub change: String,
    /// `priority`, `rate`, `compression`, `medium` or `access_points`.
    pub kind: &'static str,
    /// Whether everything fits with the change.
    pub fits: bool,
    /// Topics that still do not fit.
    pub left: Vec<String>,
}

/// Searches the load at which the first topic or host breaks.
pub(super) fn breaks_first(
    system: &System,
    costs: &HostCosts,
    robots: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<BreaksFirst, String> {
    let at = |load: f64| simulate(system, costs, load, robots, TRIAL);
    let broken = |s: &Simulated| s.topics.iter().position(|t| !t.fits);
    let (mut low, mut high) = (0.0, 1.0);
    let mut culprit = broken(&at(1.0)?);
    if let Some(topic) = culprit {
        // Find the smaller load that fits.
        low = 1.0 / MOST_LOAD;
        if let Some(still) = broken(&at(low)?) {
            let name = system.topics[still].name.clone();
            return Ok(BreaksFirst {
                what: "topic",
                why: format!(
                    "it misses its requirements even at an eighth of the frequencies: {} waits behind messages \
                     that are too long, or needs more capacity than there is",
                    system.topics[topic].name
                ),
                name,
                at_load: 0.0,
            });
        }
    } else {
        while culprit.is_none() && high < MOST_LOAD && !stopped() {
            low = high;
            high *= 2.0;
            culprit = broken(&at(high)?);
        }
    }
    if culprit.is_some() {
        for _ in 0..5 {
            if stopped() {
                break;
            }
            let middle = (low.max(1.0 / MOST_LOAD) * high).sqrt();
            match broken(&at(middle)?) {
                Some(topic) => (high, culprit) = (middle, Some(topic)),
                None => low = middle,
            }
        }
    }
    let one = processors(system, costs, 1.0, robots);
    let busiest = one.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    if let Some((host, load)) = busiest
        && *load > 0.0
        && FULL / load < culprit.map_or(MOST_LOAD, |_| high)
    {
        return Ok(BreaksFirst {
            what: "processors",
            name: system.hosts[host].clone(),
            at_load: FULL / load,
            why: format!(
                "the processors of {} are {:.0} % busy with messages",
                system.hosts[host],
                load * 100.0
            ),
        });
    }
    Ok(match culprit {
        None => BreaksFirst {
            what: "nothing",
            name: String::new(),
            at_load: high,
            why: format!("{MOST_LOAD} times the planned frequencies still fit"),
        },
        Some(topic) => {
            let t = &system.topics[topic];
            let medium = t.over.map_or("the bus", |m| system.media[m].name.as_str());
            BreaksFirst {
                what: "topic",
                name: t.name.clone(),
                at_load: high,
                why: format!(
                    "{medium} has no room for {} (priority {}) behind more important topics",
                    t.name, t.priority
                ),
            }
        }
    })
}

/// Tries changes for a system that does not fit: priority, rate, compression, medium, each alone.
pub(super) fn changes(
    system: &System,
    costs: &HostCosts,
    now: &Simulated,
    robots: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<Vec<Change>, String> {
    let mut all = Vec::new();
    let Some(failing) = now.topics.iter().position(|t| !t.fits) else {
        return Ok(all);
    };
    let medium = system.topics[failing].over;
    let beside = |s: &System| {
        let of = (0..s.topics.len()).filter(|t| s.topics[*t].over == medium);
        of.max_by(|a, b| s.topics[*a].bytes_per_s().total_cmp(&s.topics[*b].bytes_per_s()))
    };
    let Some(largest) = beside(system) else {
        return Ok(all);
    };
    let trial = |changed: &System| -> Result<(bool, Vec<String>), String> {
        let s = simulate(changed, costs, 1.0, robots, TRIAL)?;
        let left = s.topics.iter().zip(&changed.topics).filter(|(f, _)| !f.fits);
        let left: Vec<String> = left.map(|(_, t)| t.name.clone()).collect();
        Ok((left.is_empty(), left))
    };
    let mut put = |change: String, kind, (fits, left): (bool, Vec<String>)| {
        all.push(Change {
            change,
            kind,
            fits,
            left,
        });
    };
    let (f, l) = (&system.topics[failing], &system.topics[largest]);
    if failing != largest && f.priority <= l.priority && !stopped() {
        let priority = l.priority.saturating_add(10).min(proto::MAX_PRIORITY);
        let mut changed = system.clone();
        changed.topics[failing].priority = priority;
        put(
            format!("give {} priority {priority}, above {}", f.name, l.name),
            "priority",
            trial(&changed)?,
        );
    }
    // The highest rate of the largest topic that fits, if any.
    let mut best = None;
    for share in [0.9, 0.75, 0.6, 0.5, 0.35, 0.25, 0.1] {
        if stopped() {
            break;
        }
        let mut changed = system.clone();
        slower(&mut changed, largest, share);
        let tried = trial(&changed)?;
        let fits = tried.0;
        best = Some((share, tried));
        if fits {
            break;
        }
    }
    if let Some((share, tried)) = best {
        let hz = l.hz * share;
        put(
            format!("send {} at {hz:.3} Hz instead of {:.3}", l.name, l.hz),
            "rate",
            tried,
        );
    }
    if !stopped() {
        let mut changed = system.clone();
        for size in &mut changed.topics[largest].sizes {
            *size = (*size / 2).max(1);
        }
        put(
            format!("compress {} to half, if its content allows", l.name),
            "compression",
            trial(&changed)?,
        );
    }
    let Some(place) = medium else { return Ok(all) };
    let faster: Vec<(String, Kind)> = match system.media[place].kind {
        Kind::Radio { rate, hops } => {
            let more = RATES.iter().map(|m| m * 1_000_000).filter(|r| *r > rate);
            more.map(|rate| {
                (
                    format!("a radio of {} Mbit/s", rate / 1_000_000),
                    Kind::Radio { rate, hops },
                )
            })
            .collect()
        }
        Kind::Wire { rate, delay } => {
            let ten = rate.saturating_mul(10);
            vec![(
                format!("a wire of {} Mbit/s", ten / 1_000_000),
                Kind::Wire { rate: ten, delay },
            )]
        }
    };
    let mut last = None;
    for (name, kind) in faster {
        if stopped() {
            break;
        }
        let mut changed = system.clone();
        changed.media[place].kind = kind;
        let tried = trial(&changed)?;
        let fits = tried.0;
        last = Some((name, tried));
        if fits {
            break;
        }
    }
    if let Some((name, tried)) = last {
        put(format!("{name} as {}", system.media[place].name), "medium", tried);
    }
    // Changes that help come first.
    all.sort_by_key(|c| !c.fits);
    Ok(all)
}

/// Fewer messages of a topic; those of a recording are thinned out evenly.
fn slower(system: &mut System, topic: usize, share: f64) {
    let t = &mut system.topics[topic];
    t.hz *= share;
    if !t.times.is_empty() {
        let kept: Vec<usize> = (0..t.times.len())
            .filter(|i| ((*i + 1) as f64 * share).floor() > (*i as f64 * share).floor())
            .collect();
        t.times = kept.iter().map(|i| t.times[*i]).collect();
        if t.sizes.len() >= t.times.len() {
            t.sizes = kept.iter().filter_map(|i| t.sizes.get(*i).copied()).collect();
        }
        if t.times.is_empty() {
            (t.times, t.sizes) = (vec![Duration::ZERO], vec![1]);
        }
    }
}

/// The most robots on one access point with which everything fits; 0 if not even one does.
pub(super) fn most_robots(
    system: &System,
    costs: &HostCosts,
    planned: usize,
    stopped: &dyn Fn() -> bool,
) -> Result<usize, String> {
    let fits = |robots: usize| -> Result<bool, String> {
        let short = Effort {
            span: Duration::from_secs(3),
            ..TRIAL
        };
        let s = simulate(system, costs, 1.0, robots, short)?;
        Ok(s.topics.iter().all(|t| t.fits))
    };
    let (mut low, mut high) = (0, 1);
    // Above the planned number, it only matters whether there is room.
    let most = planned.saturating_mul(4).clamp(4, 200);
    while high <= most && !stopped() && fits(high)? {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 && high <= most * 2 && !stopped() {
        let middle = low.midpoint(high);
        if middle <= most && fits(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
