//! Two hosts of one team, for tests of the code that their carriers share.

use super::TeamPeer;
use crate::carrier::Carrier;
use crate::carrier::conformance::Rig;
use crate::keys::{Bundle, Team};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const DAY: Duration = Duration::from_secs(86_400);
const NAMES: [&str; 2] = ["base", "robot"];
/// More than the longest datagram.
const ROOM: usize = 1 << 14;

/// A carrier between hosts of one team.
pub(in crate::carrier) trait Kind {
    type Carrier: Carrier;

    /// A free address of this host.
    fn free() -> SocketAddr;

    fn bind(own: SocketAddr, peers: Vec<TeamPeer>, bundle: Bundle) -> Self::Carrier;

    fn local(carrier: &Self::Carrier) -> SocketAddr;

    fn connected(carrier: &Self::Carrier) -> bool;

    /// Sends bytes that no host of the team sends.
    fn intrude(to: SocketAddr, bytes: &[u8]);

    /// As [`Rig::readdress`].
    fn rebind(_: &mut Self::Carrier) -> bool {
        false
    }
}

pub(in crate::carrier) struct Pair<K: Kind> {
    folder: tempfile::TempDir,
    pub(in crate::carrier) team: Team,
    pub(in crate::carrier) carriers: Vec<K::Carrier>,
    pub(in crate::carrier) addresses: [SocketAddr; 2],
}

impl<K: Kind> Pair<K> {
    pub(in crate::carrier) fn open(&self, which: usize) -> K::Carrier {
        let peers = vec![self.peer(1 - which)];
        self.open_as(NAMES[which], self.addresses[which], peers)
    }

    pub(in crate::carrier) fn open_as(
        &self,
        name: &str,
        own: SocketAddr,
        peers: Vec<TeamPeer>,
    ) -> K::Carrier {
        K::bind(own, peers, self.bundle(name))
    }

    pub(in crate::carrier) fn bundle(&self, name: &str) -> Bundle {
        Bundle::load(&self.folder.path().join("team/hosts").join(name), name).expect("loads")
    }

    /// One of the two, as its peers know it.
    pub(in crate::carrier) fn peer(&self, which: usize) -> TeamPeer {
        TeamPeer {
            name: NAMES[which].into(),
            address: self.addresses[which],
        }
    }

    pub(in crate::carrier) fn add_host(&self, name: &str) {
        self.team.add_host(name, DAY).expect("makes");
    }

    /// Runs both until `done`; false if that does not happen in time.
    pub(in crate::carrier) fn until(&mut self, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let start = Instant::now();
        let mut buffer = vec![0; ROOM];
        while start.elapsed() < Duration::from_secs(20) {
            if done(self) {
                return true;
            }
            for c in &mut self.carriers {
                while c.receive(&mut buffer).expect("goes on").is_some() {}
                c.service().expect("goes on");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    pub(in crate::carrier) fn connected(&mut self) -> bool {
        self.until(|p| p.carriers.iter().all(K::connected))
    }
}

impl<K: Kind> Rig for Pair<K> {
    type Carrier = K::Carrier;

    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let team = Team::create(&folder.path().join("team"), "rovers").expect("makes");
        let mut pair = Pair {
            folder,
            team,
            carriers: Vec::new(),
            addresses: [K::free(), K::free()],
        };
        NAMES.iter().for_each(|name| pair.add_host(name));
        pair.carriers = vec![pair.open(0), pair.open(1)];
        pair
    }

    fn carrier(&mut self, which: usize) -> &mut K::Carrier {
        &mut self.carriers[which]
    }

    fn restart(&mut self) {
        drop(self.carriers.pop());
        self.carriers.push(self.open(1));
    }

    fn readdress(&mut self) -> bool {
        K::rebind(&mut self.carriers[0])
    }

    fn intrude(&mut self, bytes: &[u8]) {
        K::intrude(K::local(&self.carriers[0]), bytes);
    }
}

pub(in crate::carrier) fn revocation_closes_what_is_open_and_keeps_it_closed<K: Kind>() {
    let mut pair = Pair::<K>::new();
    assert!(pair.connected());
    pair.team.revoke("robot").expect("revokes");
    assert!(pair.until(|p| !K::connected(&p.carriers[0])), "still connected");
    // Long enough for many attempts.
    let start = Instant::now();
    let tries = pair.until(|p| K::connected(&p.carriers[0]) || start.elapsed() > Duration::from_secs(3));
    assert!(tries && !K::connected(&pair.carriers[0]), "it came back");
}

pub(in crate::carrier) fn a_handshake_begun_before_a_revocation_is_not_admitted<K: Kind>() {
    let mut pair = Pair::<K>::new();
    let mut buffer = vec![0; ROOM];
    let mut work = |carrier: &mut K::Carrier, time: u64| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(time) {
            while carrier.receive(&mut buffer).expect("goes on").is_some() {}
            carrier.service().expect("goes on");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    // Robot dials. Base answers it and dials robot, which stands still meanwhile.
    work(&mut pair.carriers[1], 300);
    work(&mut pair.carriers[0], 300);
    pair.team.revoke("robot").expect("revokes");
    work(&mut pair.carriers[0], 1500);
    let start = Instant::now();
    pair.until(|p| {
        assert!(!K::connected(&p.carriers[0]), "a revoked host is accepted");
        start.elapsed() > Duration::from_secs(5)
    });
}

pub(in crate::carrier) fn a_host_of_the_team_that_is_no_peer_is_refused<K: Kind>() {
    let mut pair = Pair::<K>::new();
    pair.add_host("guest");
    pair.carriers[1] = pair.open_as("guest", K::free(), vec![pair.peer(0)]);
    assert!(
        pair.until(|p| {
            assert!(!K::connected(&p.carriers[0]));
            p.carriers[0].refused() > 0
        }),
        "never refused"
    );
}

pub(in crate::carrier) fn a_connection_is_to_the_host_that_was_named<K: Kind>() {
    // Another host of the team answers at the address of base.
    let mut pair = Pair::<K>::new();
    pair.add_host("other");
    pair.carriers.clear();
    let other = pair.open_as("other", pair.addresses[0], vec![pair.peer(1)]);
    let robot = pair.open(1);
    pair.carriers = vec![other, robot];
    let start = Instant::now();
    assert!(pair.until(|p| {
        assert!(!K::connected(&p.carriers[1]), "connected to another host");
        start.elapsed() > Duration::from_secs(2)
    }));
}

/// Runs the tests that all team carriers share.
macro_rules! team_suite {
    ($kind:ty) => {
        #[test]
        fn revocation_closes_what_is_open_and_keeps_it_closed() {
            pair::revocation_closes_what_is_open_and_keeps_it_closed::<$kind>();
        }

        #[test]
        fn a_handshake_begun_before_a_revocation_is_not_admitted() {
            pair::a_handshake_begun_before_a_revocation_is_not_admitted::<$kind>();
        }

        #[test]
        fn a_host_of_the_team_that_is_no_peer_is_refused() {
            pair::a_host_of_the_team_that_is_no_peer_is_refused::<$kind>();
        }

        #[test]
        fn a_connection_is_to_the_host_that_was_named() {
            pair::a_connection_is_to_the_host_that_was_named::<$kind>();
        }
    };
}
pub(in crate::carrier) use team_suite;
