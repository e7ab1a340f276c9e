//! Every datagram of these runs, byte for byte and with its time, is what it was before decisions moved to `policy`.
//!
//! To be deleted with the first intended change of a decision. `TRACES=1` prints the present values.

use crate::common::day::Day;
use crate::common::mesh::Mesh;
use crate::common::team::Team;
use crate::common::*;
use crate::{day, rated_wire, sharing, wire};
use medium::{Delay, Loss};
use proto::*;
use std::time::Duration;

type Scenario = Box<dyn Fn()>;
type Run = (String, Scenario);
type Change = fn(&mut RadioConfig);

fn named(runs: Vec<(&str, Scenario)>) -> Vec<Run> {
    runs.into_iter()
        .map(|(name, run)| (name.to_owned(), run))
        .collect()
}

/// Compares the runs with what they were: name, number of datagrams, their hash.
fn compare(runs: Vec<Run>, expected: &[(&str, u64, u64)]) {
    let found: Vec<_> = runs
        .iter()
        .map(|(name, run)| {
            let (count, hash) = trace::of(run);
            (name.as_str(), count, hash)
        })
        .collect();
    if std::env::var_os("TRACES").is_some_and(|v| !v.is_empty()) {
        for (name, count, hash) in &found {
            println!("        (\"{name}\", {count}, 0x{hash:016x}),");
        }
        return;
    }
    let differ: Vec<_> = found.iter().filter(|f| !expected.contains(f)).collect();
    assert!(
        differ.is_empty() && found.len() == expected.len(),
        "these runs differ from what they were: {differ:x?}"
    );
}

fn auto(setup: Setup) -> Setup {
    Setup { auto: true, ..setup }
}

/// A wire that the ends know no rate of.
fn unrated(in_flight: u32, delay: Duration) -> Setup {
    Setup {
        unrated: in_flight,
        ..Setup::wire(1_000_000_000, Delay::Fixed(delay))
    }
}

/// Media of every kind.
fn setups() -> Vec<(&'static str, Setup)> {
    let loss = Loss::Uniform(0.1);
    let lossy = Loss::Uniform(0.05);
    let varies = Delay::Uniform {
        min: Duration::ZERO,
        max: ms(10),
    };
    vec![
        ("known", Setup::hops(1)),
        ("known, seed 2", Setup::hops(1).seed(2)),
        ("known, two hops", Setup::hops(2)),
        ("known, four hops", Setup::hops(4)),
        ("known, fifo", Setup::hops(1).fifo()),
        ("known, frames lost", Setup::hops(1).loss(loss.clone(), 50)),
        ("known, packets lost", Setup::path(ms(30), lossy.clone())),
        ("known, long path", Setup::path(ms(250), Loss::NONE)),
        (
            "known, within QUIC",
            Setup {
                around: QUIC,
                ..Setup::hops(1)
            },
        ),
        (
            "known, nothing foreseen",
            Setup {
                predict: false,
                ..Setup::hops(1)
            },
        ),
        (
            "unpaced",
            Setup {
                paced: false,
                ..Setup::hops(1)
            },
        ),
        ("auto", auto(Setup::hops(1))),
        ("auto, seed 2", auto(Setup::hops(1).seed(2))),
        ("auto, two hops", auto(Setup::hops(2))),
        ("auto, frames lost", auto(Setup::hops(1).loss(loss, 50))),
        ("auto, packets lost", auto(Setup::path(ms(30), lossy.clone()))),
        (
            "auto, unpaced",
            auto(Setup {
                paced: false,
                ..Setup::hops(1)
            }),
        ),
        ("wire", Setup::wire(10_450_000, Delay::Fixed(ms(5)))),
        ("wire, quick", Setup::wire(40_000_000, Delay::Fixed(ms(1)))),
        ("wire, slow", Setup::wire(115_200, Delay::Fixed(ms(1)))),
        ("wire, varies", Setup::wire(10_450_000, varies)),
        ("wire, auto", auto(Setup::wire(10_450_000, Delay::Fixed(ms(5))))),
        (
            "wire, packets lost",
            Setup {
                wire_bits: 10_450_000,
                ..Setup::path(ms(20), lossy)
            },
        ),
        ("unrated", unrated(64, Duration::from_micros(200))),
        ("unrated, few in flight", unrated(3, ms(2))),
        ("unrated, far", unrated(16, ms(20))),
    ]
}

