//! Access categories: the effect of a DSCP.

mod common;
use common::*;
use core::time::Duration;
use medium::{Access, Category, Event, Mapping, Medium, MediumConfig, Topology};
use stats::Time;

const EF: u8 = 46;
const CS1: u8 = 8;

/// Mean and worst delay in ms of 160 B every 20 ms with EF from host 0, next to background traffic that keeps the
/// queues of `others` full.
fn voice_delay(access: Access, others: &[usize]) -> (f64, f64, Medium<Option<Time>>) {
    let mut air = Medium::new(MediumConfig {
        hosts: 6,
        topology: Topology::Mesh,
        access,
        ..MediumConfig::chain(1)
    })
    .expect("a valid medium");
    let period = Duration::from_millis(20);
    let (mut now, mut next, end) = (Time::ZERO, Time::from_millis(100), Time::from_millis(30_000));
    let mut delays = Vec::new();
    while now < end {
        for h in others {
            while air.category_len(*h, Category::Background) < 20 {
                air.send_dscp(now, *h, 5, IP, CS1, None).expect("there is room");
            }
        }
        if now >= next {
            air.send_dscp(now, 0, 5, 160, EF, Some(now))
                .expect("there is room");
            next += period;
        }
        now = air.next_event().map_or(next, |t| t.min(next));
        while let Some(e) = air.poll(now) {
            if let Event::Delivered {
                at,
                payload: Some(sent),
                ..
            } = e
            {
                delays.push(at.since(sent).as_secs_f64() * 1e3);
            }
        }
    }
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let worst = delays.iter().copied().fold(0.0, f64::max);
    println!(
        "{access:?}, {others:?}: mean {mean:.2} ms, worst {worst:.2} ms, {} arrived",
        delays.len()
    );
    assert!(delays.len() > 1400);
    (mean, worst, air)
}

#[test]
fn voice_passes_background_of_its_own_host() {
    let (dcf, ..) = voice_delay(Access::Dcf, &[0]);
    let (edca, worst, air) = voice_delay(Access::Edca(Mapping::Rfc8325), &[0]);
    assert!(dcf > 20.0, "behind twenty frames: {dcf}");
    // At most the frame on the air is ahead of it.
    assert!(edca < 2.5 && worst < 10.0, "{edca} {worst}");
    let host = &air.stats().hosts[0];
    let of = |c: Category| &host.categories[c as usize];
    assert!(of(Category::Voice).acknowledged > 1400);
    assert!(of(Category::Background).acknowledged > 5000);
    assert_eq!(of(Category::BestEffort).attempts, 0);
}

#[test]
fn voice_passes_background_of_other_hosts() {
    let others = [1, 2, 3, 4];
    let (dcf, ..) = voice_delay(Access::Dcf, &others);
    let (edca, ..) = voice_delay(Access::Edca(Mapping::Rfc8325), &others);
    assert!(edca < 0.7 * dcf, "{edca} beside {dcf}");
}

#[test]
fn the_categories_of_one_host_contend_with_each_other() {
    const CS5: u8 = 40;
    let config = MediumConfig {
        access: Access::Edca(Mapping::Rfc8325),
        ..MediumConfig::chain(1)
    };
    let mut air = Medium::new(config).expect("a valid medium");
    let (mut now, categories) = (Time::ZERO, [(Category::Video, CS5), (Category::Voice, EF)]);
    while now < Time::from_millis(20_000) {
        for (category, dscp) in categories {
            while air.category_len(0, category) < 5 {
                air.send_dscp(now, 0, 1, IP, dscp, ()).expect("there is room");
            }
        }
        now = air.next_event().expect("a saturated medium never rests");
        while air.poll(now).is_some() {}
    }
    let stats = air.stats();
    let [video, voice] = categories.map(|(c, _)| &stats.hosts[0].categories[c as usize]);
    println!("{video:?}\n{voice:?}");
    assert!(voice.acknowledged > video.acknowledged && video.acknowledged > 1000);
    // The more urgent one is sent; the other counts that as a collision, which does not show on the air.
    assert!(video.internal_collisions > 1000);
    assert_eq!(
        (
            voice.internal_collisions,
            stats.collisions,
            stats.hosts[0].retries > 0
        ),
        (0, 0, true)
    );
}
