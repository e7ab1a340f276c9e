//! Type names: `package/Type`, also written `package/msg/Type`.

use crate::DefinitionError;
use std::fmt;

/// The name of a message or service type, without the `msg` or `srv` folder.
///
/// Both forms are accepted, `sensor_msgs/Image` and `sensor_msgs/msg/Image`; the former is displayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeName {
    package: String,
    name: String,
}

/// Longest accepted package or type name, in bytes.
const MAX_LEN: usize = 128;

impl TypeName {
    /// Parses `package/Type` or `package/{msg,srv,action}/Type`.
    ///
    /// # Errors
    /// [`DefinitionError::BadName`] if it is neither.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        let bad = || DefinitionError::BadName {
            name: text.chars().take(2 * MAX_LEN).collect(),
        };
        let mut parts = text.split('/');
        let (package, second, third) = (parts.next(), parts.next(), parts.next());
        let name = match (second, third, parts.next()) {
            (Some(name), None, None) => name,
            (Some("msg" | "srv" | "action"), Some(name), None) => name,
            _ => return Err(bad()),
        };
        let package = package.filter(|p| is_identifier(p)).ok_or_else(bad)?;
        if !is_identifier(name) {
            return Err(bad());
        }
        Ok(Self {
            package: package.into(),
            name: name.into(),
        })
    }

    /// The folder in a name of ROS 2's style, `msg` if it has none.
    pub(crate) fn folder(text: &str) -> &'static str {
        match text.split('/').nth(1) {
            Some("srv") => "srv",
            Some("action") => "action",
            _ => "msg",
        }
    }

    /// The same for a service: services of an action are in the action's folder, all others in `srv`.
    pub(crate) fn service_folder(text: &str) -> &'static str {
        match Self::folder(text) {
            "action" => "action",
            _ => "srv",
        }
    }

    /// Joins two parts known to be identifiers.
    pub(crate) fn join(package: &str, name: &str) -> Self {
        Self {
            package: package.into(),
            name: name.into(),
        }
    }

    /// The package, `sensor_msgs`.
    pub fn package(&self) -> &str {
        &self.package
    }

    /// The type's own name, `Image`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as ROS 2 writes it, `sensor_msgs/msg/Image`; `folder` is `msg`, `srv` or `action`.
    pub fn with_folder(&self, folder: &str) -> String {
        format!("{}/{folder}/{}", self.package, self.name)
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.package, self.name)
    }
}

/// Whether `s` starts with an ASCII letter or underscore, followed by letters, digits and underscores, of bounded
/// length.
pub(crate) fn is_identifier(s: &str) -> bool {
    let mut bytes = s.bytes();
    s.len() <= MAX_LEN
        && bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_are_one_name() {
        let a = TypeName::parse("sensor_msgs/Image").expect("short");
        assert_eq!(a, TypeName::parse("sensor_msgs/msg/Image").expect("long"));
        assert_eq!(a.to_string(), "sensor_msgs/Image");
        assert_eq!(a.with_folder("msg"), "sensor_msgs/msg/Image");
        for bad in [
            "Image",
            "",
            "/",
            "a/b/c",
            "a/msg/",
            "a/msg/b/c",
            "a b/c",
            "a/1b",
            "../x",
            "a/msg",
        ] {
            let parsed = TypeName::parse(bad);
            if bad == "a/msg" {
                assert!(parsed.is_ok(), "a type may be called msg");
            } else {
                assert!(parsed.is_err(), "{bad}");
            }
        }
    }
}
