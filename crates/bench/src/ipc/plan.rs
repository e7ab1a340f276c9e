//! The settings of each experiment.

use super::setting::{Mode, Setting};
use super::{Experiment, Options};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Real-time priority: high, and below the kernel's own threads.
const FIFO: u8 = 50;
/// A subscriber that takes one message per second.
const SLOW_US: u64 = 1_000_000;
/// The publisher's memory with a slow subscriber.
const SLOW_LIMIT: u64 = 64 * MIB;

/// Returns the settings of an experiment, in order.
pub(super) fn settings(options: &Options) -> Vec<Setting> {
    match options.experiment {
        Experiment::All => {
            let each = [
                Experiment::Fig7,
                Experiment::Table1,
                Experiment::Fig8,
                Experiment::Fig9,
                Experiment::Spin,
                Experiment::Service,
                Experiment::Throughput,
                Experiment::Publish,
                Experiment::Memory,
            ];
            each.into_iter().flat_map(|e| one(e, options)).collect()
        }
        experiment => one(experiment, options),
    }
}

fn one(experiment: Experiment, options: &Options) -> Vec<Setting> {
    let quick = options.quick;
    let pick = |full: &[u32], short: &[u32]| {
        let default = if quick { short } else { full }.to_vec();
        if options.subscribers.is_empty() {
            default
        } else {
            options.subscribers.clone()
        }
    };
    let sizes = |full: &[u64], short: &[u64]| {
        let default = if quick { short } else { full }.to_vec();
        if options.sizes.is_empty() {
            default
        } else {
            options.sizes.clone()
        }
    };
    let grid = |sizes: Vec<u64>, subscribers: Vec<u32>| -> Vec<Setting> {
        let cells = sizes
            .into_iter()
            .flat_map(|size| subscribers.iter().map(move |n| (size, *n)));
        cells
            .map(|(size, n)| Setting::plain(experiment, size, n))
            .collect()
    };
    const ALL: [u64; 4] = [4 * KIB, 64 * KIB, MIB, 4 * MIB];
    let paper = if quick { (15, 150) } else { (30, 1000) };
    let mut settings = match experiment {
        Experiment::Fig7 => paced(grid(sizes(&ALL, &ALL), pick(&[1, 2, 4, 8], &[1, 8])), 30.0, paper),
        Experiment::Table1 => {
            let mut settings = paced(
                grid(sizes(&[MIB], &[MIB]), pick(&[1, 2, 4], &[1, 4])),
                30.0,
                (5, 30),
            );
            settings.iter_mut().for_each(|s| s.count_copies = true);
            settings
        }
        Experiment::Fig8 => {
            let mut settings = paced(grid(sizes(&[4 * MIB], &[4 * MIB]), pick(&[8], &[8])), 30.0, paper);
            settings.iter_mut().for_each(|s| s.fifo = Some(FIFO));
            settings
        }
        Experiment::Fig9 => reliability(
            quick,
            options,
            grid(sizes(&[64 * KIB, MIB], &[MIB]), pick(&[1, 2, 4, 8], &[1, 8])),
        ),
        Experiment::Spin => {
            // The sizes of a grid would only be written, not transferred.
            let mut settings = paced(
                grid(sizes(&[256], &[256]), vec![1]),
                0.0,
                (1000, if quick { 20_000 } else { 100_000 }),
            );
            settings.iter_mut().for_each(|s| s.mode = Mode::PingPong);
            settings
        }
        Experiment::Service => {
            let cells = grid(sizes(&[64, 64 * KIB], &[64, 64 * KIB]), pick(&[1, 4], &[1, 4]));
            let mut settings = paced(cells.clone(), 30.0, paper);
            // Each client sends its next request after its last reply.
            settings.extend(paced(cells, 0.0, (100, if quick { 2000 } else { 20_000 })));
            settings.iter_mut().for_each(|s| s.mode = Mode::Call);
            settings
        }
        Experiment::Throughput => {
            let settings = grid(sizes(&ALL, &[4 * KIB, MIB]), pick(&[1, 4], &[1]));
            let scaled = |s: Setting| {
                // Some seconds for the fastest system, not many for the slowest.
                let messages = (2_000_000_000 / s.size).clamp(500, 20_000) as u32;
                Setting {
                    messages: if quick { messages / 4 } else { messages },
                    ..s
                }
            };
            let settings = settings.into_iter().map(scaled);
            settings
                .map(|s| Setting {
                    rate: 0.0,
                    warmup: s.messages / 20,
                    ..s
                })
                .collect()
        }
        Experiment::Publish => {
            let mut settings = Vec::new();
            for size in sizes(&ALL, &[4 * KIB, MIB]) {
                for mode in [Mode::Block, Mode::Spin] {
                    let plain = Setting::plain(experiment, size, 1);
                    settings.push(Setting { mode, ..plain });
                }
            }
            paced(settings, 200.0, (20, if quick { 400 } else { 2000 }))
        }
        Experiment::Memory => paced(
            grid(sizes(&ALL, &[4 * KIB, 4 * MIB]), pick(&[1, 8], &[1])),
            30.0,
            (15, 60),
        ),
        Experiment::All => Vec::new(),
    };
    for setting in &mut settings {
        if let Some(messages) = options.messages {
            setting.messages = messages;
        }
        if let Some(rate) = options.rate {
            setting.rate = rate;
        }
        if options.depth.is_some() {
            setting.depth = options.depth;
        }
        setting.awake = options.awake;
    }
    settings
}

