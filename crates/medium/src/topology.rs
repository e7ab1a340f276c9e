//! Decoding, hearing and routes between hosts.

use crate::check;
use crate::config::ConfigError;
use std::collections::VecDeque;

/// Which hosts can decode each other. The hosts between others forward their frames, over the fewest hops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Topology {
    /// Each host decodes the ones before and after it.
    #[default]
    Chain,
    /// All hosts decode each other.
    Mesh,
    /// Stations reach each other only through one of the hosts, so every frame between them goes over the air twice.
    AccessPoint {
        /// The host that is the access point.
        ap: usize,
    },
    /// These pairs, in both directions.
    Links(Vec<(usize, usize)>),
}

/// Which hosts hear each other: they sense that the channel is busy, and are disturbed. A host also hears the hosts it
/// decodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Hearing {
    /// All hosts hear each other.
    #[default]
    All,
    /// Only hosts that can decode each other hear each other: all others are hidden from each other.
    Linked,
    /// These pairs in addition, in both directions.
    Pairs(Vec<(usize, usize)>),
}

/// Stands for all hosts that decode the sender, in place of a host's number.
pub(crate) const EVERYONE: usize = usize::MAX;

/// Topology and hearing, ready for lookups.
pub(crate) struct Map {
    hosts: usize,
    topology: Topology,
    /// By sender: its neighbours, and the next hop to each host. Only for [`Topology::Links`].
    neighbours: Vec<Vec<usize>>,
    next: Vec<Vec<u16>>,
    /// By speaker: the hosts that hear it, including itself, ascending. Empty if all do.
    audience: Vec<Vec<usize>>,
}

impl Map {
    pub(crate) fn new(topology: Topology, hearing: &Hearing, hosts: usize) -> Result<Map, ConfigError> {
        let mut map = Map {
            hosts,
            topology,
            neighbours: Vec::new(),
            next: Vec::new(),
            audience: Vec::new(),
        };
        match &map.topology {
            Topology::AccessPoint { ap } => check::host("topology: access point", *ap, hosts)?,
            Topology::Links(pairs) => {
                map.neighbours = adjacency("topology: link", pairs, hosts)?;
                map.next = (0..hosts).map(|h| routes(&map.neighbours, h)).collect();
                if let Some(host) = map.next[0].iter().position(|n| *n == NOWHERE) {
                    return Err(ConfigError::Unreachable { host });
                }
            }
            Topology::Chain | Topology::Mesh => {}
        }
        let pairs: &[(usize, usize)] = match hearing {
            Hearing::All => return Ok(map),
            Hearing::Linked => &[],
            Hearing::Pairs(pairs) => pairs,
        };
        let mut audience = adjacency("hearing", pairs, hosts)?;
        for (speaker, hearers) in audience.iter_mut().enumerate() {
            hearers.extend((0..hosts).filter(|h| *h == speaker || map.linked(speaker, *h)));
            hearers.sort_unstable();
            hearers.dedup();
        }
        if audience.iter().any(|a| a.len() < hosts) {
            map.audience = audience;
        }
        Ok(map)
    }

    /// Whether all hosts hear each other.
    pub(crate) fn one_domain(&self) -> bool {
        self.audience.is_empty()
    }

    /// Whether `a` and `b` can decode each other.
    pub(crate) fn linked(&self, a: usize, b: usize) -> bool {
        a != b
            && match &self.topology {
                Topology::Chain => a.abs_diff(b) == 1,
                Topology::Mesh => true,
                Topology::AccessPoint { ap } => a == *ap || b == *ap,
                Topology::Links(_) => self.neighbours.get(a).is_some_and(|n| n.contains(&b)),
            }
    }

    /// The host to which `at` hands a frame for `to`; `None` if there is no route or they are the same. A station hands
    /// a frame for [`EVERYONE`] to its access point; elsewhere it goes to all at once.
    pub(crate) fn next(&self, at: usize, to: usize) -> Option<usize> {
        if to == EVERYONE && at < self.hosts {
            return Some(self.access_point().filter(|ap| at != *ap).unwrap_or(EVERYONE));
        }
        if at == to || at >= self.hosts || to >= self.hosts {
            return None;
        }
        Some(match &self.topology {
            Topology::Chain if to > at => at + 1,
            Topology::Chain => at - 1,
            Topology::Mesh => to,
            Topology::AccessPoint { ap } if at == *ap => to,
            Topology::AccessPoint { ap } => *ap,
            Topology::Links(_) => usize::from(*self.next.get(at)?.get(to)?),
        })
    }

    /// The host that forwards a station's frame for everyone.
    pub(crate) fn access_point(&self) -> Option<usize> {
        match self.topology {
            Topology::AccessPoint { ap } => Some(ap),
            _ => None,
        }
    }

