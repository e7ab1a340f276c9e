use super::*;

fn memory(g: Geometry) -> Vec<AtomicU64> {
    (0..g.words()).map(|_| AtomicU64::new(0)).collect()
}

fn push(p: &mut Producer<u32>, ring: &[AtomicU64], tag: u32) -> bool {
    p.push(
        ring,
        QueueEntry {
            offset: u64::from(tag),
            ..QueueEntry::default()
        },
        tag,
    )
}

#[test]
fn messages_come_in_order_and_return_when_released() {
    let g = Geometry::new(3, 2).unwrap();
    let ring = memory(g);
    let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
    for tag in 0..3 {
        assert!(push(&mut p, &ring, tag));
    }
    assert!(!push(&mut p, &ring, 3), "the queue is full");
    let a = c.take(&ring[..]).unwrap();
    let b = c.take(&ring[..]).unwrap();
    assert_eq!((a.entry.offset, b.entry.offset), (0, 1));
    p.reap(&ring[..], |_| panic!("nothing was released")).unwrap();
    assert_eq!((p.queued(), p.held()), (1, 2));
    release(&ring[..], g, a.cell, a.number);
    let mut freed = vec![];
    p.reap(&ring[..], |t| freed.push(t)).unwrap();
    assert_eq!(freed, [0]);
    assert_eq!((p.queued(), p.held()), (1, 1));
}

#[test]
fn dropping_the_oldest_leaves_the_newest() {
    let g = Geometry::new(2, 1).unwrap();
    let ring = memory(g);
    let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
    for tag in 0..7 {
        if !p.has_room() {
            assert_eq!(p.drop_oldest(&ring[..], |_| ()).unwrap(), Some(tag - 2));
        }
        assert!(push(&mut p, &ring, tag));
    }
    assert_eq!(c.take(&ring[..]).unwrap().entry.offset, 5);
    assert_eq!(c.take(&ring[..]).unwrap().entry.offset, 6);
    assert_eq!(c.take(&ring[..]), None);
    assert_eq!(p.drop_oldest(&ring[..], |_| ()).unwrap(), None, "both are held");
}

#[test]
fn a_state_that_the_record_forbids_is_hostile() {
    let g = Geometry::new(2, 2).unwrap();
    let ring = memory(g);
    let mut p = Producer::new(g);
    assert!(push(&mut p, &ring, 9));
    ring[g.cell(0)].store(state(7, RELEASED), Ordering::Relaxed);
    assert_eq!(
        p.reap(&ring[..], |_| panic!("must not free")),
        Err(Hostile {
            cell: 0,
            state: state(7, RELEASED),
            number: 1
        })
    );
    // Queueing again after the take was seen is also forbidden.
    let mut p = Producer::new(g);
    assert!(push(&mut p, &ring, 9));
    ring[g.cell(0)].store(state(1, TAKEN), Ordering::Relaxed);
    p.reap(&ring[..], |_| ()).unwrap();
    ring[g.cell(0)].store(state(1, QUEUED), Ordering::Relaxed);
    assert!(p.reap(&ring[..], |_| ()).is_err());
}

#[test]
fn a_hostile_publisher_neither_traps_nor_misleads_the_consumer() {
    let g = Geometry::new(4, 4).unwrap();
    let ring = memory(g);
    let mut c = Consumer::new(g);
    for tail in [u64::MAX, 0, 5, u64::MAX - 1, 1 << 48, 3] {
        ring[TAIL].store(tail, Ordering::Relaxed);
        for i in 0..4 {
            ring[ORDER + i].store(u64::MAX, Ordering::Relaxed);
        }
        assert_eq!(c.take(&ring[..]), None);
    }
}

#[test]
fn random_words_from_the_subscriber_never_free_a_block_twice() {
    let g = Geometry::new(3, 2).unwrap();
    let mut seed = 1u64;
    let mut random = || {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        seed >> 33
    };
    let mut hostile = 0;
    for _ in 0..if cfg!(miri) { 50 } else { 20_000 } {
        let ring = memory(g);
        let (mut p, mut c) = (Producer::new(g), Consumer::new(g));
        let mut out = std::collections::BTreeSet::new();
        for tag in 0..20u32 {
            let cell = (random() % g.cells() as u64) as u16;
            match random() % 4 {
                0 => ring[g.cell(cell)].store(random() % 64, Ordering::Relaxed),
                1 => drop(c.take(&ring[..])),
                2 => release(&ring[..], g, cell, random() % 16),
                _ => {}
            }
            let mut free = |t: u32| assert!(out.insert(t), "freed twice");
            if p.reap(&ring[..], &mut free).is_err() {
                hostile += 1;
                break;
            }
            if !p.has_room() || !p.has_cell() {
                match p.drop_oldest(&ring[..], &mut free) {
                    Ok(Some(t)) => free(t),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
            push(&mut p, &ring, tag);
        }
    }
    assert!(hostile > 10, "the attack was seen {hostile} times");
}
