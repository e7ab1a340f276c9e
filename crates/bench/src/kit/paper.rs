//! Results of the Pound paper (Tables I to IV), for comparison.

use serde::Serialize;

/// One row of a table: one system's flow over real radios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the names say all")]
pub struct PaperRow {
    pub system: &'static str,
    pub hops: u32,
    pub topic: &'static str,
    pub period_mean_ms: f64,
    pub period_std_ms: f64,
    pub delay_mean_ms: f64,
    pub delay_std_ms: f64,
    pub delivery: f64,
    pub mbit_s: f64,
}

type Numbers = [f64; 6];

const SYSTEMS: [&str; 8] = [
    "TCP", "NOD", "UDP", "UDP/NOD", "Nimbro", "Nimbro*", "Pound", "RT-WMP",
];

/// Table I.
const LASER_1_HOP: [Numbers; 8] = [
    [20.1, 13.3, 18.6, 11.6, 99.3, 0.398],
    [20.1, 4.2, 6.0, 6.5, 99.4, 0.398],
    [20.0, 38.2, 42.5, 34.8, 99.9, 0.400],
    [20.0, 3.2, 5.8, 4.0, 99.8, 0.399],
    [20.0, 38.1, 55.8, 46.0, 99.8, 0.400],
    [20.1, 16.0, 22.2, 12.8, 99.3, 0.397],
    [20.0, 2.0, 4.1, 4.0, 99.8, 0.400],
    [20.1, 2.8, 4.7, 5.0, 99.6, 0.399],
];

/// Table II.
const IMAGE_1_HOP: [Numbers; 8] = [
    [150.1, 7.7, 132.3, 5.9, 99.9, 3.418],
    [150.1, 7.7, 132.7, 5.6, 99.9, 3.418],
    [150.4, 7.2, 106.3, 1.9, 99.7, 3.410],
    [150.1, 7.4, 129.1, 5.2, 99.9, 3.417],
    [149.9, 5.3, 100.3, 31.5, 100.0, 3.421],
    [150.2, 44.7, 194.9, 86.2, 99.9, 3.416],
    [150.2, 2.9, 112.0, 1.9, 99.9, 3.417],
    [233.6, 141.3, 4635.9, 2738.1, 64.2, 2.196],
];

/// Table III.
const LASER_2_HOPS: [Numbers; 8] = [
    [257.1, 2870.8, 3127.6, 10243.4, 7.8, 0.031],
    [56.0, 787.3, 1201.7, 3869.0, 35.7, 0.143],
    [20.1, 61.7, 128.5, 74.6, 99.5, 0.398],
    [21.5, 11.7, 13.0, 10.4, 92.9, 0.372],
    [21.6, 60.0, 113.1, 66.8, 92.4, 0.370],
    [21.4, 489.5, 41.9, 345.0, 93.6, 0.375],
    [20.1, 1.7, 6.8, 1.4, 99.4, 0.398],
    [20.3, 4.2, 8.1, 4.5, 98.3, 0.394],
];

/// Table IV.
const IMAGE_2_HOPS: [Numbers; 8] = [
    [301.0, 68.9, 303.6, 95.8, 99.7, 1.704],
    [300.0, 88.2, 431.6, 347.6, 100.0, 1.710],
    [6908.4, 9351.2, 506.7, 160.1, 4.3, 0.085],
    [512.6, 207.0, 27218.3, 7530.2, 58.5, 1.001],
    [486.6, 340.5, 209.1, 13.7, 61.7, 1.054],
    [788.8, 865.1, 6618.9, 869.1, 38.0, 0.650],
    [300.7, 13.6, 294.2, 2.8, 99.8, 1.706],
    [1108.2, 1153.9, 14479.1, 4484.5, 27.1, 0.463],
];

/// All rows of the paper's tables.
pub(crate) fn rows() -> Vec<PaperRow> {
    let tables = [
        (1, "/laser", LASER_1_HOP),
        (1, "/image", IMAGE_1_HOP),
        (2, "/laser", LASER_2_HOPS),
        (2, "/image", IMAGE_2_HOPS),
    ];
    let row = |hops, topic, system, [jd, jd_std, d, d_std, delivery, mbit_s]: Numbers| PaperRow {
        system,
        hops,
        topic,
        period_mean_ms: jd,
        period_std_ms: jd_std,
        delay_mean_ms: d,
        delay_std_ms: d_std,
        delivery: delivery / 100.0,
        mbit_s,
    };
    let all = tables.into_iter().flat_map(|(hops, topic, table)| {
        SYSTEMS
            .into_iter()
            .zip(table)
            .map(move |(system, numbers)| row(hops, topic, system, numbers))
    });
    all.collect()
}