    /// The hosts that decode `speaker`, ascending, without the host that sent the packet first.
    pub(crate) fn receivers(&self, speaker: usize, origin: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.hosts).filter(move |h| *h != origin && self.linked(speaker, *h))
    }

    /// The `n`th of the hosts that hear `speaker`, including itself, in ascending order.
    pub(crate) fn audience(&self, speaker: usize, n: usize) -> Option<usize> {
        match self.audience.get(speaker) {
            Some(hearers) => hearers.get(n).copied(),
            None => Some(n).filter(|n| *n < self.hosts),
        }
    }

    /// Whether an emission of `speaker` disturbs a reception of what `of` sends: that of `listener` or, if it is for
    /// [`EVERYONE`], that of the hosts added to `deaf`.
    pub(crate) fn disturbs(&self, speaker: usize, of: usize, listener: usize, deaf: &mut Vec<usize>) -> bool {
        if listener != EVERYONE {
            return self.hears(listener, speaker);
        }
        let before = deaf.len();
        let added = self.receivers(of, of).filter(|r| self.hears(*r, speaker));
        let new: Vec<usize> = added.filter(|r| !deaf.contains(r)).collect();
        deaf.extend(new);
        deaf.len() > before
    }

    /// Whether an emission of `speaker` reaches `listener`, even if only as a disturbance; also if they are the same
    /// host.
    pub(crate) fn hears(&self, listener: usize, speaker: usize) -> bool {
        self.audience
            .get(speaker)
            .is_none_or(|a| a.binary_search(&listener).is_ok())
    }
}

const NOWHERE: u16 = u16::MAX;

fn adjacency(setting: &str, pairs: &[(usize, usize)], hosts: usize) -> Result<Vec<Vec<usize>>, ConfigError> {
    let mut near = vec![Vec::new(); hosts];
    for &(a, b) in pairs {
        check::host(setting, a, hosts)?;
        check::host(setting, b, hosts)?;
        if a == b {
            let setting = setting.into();
            return Err(ConfigError::NoSuchLink {
                setting,
                from: a,
                to: b,
            });
        }
        near[a].push(b);
        near[b].push(a);
    }
    for n in &mut near {
        n.sort_unstable();
        n.dedup();
    }
    Ok(near)
}

/// The first hop from `from` to each host, by breadth-first search; among equal routes the lowest first hop.
fn routes(neighbours: &[Vec<usize>], from: usize) -> Vec<u16> {
    let mut first = vec![NOWHERE; neighbours.len()];
    first[from] = from as u16;
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        for &next in &neighbours[at] {
            if first[next] == NOWHERE {
                first[next] = if at == from { next as u16 } else { first[at] };
                queue.push_back(next);
            }
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(map: &Map, from: usize, to: usize) -> Vec<usize> {
        let mut hosts = vec![from];
        while let Some(next) = map.next(*hosts.last().expect("not empty"), to) {
            hosts.push(next);
        }
        hosts
    }

    #[test]
    fn ways_are_the_shortest() {
        let map = |t| Map::new(t, &Hearing::All, 5).expect("a valid topology");
        assert_eq!(way(&map(Topology::Chain), 3, 0), [3, 2, 1, 0]);
        assert_eq!(way(&map(Topology::Mesh), 3, 0), [3, 0]);
        assert_eq!(way(&map(Topology::AccessPoint { ap: 2 }), 3, 0), [3, 2, 0]);
        assert_eq!(way(&map(Topology::AccessPoint { ap: 2 }), 3, 2), [3, 2]);
        let ring = Topology::Links(vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)]);
        let ring = map(ring);
        assert_eq!(way(&ring, 3, 0), [3, 4, 0]);
        assert_eq!(ring.receivers(3, 3).collect::<Vec<_>>(), [2, 4]);
        assert_eq!(ring.next(3, EVERYONE), Some(EVERYONE));
        let ap = map(Topology::AccessPoint { ap: 2 });
        assert_eq!(
            (ap.next(3, EVERYONE), ap.next(2, EVERYONE)),
            (Some(2), Some(EVERYONE))
        );
        assert_eq!(ap.receivers(2, 3).collect::<Vec<_>>(), [0, 1, 4]);
    }

    #[test]
    fn hearing_includes_whom_one_decodes() {
        let map = Map::new(Topology::Chain, &Hearing::Pairs(vec![(0, 2)]), 4).expect("valid");
        let heard = |s| (0..4).map_while(|n| map.audience(s, n)).collect::<Vec<_>>();
        assert_eq!(heard(0), [0, 1, 2]);
        assert_eq!(heard(3), [2, 3]);
        assert!(map.hears(2, 0) && !map.hears(3, 0) && !map.one_domain());
        let all = Map::new(Topology::Mesh, &Hearing::Linked, 4).expect("valid");
        assert!(all.one_domain());
    }

    #[test]
    fn impossible_ones_are_named() {
        let bad = |t, h| Map::new(t, &h, 4).map(|_| ()).expect_err("refused").to_string();
        let part = Topology::Links(vec![(0, 1), (2, 3)]);
        assert!(bad(part, Hearing::All).contains("host 2"));
        assert!(bad(Topology::AccessPoint { ap: 4 }, Hearing::All).contains("access point names host 4"));
        assert!(bad(Topology::Chain, Hearing::Pairs(vec![(1, 1)])).contains("1 to 1"));
    }
}