/// Topics of every kind in both directions, as in a day, and a bulk file.
fn mixed(setup: &Setup) {
    let mut w = setup.build();
    for (node, flows) in day::flows().into_iter().enumerate() {
        for f in flows {
            let g = f.geometry;
            w.source(node, f.config, f.period, ms(5_000), move |_, _| g);
        }
    }
    let file = TopicConfig {
        reliability: Reliability::Bulk,
        ordering: Ordering::Any,
        ..topic("/file", 3, 2)
    };
    w.source(1, file, ms(1_500), ms(4_000), fixed(12, 100_000));
    w.run(ms(6_000));
}

#[test]
fn pound_and_mixed_traffic_over_each_kind_of_medium() {
    let mut runs: Vec<Run> = Vec::new();
    for (name, setup) in setups() {
        let s = setup.clone();
        runs.push((
            format!("pound: {name}"),
            Box::new(move || {
                pound(s.clone(), 150, 5);
            }),
        ));
        runs.push((format!("mixed: {name}"), Box::new(move || mixed(&setup))));
    }
    compare(runs, POUND);
}

fn troubled(model: fn(u64) -> AirtimeModel, seed: u64, auto: bool) {
    let mut d = Day::over(model, seed, auto, day::flows());
    for _ in 0..40 {
        let pause = ms(100 + d.rng.below(2_500));
        d.run(pause);
        day::restart_the_dead(&mut d);
        day::disturb(&mut d);
    }
}

fn cable(rate: u64) -> AirtimeModel {
    AirtimeModel::bytes(rate, IP as u32)
}

#[test]
fn days() {
    let runs = named(vec![
        ("known", Box::new(|| day::live_through(1, false, ms(40_000)))),
        ("auto", Box::new(|| day::live_through(2, true, ms(40_000)))),
        (
            "known, seed 3",
            Box::new(|| troubled(AirtimeModel::wifi, 3, false)),
        ),
        ("auto, seed 4", Box::new(|| troubled(AirtimeModel::wifi, 4, true))),
        ("cable, seed 5", Box::new(|| troubled(cable, 5, false))),
        ("cable, auto, seed 6", Box::new(|| troubled(cable, 6, true))),
    ]);
    compare(runs, DAYS);
}

fn over_cable(config: &mut RadioConfig) {
    config.airtime = cable(6_000_000);
}

fn over_unrated(config: &mut RadioConfig) {
    (config.wire, config.in_flight, config.holds) = (true, 8, 30);
}

fn unknown(config: &mut RadioConfig) {
    config.auto_rate = true;
}

/// Three hosts to one, or one to two others that are not alike.
fn load(seed: u64, change: Change) {
    let pairs = [(1, 0), (2, 0), (3, 0), (1, 2)];
    let mut t = Team::new(4, sharing::wifi(seed), &pairs, &sharing::CLOCKS, change);
    let run = ms(6_000);
    for i in 1..4 {
        t.stream((i, 0), topic("/laser", 100, 2), 500, ms(100), ms(1), run);
        t.stream(
            (i, 0),
            topic("/bulk", 10, 2),
            64_000,
            ms(100),
            Duration::ZERO,
            run,
        );
    }
    t.stream((0, 1), topic("/joy", 120, 2), 64, ms(20), ms(2), run);
    t.stream((0, 3), topic("/joy", 120, 2), 64, ms(20), ms(2), run);
    t.stream((1, 2), topic("/scan", 50, 10), 4_450, ms(40), Duration::ZERO, run);
    t.run_until(stats::Time::ZERO + ms(7_000));
}

fn scans(seed: u64, period: Duration) {
    sharing::scans_both_ways(seed, period);
}

