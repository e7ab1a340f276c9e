use super::*;

fn announcement(source: u64, n: usize) -> Announcement {
    Announcement {
        name: format!("/{n}"),
        type_name: "t".into(),
        via: Some(Via {
            source,
            name: "far".into(),
            run: 1,
            to: vec![1],
        }),
        ..Announcement::default()
    }
}

#[test]
fn flows_are_bounded_by_the_neighbour_that_brings_them_and_cost_no_other_its_own() {
    let mut relay = Relay::<Vec<u8>>::new(1);
    let (greedy, others) = (PeerId(0), [PeerId(1), PeerId(2)]);
    let mut brings = |peer, n: usize, source| {
        let topic = (peer, RemoteTopic(n as u32));
        relay.announced(topic, &announcement(source, n), true, true, false)
    };
    assert!((0..MAX_FLOWS).all(|n| brings(greedy, n, 100)));
    assert!(!brings(greedy, MAX_FLOWS, 100));
    // It may bring flows that it has brought before, and others may bring theirs.
    assert!(brings(greedy, 0, 100));
    assert!(others.iter().all(|peer| {
        let source = 101 + u64::from(peer.0);
        (0..MAX_FLOWS).all(|n| brings(*peer, n, source))
    }));
    assert_eq!(relay.flows.len(), 3 * MAX_FLOWS);
    // A withdrawn flow counts until it is dropped, so it cannot keep bringing new ones.
    relay.peer_renewed(greedy);
    let topic = (greedy, RemoteTopic(0));
    assert!(!relay.announced(topic, &announcement(100, MAX_FLOWS), true, true, false));
    relay.sweep(Time::ZERO);
    relay.sweep(Time::ZERO + ORPHANED_FOR);
    let closed = relay.actions.iter().filter(|a| matches!(a, Action::Close(_)));
    assert_eq!(closed.count(), MAX_FLOWS);
}
