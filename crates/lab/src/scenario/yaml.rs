//! The YAML form of a scenario; `check` validates it.

use super::{ScenarioError, Settings};
use serde::Deserialize;
use serde_saphyr::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    pub(super) description: String,
    #[serde(default = "one")]
    pub(super) seed: u64,
    pub(super) congestion_control: Option<Spanned<String>>,
    pub(super) hosts: Spanned<Vec<Spanned<String>>>,
    pub(super) media: Spanned<Vec<WrittenMedium>>,
    #[serde(default)]
    pub(super) links: Vec<WrittenLink>,
    #[serde(default)]
    pub(super) events: Vec<WrittenEvent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenMedium {
    pub(super) name: Spanned<String>,
    pub(super) hosts: Option<Vec<Spanned<String>>>,
    pub(super) wifi: Option<WrittenWifi>,
    pub(super) wire: Option<WrittenWire>,
    pub(super) queue: Option<Spanned<u32>>,
    pub(super) set: Option<Spanned<Settings>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenWifi {
    #[serde(default)]
    pub(super) standard: WrittenStandard,
    pub(super) rate: Spanned<String>,
    #[serde(default)]
    pub(super) topology: WrittenTopology,
    pub(super) access_point: Option<Spanned<String>>,
    pub(super) links: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    pub(super) hearing: WrittenHearing,
    #[serde(default)]
    pub(super) edca: bool,
    pub(super) retries: Option<u8>,
}

#[derive(Default, Deserialize)]
pub(super) enum WrittenStandard {
    #[default]
    #[serde(rename = "802.11a")]
    A,
    #[serde(rename = "802.11b")]
    B,
    #[serde(rename = "802.11g")]
    G,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenTopology {
    #[default]
    Chain,
    Mesh,
    AccessPoint,
    Links,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenHearing {
    #[default]
    All,
    Linked,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenWire {
    #[serde(default)]
    pub(super) profile: WrittenProfile,
    pub(super) rate: Option<Spanned<String>>,
    pub(super) queue_bytes: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WrittenProfile {
    #[default]
    Ethernet,
    LongHaul,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenLink {
    pub(super) target: Spanned<String>,
    pub(super) set: Spanned<Settings>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenEvent {
    pub(super) at: Spanned<String>,
    pub(super) target: Spanned<String>,
    pub(super) set: Spanned<Settings>,
}

pub(super) fn parse(text: &str, place: &str) -> Result<Written, ScenarioError> {
    serde_saphyr::from_str(text).map_err(|e| ScenarioError::Bad {
        place: match e.location() {
            Some(at) => format!("{place}:{}:{}", at.line(), at.column()),
            None => place.to_owned(),
        },
        problem: problem(&e),
    })
}

/// What is wrong, on one line and without the place.
pub(super) fn problem(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.split(" at line ").next().unwrap_or(first);
    // Replaces the parser's wording for the most common errors.
    match first {
        "expected sequence start" => "a list is expected here, such as [robot, base]".into(),
        "expected mapping start" => "keys and values are expected here, such as {rate: 6Mbit/s}".into(),
        "unexpected end of input" => {
            "the text ends here: a scenario names at least `hosts` and `media`".into()
        }
        "invalid u8" => "a whole number from 0 to 255 is expected here".into(),
        other => schema::with_suggestion(other),
    }
}

fn one() -> u64 {
    1
}
