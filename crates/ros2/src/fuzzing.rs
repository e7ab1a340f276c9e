//! Entry points of the fuzz targets. Not part of the interface.

use crate::config::Config;
use crate::dds::fuzzing;

/// Reads a configuration. If that succeeds, it must pass the check again, and all its rules can be looked up by name.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(config) = Config::parse(&text, "bridge.yaml") {
        assert!(config.check().is_ok());
        let (topics, services) = config.whole();
        let rules = bridge::Rules {
            topics: &topics,
            services: &services,
        };
        for name in ["/a", "/camera/left/image", "/fib/_action/status"] {
            let _ = (rules.topic_to_bus(name), rules.topic_to_ros(name));
            let _ = (rules.service_to_bus(name), rules.service_to_ros(name));
        }
    }
}

/// Reads `ros_discovery_info`. It must survive a round trip, and take memory in proportion.
pub fn entities(data: &[u8]) {
    fuzzing::entities(data);
}

/// Reads requests and responses with or without a header; the first byte chooses.
pub fn service(data: &[u8]) {
    fuzzing::service(data);
}

/// Reads the user data of a participant and of an endpoint.
pub fn user_data(data: &[u8]) {
    fuzzing::user_data(data);
}

/// Reads an endpoint: the first byte is its kind; its topic, type and user data follow, one per line.
pub fn endpoint(data: &[u8]) {
    fuzzing::endpoint(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Runs each seed as it is, cut at every position, and with random changes: `rounds` times, or as often as makes
    /// `PACKETS` in total.
    fn replay(target: &str, rounds: usize, check: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz/corpus")
            .join(target);
        let files: Vec<_> = std::fs::read_dir(folder).expect("the corpus is there").collect();
        assert!(files.len() > 2, "{target} has no corpus");
        let rounds = std::env::var("PACKETS").map_or(rounds, |n| {
            n.parse::<usize>().expect("PACKETS is a number") / files.len()
        });
        // xorshift64
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32
        };
        for entry in files {
            let seed = std::fs::read(entry.expect("a seed").path()).expect("a seed");
            check(&seed);
            (0..seed.len()).for_each(|n| check(&seed[..n]));
            for _ in 0..rounds {
                let mut mutant = seed.clone();
                for _ in 0..=random() % 3 {
                    let at = random() as usize % mutant.len().max(1);
                    match random() % 4 {
                        _ if mutant.is_empty() => mutant.push(random() as u8),
                        0 => mutant[at] = random() as u8,
                        1 => mutant.iter_mut().skip(at).take(4).for_each(|b| *b = 0xff),
                        2 => drop(mutant.splice(at..at, seed.iter().copied().skip(at / 2).take(9))),
                        _ => drop(mutant.splice(at..(at + 5).min(mutant.len()), [b'/'])),
                    }
                }
                check(&mutant);
            }
        }
    }

    #[test]
    fn configurations_and_their_mutants_are_read_or_refused() {
        replay("ros2_config", 300, config);
    }

    #[test]
    fn names_of_nodes_and_their_mutants_are_read_or_refused() {
        replay("ros2_entities", 5_000, entities);
    }

    #[test]
    fn requests_responses_and_their_mutants_are_read_or_refused() {
        replay("ros2_service", 5_000, service);
    }

    #[test]
    fn user_data_of_others_and_its_mutants_is_read_or_refused() {
        replay("ros2_user_data", 5_000, user_data);
    }

    #[test]
    fn endpoints_of_others_and_their_mutants_are_seen_or_left_out() {
        replay("ros2_endpoint", 5_000, endpoint);
    }
}
