//! Addresses, neighbours and routes of a lab: the configuration of each host's kernel.

use crate::scenario::Scenario;
use std::collections::VecDeque;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// One host's device on one medium.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The host, in the scenario's order.
    pub(crate) host: usize,
    /// The medium, in the scenario's order.
    pub(crate) medium: usize,
    /// The host's index on that medium.
    pub(crate) station: usize,
    /// The device has its medium's name.
    pub(crate) device: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) mac: Mac,
    /// Interfaces that a frame reaches without a relay's kernel.
    pub(crate) neighbours: Vec<usize>,
}

/// The route to an address that is not a neighbour's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: Ipv4Addr,
    pub(crate) via: Ipv4Addr,
    pub(crate) device: String,
}

/// The addresses and routes of all hosts.
pub(crate) struct Plan {
    pub(crate) hosts: Vec<String>,
    pub(crate) interfaces: Vec<Interface>,
    /// Interfaces of each host; the first one's address is the host's.
    pub(crate) of_host: Vec<Vec<usize>>,
    /// Interfaces of each medium, by station.
    pub(crate) of_medium: Vec<Vec<usize>>,
    pub(crate) routes: Vec<Vec<Route>>,
    /// Hosts whose kernel forwards for others.
    pub(crate) relays: Vec<bool>,
    /// Congestion control of TCP, on every host.
    pub(crate) congestion_control: String,
}

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    /// Locally administered, and readable: medium and host are its last two bytes.
    fn of(medium: usize, host: usize) -> Mac {
        Mac([0x02, 0x52, 0x57, 0x00, medium as u8, host as u8 + 1])
    }

    /// The medium and host of this address, if it belongs to a lab.
    pub(crate) fn place(self) -> Option<(usize, usize)> {
        match self.0 {
            [0x02, 0x52, 0x57, 0x00, medium, host] => {
                Some((medium.into(), usize::from(host.checked_sub(1)?)))
            }
            _ => None,
        }
    }

    /// Whether it addresses more than one host.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl std::fmt::Display for Mac {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A scenario in which one host cannot reach another, by their indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreachable(pub(crate) usize, pub(crate) usize);

impl Plan {
    /// Addresses 10.77.medium.host, and the routes with the fewest hops. The scenario must be within its limits (250
    /// hosts, 64 media).
    pub(crate) fn new(scenario: &Scenario) -> Result<Plan, Unreachable> {
        let mut plan = Plan {
            hosts: scenario.hosts.clone(),
            interfaces: Vec::new(),
            of_host: vec![Vec::new(); scenario.hosts.len()],
            of_medium: Vec::new(),
            routes: vec![Vec::new(); scenario.hosts.len()],
            relays: vec![false; scenario.hosts.len()],
            congestion_control: scenario.congestion_control().to_owned(),
        };
        for (m, medium) in scenario.media.iter().enumerate() {
            let first = plan.interfaces.len();
            for (station, &host) in medium.hosts.iter().enumerate() {
                plan.of_host[host].push(plan.interfaces.len());
                plan.interfaces.push(Interface {
                    host,
                    medium: m,
                    station,
                    device: medium.name.clone(),
                    address: Ipv4Addr::new(10, 77, m as u8, host as u8 + 1),
                    mac: Mac::of(m, host),
                    neighbours: medium.neighbours(station).map(|s| first + s).collect(),
                });
            }
            plan.of_medium.push((first..plan.interfaces.len()).collect());
        }
        for host in 0..plan.hosts.len() {
            plan.find_routes(host)?;
        }
        Ok(plan)
    }

    /// The host's own address.
    pub(crate) fn address(&self, host: usize) -> Ipv4Addr {
        self.of_host[host]
            .first()
            .map_or(Ipv4Addr::UNSPECIFIED, |i| self.interfaces[*i].address)
    }

    /// The text of `/etc/hosts`, the same for all hosts.
    pub(crate) fn etc_hosts(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n");
        for (host, name) in self.hosts.iter().enumerate() {
            let _ = writeln!(text, "{} {name}", self.address(host));
        }
        text
    }

    /// The commands for `ip -batch` in the host's namespace.
    pub(crate) fn ip_batch(&self, host: usize) -> String {
        let mut text = String::from("link set lo up\n");
        // Every user may set a route's congestion control, but only the algorithms that the machine allows as a
        // namespace's default.
        let tcp = &self.congestion_control;
        for interface in self.of_host[host].iter().map(|i| &self.interfaces[*i]) {
            let Interface {
                device, mac, address, ..
            } = interface;
            let _ = writeln!(text, "link set {device} address {mac} mtu 1500 up");
            let _ = writeln!(text, "addr add {address}/24 broadcast + dev {device}");
            let [a, b, c, _] = address.octets();
            let _ = writeln!(
                text,
                "route replace {a}.{b}.{c}.0/24 dev {device} scope link src {address} congctl {tcp}"
            );
            for n in interface.neighbours.iter().map(|i| &self.interfaces[*i]) {
                let _ = writeln!(
                    text,
                    "neigh add {} lladdr {} nud permanent dev {device}",
                    n.address, n.mac
                );
            }
        }
        for Route { to, via, device } in &self.routes[host] {
            let _ = writeln!(text, "route add {to}/32 via {via} dev {device} congctl {tcp}");
        }
        // Multicast discovery leaves through the first device, as on a robot with one radio.
        if let Some(first) = self.of_host[host].first() {
            let _ = writeln!(
                text,
                "route add 224.0.0.0/4 dev {}",
                self.interfaces[*first].device
            );
        }
        text
    }

    /// The route of packets from one host to another, as the interfaces at both ends of each hop.
    pub(crate) fn way(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let arrivals = self.arrivals(from);
        let (mut way, mut at) = (Vec::new(), to);
        while let Some((out, next)) = arrivals.get(at).copied().flatten().filter(|_| at != from) {
            way.push((out, next));
            at = self.interfaces[out].host;
        }
        way.reverse();
        way
    }

    /// The last hop of the shortest route from `from` to each host: the interfaces at its ends.
    fn arrivals(&self, from: usize) -> Vec<Option<(usize, usize)>> {
        let mut arrivals = vec![None; self.hosts.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(host) = queue.pop_front() {
            for &out in &self.of_host[host] {
                for &next in &self.interfaces[out].neighbours {
                    let to = self.interfaces[next].host;
                    if to != from && arrivals[to].is_none() {
                        arrivals[to] = Some((out, next));
                        queue.push_back(to);
                    }
                }
            }
        }
        arrivals
    }

    fn find_routes(&mut self, from: usize) -> Result<(), Unreachable> {
        let arrivals = self.arrivals(from);
        for to in (0..self.hosts.len()).filter(|to| *to != from) {
            let last = arrivals[to].ok_or(Unreachable(from, to))?;
            let before = self.interfaces[last.0].host;
            if before != from {
                self.relays[before] = true;
            }
            let mut first = last;
            while let Some(hop) = arrivals[self.interfaces[first.0].host] {
                first = hop;
            }
            let (out, next) = first;
            for &there in &self.of_host[to] {
                let direct = self.of_host[from]
                    .iter()
                    .any(|i| self.interfaces[*i].neighbours.contains(&there));
                if !direct {
                    self.routes[from].push(Route {
                        to: self.interfaces[there].address,
                        via: self.interfaces[next].address,
                        device: self.interfaces[out].device.clone(),
                    });
                }
            }
        }
        Ok(())
    }
}