fn paced(settings: Vec<Setting>, rate: f64, (warmup, messages): (u32, u32)) -> Vec<Setting> {
    let paced = |s| Setting {
        rate,
        warmup,
        messages,
        ..s
    };
    settings.into_iter().map(paced).collect()
}

/// Every cell at each rate, for at least a second and a half; then a slow and a fast subscriber.
fn reliability(quick: bool, options: &Options, cells: Vec<Setting>) -> Vec<Setting> {
    let rates: &[f64] = if quick {
        &[100.0, 1000.0]
    } else {
        &[30.0, 100.0, 300.0, 1000.0]
    };
    let mut settings = Vec::new();
    for cell in cells {
        for rate in rates {
            let seconds = if quick { 1.5 } else { 5.0 };
            let messages = (rate * seconds) as u32;
            settings.push(Setting {
                rate: *rate,
                messages,
                warmup: messages / 10,
                ..cell
            });
        }
    }
    let size = options.sizes.first().copied().unwrap_or(MIB);
    let messages = if quick { 3000 } else { 10_000 };
    settings.push(Setting {
        rate: 1000.0,
        warmup: 100,
        messages,
        slow_us: Some(SLOW_US),
        depth: Some(1),
        limit: Some(SLOW_LIMIT.max(size.saturating_mul(8))),
        ..Setting::plain(Experiment::Fig9, size, 2)
    });
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fig7_is_the_papers_grid() {
        let full = settings(&Options::new(Experiment::Fig7));
        assert_eq!(full.len(), 16);
        assert!(
            full.iter()
                .all(|s| s.rate == 30.0 && s.messages == 1000 && s.mode == Mode::Block)
        );
        let mut options = Options::new(Experiment::Fig7);
        options.quick = true;
        assert_eq!(settings(&options).len(), 8);
        options.sizes = vec![4096];
        options.subscribers = vec![3];
        options.messages = Some(7);
        options.rate = Some(10.0);
        options.awake = true;
        let one = settings(&options);
        assert_eq!(one.len(), 1);
        assert_eq!(
            (one[0].size, one[0].subscribers, one[0].messages, one[0].rate),
            (4096, 3, 7, 10.0)
        );
        assert!(one[0].awake && full.iter().all(|s| !s.awake));
    }

    #[test]
    fn beside_a_slow_one_only_its_queue_is_short() {
        let mut options = Options::new(Experiment::Fig9);
        let slow = |options: &Options| settings(options).into_iter().rfind(|s| s.slow_us.is_some());
        let depths = |s: Setting| (s.depth_of(0), s.depth_of(1), s.deepest());
        let first = slow(&options).expect("a slow one");
        assert_eq!(depths(first), (Some(1), Some(16), Some(16)));
        let plain = settings(&options)[0];
        assert_eq!(depths(plain), (None, None, None));
        options.depth = Some(64);
        assert_eq!(
            depths(slow(&options).expect("one")),
            (Some(64), Some(64), Some(64))
        );
        options.depth = Some(2);
        assert_eq!(depths(settings(&options)[0]), (Some(2), Some(2), Some(2)));
    }

    #[test]
    fn all_is_every_experiment() {
        for quick in [false, true] {
            let mut options = Options::new(Experiment::All);
            options.quick = quick;
            let all = settings(&options);
            for experiment in <Experiment as clap::ValueEnum>::value_variants() {
                let some = all.iter().any(|s| s.experiment == *experiment);
                assert_eq!(some, *experiment != Experiment::All, "{experiment:?}");
            }
            assert!(all.iter().all(|s| s.messages > 0));
        }
    }
}
