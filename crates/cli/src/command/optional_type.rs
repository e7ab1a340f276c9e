//! A request or a goal on the command line, optionally preceded by its type as with `ros2`.

use crate::failure::Failure;
use crate::graph::is_same_type;
use clap::Args;

#[derive(Args)]
pub(super) struct Content {
    /// The message as YAML or JSON; missing fields have their defaults. Its type may precede it, as with ros2.
    #[arg(value_name = "YAML", allow_hyphen_values = true)]
    first: Option<String>,
    #[arg(hide = true, allow_hyphen_values = true)]
    second: Option<String>,
}

impl Content {
    /// The YAML for `name`, which is of type `served`.
    pub(super) fn yaml(&self, name: &str, served: &str) -> Result<&str, Failure> {
        match (&self.first, &self.second) {
            (None, _) => Ok("{}"),
            (Some(one), None) if is_same_type(one, served) => Ok("{}"),
            (Some(yaml), None) if !is_type(yaml) => Ok(yaml),
            (Some(ty), Some(yaml)) if is_same_type(ty, served) => Ok(yaml),
            (Some(ty), _) => Err(Failure::input(format_args!(
                "{name} has the type {served}, not {ty}: leave the type out, or give {served}"
            ))),
        }
    }
}

/// Whether a word is a type name as ROS 2 writes it, and not YAML.
fn is_type(word: &str) -> bool {
    let is_name =
        |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let folder = word.split('/').nth(1);
    word.split('/').all(is_name)
        && word.split('/').count() == 3
        && folder.is_some_and(|f| matches!(f, "srv" | "action" | "msg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_before_the_content_is_checked() {
        let yaml = |first: &str, second: Option<&str>| {
            let content = Content {
                first: Some(first.into()),
                second: second.map(str::to_owned),
            };
            content.yaml("/a", "std_srvs/SetBool").map(str::to_owned).ok()
        };
        assert_eq!(yaml("data: true", None).as_deref(), Some("data: true"));
        assert_eq!(
            yaml("std_srvs/srv/SetBool", Some("data: true")).as_deref(),
            Some("data: true")
        );
        assert_eq!(yaml("std_srvs/SetBool", None).as_deref(), Some("{}"));
        assert_eq!(yaml("std_srvs/srv/Trigger", None), None);
        assert_eq!(yaml("std_srvs/Trigger", Some("{}")), None);
        assert_eq!(yaml("a/b", None).as_deref(), Some("a/b"), "a text of a request");
    }
}
