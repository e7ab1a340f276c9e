//! The scenarios in the binary.

use super::{MAX_HOSTS, Scenario, ScenarioError};

/// A shipped scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name, in which `N` stands for a number.
    pub name: String,
    /// One-line description of what it models.
    pub description: String,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, ".yaml")))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "wifi-1hop",
    "wifi-2hops",
    "wifi-ap",
    "ethernet",
    "delay-2000-one-way",
    "delay-1000-each-way",
    "loss-20",
    "remote-default",
    "remote-loss-20",
    "remote-loss-20-rtt-2s",
    "remote-delay-2000",
    "drive-away",
    "outage-5s",
    "outage-5s-relay",
    "team-of-8",
];

/// `wifi-chain-N`, whose hosts are generated.
const CHAIN: &str = "wifi-chain-";

/// All shipped scenarios, in the recommended order of trying them.
pub fn shipped() -> Vec<Shipped> {
    let one = |name: &str, text: &str| Shipped {
        name: name.to_owned(),
        description: Scenario::parse(text, name).map_or_else(|e| e.to_string(), |s| s.description),
    };
    let mut all: Vec<Shipped> = FILES.iter().map(|(name, text)| one(name, text)).collect();
    let mut chain = one(CHAIN, &chain(5));
    chain.name.push('N');
    chain.description =
        "A line of N hosts on one channel of 802.11a at 6 Mbit/s; each reaches neighbours only.".into();
    all.insert(2, chain);
    all
}

/// The YAML of a shipped scenario; `None` if there is none of this name.
pub(super) fn text(name: &str) -> Result<Option<String>, ScenarioError> {
    if let Some((_, text)) = FILES.iter().find(|(n, _)| *n == name) {
        return Ok(Some((*text).to_owned()));
    }
    let Some(count) = name.strip_prefix(CHAIN) else {
        return Ok(None);
    };
    match count.parse() {
        Ok(n) if (2..=MAX_HOSTS).contains(&n) => Ok(Some(chain(n))),
        _ => Err(ScenarioError::Bad {
            place: name.to_owned(),
            problem: format!("'{count}' hosts: give 2 to {MAX_HOSTS}, for example {CHAIN}5"),
        }),
    }
}

/// The shipped name most similar to `name`.
pub(super) fn nearest(name: &str) -> Option<String> {
    let common = |other: &str| {
        name.chars()
            .zip(other.chars())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let best = FILES
        .iter()
        .map(|(n, _)| *n)
        .chain([CHAIN])
        .max_by_key(|n| common(n))?;
    (common(best) >= 3).then(|| match best {
        CHAIN => format!("{CHAIN}5"),
        _ => best.to_owned(),
    })
}

fn chain(hosts: usize) -> String {
    let names: Vec<String> = (1..=hosts).map(|n| format!("h{n}")).collect();
    format!(
        "description: A line of {hosts} hosts on one channel of 802.11a at 6 Mbit/s; each reaches neighbours only.\n\
         hosts: [{}]\n\
         media:\n  - name: wifi\n    wifi: {{standard: 802.11a, rate: 6Mbit/s, topology: chain}}\n",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_is_good_and_says_what_it_is() {
        for Shipped { name, description } in shipped() {
            let scenario = Scenario::load(&name.replace("-N", "-7")).expect(&name);
            assert!(
                description.len() > 20 && description.lines().count() == 1,
                "{name}: {description}"
            );
            assert!(scenario.description().len() > 20, "{name}");
        }
        assert_eq!(
            Scenario::load("wifi-chain-250").expect("is good").hosts().len(),
            250
        );
    }

    #[test]
    fn unknown_names_are_refused_with_similar_ones() {
        let error = |name| Scenario::load(name).expect_err(name).to_string();
        assert!(
            error("wifi-chain-1").contains("give 2 to 250"),
            "{}",
            error("wifi-chain-1")
        );
        assert!(error("wifi-chain-x").contains("wifi-chain-5"));
        assert!(error("ethernt").contains("perhaps ethernet"));
        assert!(error("nothing").contains("ropewalk lab list"));
        assert!(error("/nonexistent/a.yaml").contains("/nonexistent/a.yaml"));
    }
}
