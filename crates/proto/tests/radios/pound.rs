//! Pound's scenario (`papers/pound.txt` section VI): a laser of 1 KB at 50 Hz next to images of 64 KB on a radio of 6
//! Mbit/s.

use crate::common::*;
use medium::Loss;

const LASER: usize = 0;
const IMAGE: usize = 1;

fn all_delivered(w: &World) {
    for i in [LASER, IMAGE] {
        let m = w.metrics(i);
        assert_eq!(
            (m.delivery, m.drops.total()),
            (1.0, 0),
            "{}: {}",
            w.sources[i].name,
            m.drops
        );
    }
}

#[test]
fn by_priority_the_laser_is_on_time_at_one_hop() {
    let w = pound(Setup::hops(1), 150, 20);
    w.print("priority, 1 hop");
    all_delivered(&w);
    let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
    assert!(laser.delay_ms.mean < 4.0, "{laser:?}");
    assert!(laser.period_ms.std < 1.6, "{laser:?}");
    assert!((105.0..117.0).contains(&image.delay_ms.mean), "{image:?}");
}

#[test]
fn first_in_first_out_it_is_not() {
    let (p, f) = (
        pound(Setup::hops(1), 150, 20),
        pound(Setup::hops(1).fifo(), 150, 20),
    );
    f.print("fifo, 1 hop");
    all_delivered(&f);
    assert!(f.metrics(LASER).delay_ms.mean > 5.0 * p.metrics(LASER).delay_ms.mean);
    assert!(f.metrics(LASER).period_ms.std > 5.0 * p.metrics(LASER).period_ms.std);
}

#[test]
fn two_hops_keep_the_laser_on_time() {
    let w = pound(Setup::hops(2), 300, 20);
    w.print("priority, 2 hops");
    all_delivered(&w);
    let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
    assert!(
        laser.delay_ms.mean < 8.5 && laser.period_ms.std < 4.0,
        "{laser:?}"
    );
    assert!(image.delay_ms.mean < 290.0, "{image:?}");
}

#[test]
fn frame_loss_costs_time_and_no_message() {
    // Over two hops the losses leave just the air that the image needs.
    for (hops, period, least) in [(1, 150, 0.998), (2, 300, 0.95)] {
        let w = pound(Setup::hops(hops).loss(Loss::Uniform(0.1), 50), period, 20);
        w.print(&format!("10 % frame loss, queue 50, {hops} hops"));
        let (laser, image) = (w.metrics(LASER), w.metrics(IMAGE));
        assert!(
            laser.delivery >= 0.998 && image.delivery >= least,
            "{laser:?} {image:?}"
        );
        let most = [4.6, 10.0][hops - 1];
        assert!(laser.delay_ms.mean <= most, "{laser:?}");
    }
}