#[test]
fn shared_air() {
    let mut runs = named(vec![
        ("robots", Box::new(|| drop(sharing::robots(1, ms(1))))),
        ("robots, 3 ms", Box::new(|| drop(sharing::robots(2, ms(3))))),
        ("scans", Box::new(|| scans(1, ms(40)))),
        (
            "scans that fill the air",
            Box::new(|| scans(2, Duration::from_micros(13_850))),
        ),
    ]);
    let kinds: [(&str, Change); 6] = [
        ("known", |_| ()),
        ("auto", unknown),
        ("cable", over_cable),
        ("unrated", over_unrated),
        ("does not yield", |c| c.yields = false),
        ("30 % at least", |c| c.least_share = 0.3),
    ];
    let names = [
        "two robots",
        "twists",
        "twists beside bulk",
        "twists in a row",
        "load",
    ];
    for (kind, change) in kinds {
        let of: [Scenario; 5] = [
            Box::new(move || drop(sharing::two_robots(1, true, true, change))),
            Box::new(move || drop(sharing::twists(1, Reliability::Reliable, change))),
            Box::new(move || drop(sharing::twists(2, Reliability::Bulk, change))),
            Box::new(move || drop(sharing::twists_in_a_row(1, true, change))),
            Box::new(move || load(1, change)),
        ];
        runs.extend(
            names
                .iter()
                .zip(of)
                .map(|(name, run)| (format!("{name}: {kind}"), run)),
        );
    }
    compare(runs, SHARED);
}

/// A chain and a way round, whose relays die and fade.
fn relays(seed: u64, change: Change) {
    let pairs = [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4), (0, 4)];
    let mut m = Mesh::with(5, &pairs, &[1, 2, 3], &[3, 4], seed, change);
    m.late = Duration::from_micros(300);
    let run = ms(9_000);
    m.source(0, &[4], topic("/laser", 100, 5), ms(20), run, 1_000);
    m.source(0, &[3, 4], topic("/image", 10, 2), ms(500), run, 30_000);
    let log = TopicConfig {
        reliability: Reliability::Reliable,
        ordering: Ordering::InOrder,
        expiry: Some(ms(2_000)),
        ..topic("/log", 60, 16)
    };
    m.source(4, &[3], log, ms(150), run, 700);
    m.run(ms(2_000));
    m.link(0, 4, 0.4);
    m.run(ms(2_000));
    m.link(0, 4, 1.0);
    m.run(ms(1_500));
    m.kill(1);
    m.run(ms(1_500));
    m.start(1);
    m.run(ms(1_000));
    m.sleep(2, ms(300));
    m.run(ms(2_000));
}

#[test]
fn relayed() {
    let runs = named(vec![
        ("known", Box::new(|| relays(1, |_| ()))),
        ("known, seed 2", Box::new(|| relays(2, |_| ()))),
        ("auto", Box::new(|| relays(3, unknown))),
        ("cable", Box::new(|| relays(4, over_cable))),
        ("unrated", Box::new(|| relays(5, over_unrated))),
    ]);
    compare(runs, RELAYED);
}

#[test]
fn wires() {
    let most = |delay_us, holds, joystick| {
        wire::most_on_the_way(Duration::from_micros(delay_us), holds, joystick);
    };
    let back = |reliability| {
        rated_wire::there_and_back(Delay::Fixed(ms(20)), reliability);
    };
    let runs = named(vec![
        ("wide", Box::new(move || most(1000, 300, false))),
        ("with a joystick", Box::new(move || most(1000, 300, true))),
        ("far", Box::new(move || most(5000, 300, false))),
        (
            "joined",
            Box::new(wire::what_the_carrier_joins_counts_as_its_pieces_and_is_best_effort_only),
        ),
        ("there and back", Box::new(move || back(Reliability::Reliable))),
        (
            "there and back in bulk",
            Box::new(move || back(Reliability::Bulk)),
        ),
    ]);
    compare(runs, WIRES);
}

