//! Names of hosts that records identify by number.

use crate::command::link::operate::Running;
use serde_json::Value;
use std::collections::BTreeMap;

/// Names of the hosts known to this host's links.
#[derive(Default)]
pub(crate) struct Hosts(BTreeMap<u64, String>);

impl Hosts {
    /// Asks the links of this host; without a link the result is empty.
    pub(crate) fn ask() -> Hosts {
        let links = Running::all().unwrap_or_default();
        let states = links.iter().filter_map(|link| link.state().ok());
        Hosts(
            states
                .flat_map(|state| names(&state))
                .map(|name| (number(&name), name))
                .collect(),
        )
    }

    /// Hosts on a path, the farthest first; a number stands for a host that no link here knows.
    pub(crate) fn way(&self, hosts: &[u64]) -> String {
        let name = |host: &u64| {
            self.0
                .get(host)
                .cloned()
                .unwrap_or_else(|| format!("{host:016x}"))
        };
        let names: Vec<_> = hosts.iter().map(name).collect();
        names.join(" via ")
    }

    /// The same for programs.
    pub(crate) fn list(&self, hosts: &[u64]) -> Vec<String> {
        hosts.iter().map(|host| self.way(&[*host])).collect()
    }
}

/// All host names in a link's state.
fn names(state: &Value) -> Vec<String> {
    let mut out: Vec<String> = state["host"].as_str().map(str::to_owned).into_iter().collect();
    for (list, key) in [("peers", "name"), ("ways", "host")] {
        let of = state[list].as_array().into_iter().flatten();
        out.extend(of.filter_map(|one| one[key].as_str()).map(str::to_owned));
    }
    out
}

/// A host's number from its name, as links compute it: FNV-1a of 64 bits.
fn number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_where_a_link_knows_them() {
        let state = serde_json::json!({ "host": "base", "peers": [{ "name": "robot" }] });
        let hosts = Hosts(names(&state).into_iter().map(|n| (number(&n), n)).collect());
        assert_eq!(
            hosts.way(&[number("arm"), number("robot")]),
            format!("{:016x} via robot", number("arm"))
        );
        assert_eq!(number(""), 0xcbf2_9ce4_8422_2325);
    }
}
