//! Evaluates the processes' reports.

use super::part::code;
use super::plan::FILE_BYTES;
use crate::kit::cell::Values;
use crate::kit::error::RunError;

pub(super) const LATENCY: [&str; 7] = [
    "latency_ms.min",
    "latency_ms.p25",
    "latency_ms.p50",
    "latency_ms.p75",
    "latency_ms.p99",
    "latency_ms.max",
    "latency_ms.mean",
];
const ALONE: [&str; 7] = [
    "alone_ms.min",
    "alone_ms.p25",
    "alone_ms.p50",
    "alone_ms.p75",
    "alone_ms.p99",
    "alone_ms.max",
    "alone_ms.mean",
];

/// Evaluates the operator's times; returns the values with the number of times. `decided`: the share with a known outcome at
/// the operator; `delivery`: the share that was executed, or came back.
pub(super) fn of_times(reported: &[f64]) -> Result<(Values, u64), RunError> {
    if reported.is_empty() {
        return Err(RunError::Failed("nothing was started in time".into()));
    }
    let odd = |t: &&f64| !(**t >= 0.0 || [code::EXPIRED, code::REJECTED, code::UNREACHABLE].contains(t));
    if let Some(odd) = reported.iter().find(odd) {
        return Err(format!("the operator reported a time of {odd} ms").into());
    }
    let share = |which: &dyn Fn(f64) -> bool| {
        let such = reported.iter().filter(|t| which(**t)).count();
        such as f64 / reported.len() as f64
    };
    let mut values = Values::from([
        ("decided", share(&|t| t != code::UNREACHABLE)),
        ("delivery", share(&|t| t >= 0.0)),
    ]);
    values.extend(spread(reported.iter().copied(), LATENCY));
    Ok((values, reported.len() as u64))
}

/// Evaluates a file transfer: the operator's pairs of sending time and duration of twists; and start, end and bytes of the
/// file.
pub(super) fn of_file(reported: &[Vec<f64>]) -> Result<(Values, u64), RunError> {
    let [twists, file] = reported else {
        return Err(RunError::Failed("two processes did not report".into()));
    };
    let &[begin, end, bytes] = &file[..] else {
        return Err(RunError::Failed(
            "the fetcher did not report three numbers".into(),
        ));
    };
    let pairs = || twists.chunks_exact(2).map(|p| (p[0], p[1]));
    let beside: Vec<f64> = pairs()
        .filter(|(at, _)| (begin..end).contains(at))
        .map(|p| p.1)
        .collect();
    let alone = pairs().filter(|(at, _)| *at < begin).map(|p| p.1);
    let (mut values, made) = of_times(&beside)
        .map_err(|_| RunError::Failed("no twist was sent during the transfer of the file".into()))?;
    values.extend(spread(alone, ALONE));
    let of = |name: &str| values.get(name).copied();
    if let (Some(beside), Some(alone)) = (of("latency_ms.p99"), of("alone_ms.p99")) {
        values.insert("added_p99_ms", (beside - alone).max(0.0));
    }
    values.insert("file_s", end - begin);
    values.insert("file_mbit_s", bytes * 8.0 / (end - begin) / 1e6);
    values.insert("file_share", bytes / FILE_BYTES as f64);
    Ok((values, made))
}

/// Quantiles and mean of the values that are times; empty if there are none.
fn spread(times: impl Iterator<Item = f64>, names: [&'static str; 7]) -> Values {
    let mut times: Vec<f64> = times.filter(|t| *t >= 0.0).collect();
    times.sort_by(f64::total_cmp);
    let Some(last) = times.len().checked_sub(1) else {
        return Values::new();
    };
    let at = |share: f64| times[(last as f64 * share).ceil() as usize];
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let all = [at(0.0), at(0.25), at(0.5), at(0.75), at(0.99), at(1.0), mean];
    names.into_iter().zip(all).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_were_not_executed_have_no_time() {
        let reported = [
            4.0,
            1.0,
            code::EXPIRED,
            2.0,
            code::REJECTED,
            3.0,
            code::UNREACHABLE,
            5.0,
        ];
        let (v, made) = of_times(&reported).expect("is right");
        assert_eq!((v["decided"], v["delivery"], made), (7.0 / 8.0, 5.0 / 8.0, 8));
        let of = |name: &str| v[&*format!("latency_ms.{name}")];
        assert_eq!(
            (of("min"), of("p50"), of("p99"), of("max"), of("mean")),
            (1.0, 3.0, 5.0, 5.0, 3.0)
        );
        let (v, _) = of_times(&[code::UNREACHABLE]).expect("is right");
        assert_eq!((v["decided"], v.get("latency_ms.p50")), (0.0, None));
        for bad in [&[][..], &[f64::NAN], &[-4.0]] {
            assert!(of_times(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn twists_beside_the_file_are_separated_from_those_before() {
        let twists = vec![1.0, 2.0, 2.0, 2.5, 3.0, 9.0, 4.0, 10.0, 5.5, 99.0];
        let (v, made) = of_file(&[twists.clone(), vec![2.5, 5.0, 1e8]]).expect("is right");
        assert_eq!((made, v["latency_ms.p99"], v["alone_ms.p99"]), (2, 10.0, 2.5));
        assert_eq!(
            (v["added_p99_ms"], v["file_mbit_s"], v["file_share"]),
            (7.5, 320.0, 0.5)
        );
        assert!(of_file(&[twists.clone(), vec![7.0, 8.0, 1.0]]).is_err());
        assert!(of_file(&[twists, vec![7.0]]).is_err());
    }
}