const POUND: &[(&str, u64, u64)] = &[
    ("pound: known", 2003, 0x003d_4f4f_d24a_05c9),
    ("mixed: known", 1866, 0x243d_abed_c9ec_fa68),
    ("pound: known, seed 2", 1994, 0x0e3f_7fab_b9a7_8f9e),
    ("mixed: known, seed 2", 1841, 0xa36b_5e60_5c1c_dda3),
    ("pound: known, two hops", 1514, 0xaceb_d020_a48a_1ed4),
    ("mixed: known, two hops", 1774, 0x500c_9462_d91d_a338),
    ("pound: known, four hops", 800, 0x6ddf_a93f_94a3_96d9),
    ("mixed: known, four hops", 987, 0x53bc_b834_536f_16ce),
    ("pound: known, fifo", 1932, 0xd46e_e693_1c2a_9fb3),
    ("mixed: known, fifo", 1625, 0xebb1_7612_6ec9_ac80),
    ("pound: known, frames lost", 2053, 0x5830_dc9a_a761_39ae),
    ("mixed: known, frames lost", 1869, 0x6e93_fe4d_62a9_64b7),
    ("pound: known, packets lost", 2154, 0xbd9f_ed56_c031_7c92),
    ("mixed: known, packets lost", 2335, 0x6dcf_5ee1_44ba_2021),
    ("pound: known, long path", 1764, 0xd54b_0b5f_ccfe_f477),
    ("mixed: known, long path", 1911, 0x836e_f82f_3777_7e93),
    ("pound: known, within QUIC", 2043, 0x4c6a_fc0a_9e1f_40de),
    ("mixed: known, within QUIC", 1888, 0x2415_0bc8_d68a_934f),
    ("pound: known, nothing foreseen", 1980, 0x9768_afcd_0b20_7f97),
    ("mixed: known, nothing foreseen", 1770, 0x664b_9fb3_9eef_6620),
    ("pound: unpaced", 1976, 0x89a0_4ce2_78d3_9280),
    ("mixed: unpaced", 1889, 0x2286_a4f0_1811_0be5),
    ("pound: auto", 2114, 0x20d1_6659_ef44_3667),
    ("mixed: auto", 2311, 0x16b1_b9f8_2eb2_507e),
    ("pound: auto, seed 2", 2199, 0x1cff_f976_ccf1_d4f4),
    ("mixed: auto, seed 2", 2070, 0xe1fb_59e0_4d28_33c9),
    ("pound: auto, two hops", 2213, 0x8f65_0f93_729b_8ac7),
    ("mixed: auto, two hops", 2649, 0x6e4b_80e9_ab99_a4aa),
    ("pound: auto, frames lost", 2580, 0x23da_fb31_b2fa_6968),
    ("mixed: auto, frames lost", 2257, 0xf9ad_e02b_2f8e_03e9),
    ("pound: auto, packets lost", 2104, 0x73e9_7029_a3f9_cf4b),
    ("mixed: auto, packets lost", 2335, 0xa0f0_edc4_bc0c_0aa6),
    ("pound: auto, unpaced", 2234, 0xc06a_2d70_01ea_3c1f),
    ("mixed: auto, unpaced", 2415, 0x19d7_5793_2890_2cf8),
    ("pound: wire", 2034, 0x002a_a659_3804_9792),
    ("mixed: wire", 1812, 0x31ae_1de1_9d71_3ee1),
    ("pound: wire, quick", 1975, 0xda60_5c41_e5f8_3c37),
    ("mixed: wire, quick", 1730, 0x5fdc_cc95_152f_58da),
    ("pound: wire, slow", 147, 0x1126_f46e_dad6_b094),
    ("mixed: wire, slow", 333, 0x5890_583d_8d1c_fd26),
    ("pound: wire, varies", 2027, 0x8aa7_d1ed_3351_2d98),
    ("mixed: wire, varies", 1799, 0xf01f_6943_7d4c_aad8),
    ("pound: wire, auto", 2011, 0x2b32_a53a_e598_5c1e),
    ("mixed: wire, auto", 1983, 0xa3f5_8fb0_7ac0_a74a),
    ("pound: wire, packets lost", 2366, 0xff74_2576_7afc_e992),
    ("mixed: wire, packets lost", 2298, 0xa98b_a45c_b279_3858),
    ("pound: unrated", 1898, 0x24a2_f36a_aba0_4511),
    ("mixed: unrated", 1704, 0x9e1c_a78e_1178_1219),
    ("pound: unrated, few in flight", 3534, 0xc49f_4512_3ba7_38dd),
    ("mixed: unrated, few in flight", 3014, 0xb2c6_ba36_ceb8_2465),
    ("pound: unrated, far", 2597, 0x5618_4b6e_9ee1_a634),
    ("mixed: unrated, far", 2308, 0xf62d_4d8a_1a69_dea2),
];
const DAYS: &[(&str, u64, u64)] = &[
    ("known", 19329, 0x7849_3bcd_e97f_8bfd),
    ("auto", 5807, 0x96bf_bdd6_ac8d_1c34),
    ("known, seed 3", 11247, 0xf0a6_1179_6222_17f7),
    ("auto, seed 4", 17058, 0x4b9b_25d0_6d09_719b),
    ("cable, seed 5", 8998, 0x09b7_800f_6d6e_82a0),
    ("cable, auto, seed 6", 9815, 0xd371_9dd9_8eca_365f),
];
const SHARED: &[(&str, u64, u64)] = &[
    ("robots", 3403, 0xb2ed_06fb_f6d5_f9c0),
    ("robots, 3 ms", 3268, 0x1756_7d0c_df7f_7f07),
    ("scans", 1808, 0x21a8_4a3c_8fcf_ee67),
    ("scans that fill the air", 4641, 0x7ff8_529e_7dc3_a8c9),
    ("two robots: known", 5146, 0xbed0_aa60_e0b2_5a48),
    ("twists: known", 9437, 0x27ac_d4b8_3464_2d82),
    ("twists beside bulk: known", 8514, 0xa898_a46a_81cd_516b),
    ("twists in a row: known", 8812, 0x161f_350f_f071_c466),
    ("load: known", 3740, 0xfbfe_6ebc_cad2_2ab3),
    ("two robots: auto", 5371, 0x2c58_b4c2_c7ff_e39c),
    ("twists: auto", 13741, 0x4e89_c49a_5a52_3182),
    ("twists beside bulk: auto", 13971, 0xe507_11eb_1a5e_eaf7),
    ("twists in a row: auto", 9458, 0x29d7_f143_137f_481b),
    ("load: auto", 4841, 0x3fb5_489e_0d1e_cc37),
    ("two robots: cable", 5428, 0x86ea_3403_64af_980b),
    ("twists: cable", 8960, 0xfb1c_dc98_1331_05e4),
    ("twists beside bulk: cable", 9872, 0x6daa_7872_96fe_5491),
    ("twists in a row: cable", 6847, 0xd3ed_a7f5_5ddd_f929),
    ("load: cable", 7418, 0x5281_650a_108d_a9bd),
    ("two robots: unrated", 7273, 0xcd47_6a1b_e8c8_16bd),
    ("twists: unrated", 13831, 0xef38_9c99_9205_5589),
    ("twists beside bulk: unrated", 14210, 0xcdbc_310e_7bf3_de76),
    ("twists in a row: unrated", 10520, 0x7ee8_6652_95e1_8c5d),
    ("load: unrated", 5256, 0x8583_8765_cfb8_54c9),
    ("two robots: does not yield", 5214, 0xa174_f5a0_a735_8cb3),
    ("twists: does not yield", 8258, 0xa548_f4e8_054a_7145),
    ("twists beside bulk: does not yield", 8666, 0x8832_61ca_a485_f932),
    ("twists in a row: does not yield", 7957, 0xb365_6b7b_e07a_76fd),
    ("load: does not yield", 3760, 0x1048_c8e4_a62b_6df3),
    ("two robots: 30 % at least", 5305, 0x4281_393d_b850_2a48),
    ("twists: 30 % at least", 9437, 0x27ac_d4b8_3464_2d82),
    ("twists beside bulk: 30 % at least", 8514, 0xa898_a46a_81cd_516b),
    ("twists in a row: 30 % at least", 8812, 0x161f_350f_f071_c466),
    ("load: 30 % at least", 3605, 0x12ff_1707_df52_9e75),
];
const RELAYED: &[(&str, u64, u64)] = &[
    ("known", 4163, 0x81b0_f93b_50ae_4968),
    ("known, seed 2", 4214, 0x60b7_39f1_73fc_f698),
    ("auto", 5177, 0x8c92_004d_9680_a163),
    ("cable", 4161, 0xbeec_63d3_4e36_6a51),
    ("unrated", 4830, 0x4581_45f9_eefb_2cb2),
];
const WIRES: &[(&str, u64, u64)] = &[
    ("wide", 41224, 0xdd9d_f088_d5d0_6065),
    ("with a joystick", 9455, 0xcaf3_cd94_ac05_8254),
    ("far", 1994, 0xa929_4763_ded2_4477),
    ("joined", 334, 0x9344_3ec3_1ed3_fd00),
    ("there and back", 5001, 0xb66c_720c_39be_6a12),
    ("there and back in bulk", 5105, 0x1997_51a1_a973_f456),
];
