//! Messages, services and actions, and the names of their types.

use crate::failure::{Failure, OrFail};
use ropewalk::Flavour;
use schema::TypeName;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Message,
    Service,
    Action,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Message, Kind::Service, Kind::Action];

    /// Name of the folder of its files, and their extension.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Kind::Message => "msg",
            Kind::Service => "srv",
            Kind::Action => "action",
        }
    }

    /// Heading of a list of this kind.
    pub(super) fn heading(self) -> &'static str {
        match self {
            Kind::Message => "Messages",
            Kind::Service => "Services",
            Kind::Action => "Actions",
        }
    }
}

/// A type: its kind and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Interface {
    pub(super) kind: Kind,
    pub(super) name: TypeName,
}

impl Interface {
    pub(super) fn new(kind: Kind, name: TypeName) -> Self {
        Interface { kind, name }
    }

    /// The name as its ROS writes it.
    pub(super) fn shown(&self, flavour: Flavour) -> String {
        match flavour {
            Flavour::Ros1 => self.name.to_string(),
            Flavour::Ros2 => self.name.with_folder(self.kind.folder()),
        }
    }
}

/// The type of that name, and its possible kinds: all three if the name has no folder.
pub(super) fn parse(text: &str) -> Result<(TypeName, Vec<Kind>), Failure> {
    let name = TypeName::parse(text).or_input()?;
    let folder = text.split('/').nth(1).filter(|_| text.split('/').count() == 3);
    let of_folder = |kind: &Kind| folder.is_none_or(|folder| folder == kind.folder());
    Ok((name, Kind::ALL.into_iter().filter(of_folder).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_says_what_a_type_is() {
        let kinds = |text: &str| parse(text).map(|(_, kinds)| kinds).ok();
        assert_eq!(kinds("std_srvs/srv/SetBool"), Some(vec![Kind::Service]));
        assert_eq!(kinds("std_srvs/SetBool"), Some(Kind::ALL.to_vec()));
        assert_eq!(kinds("SetBool"), None);
        let action = Interface::new(Kind::Action, parse("a/B").expect("a name").0);
        assert_eq!(
            (action.shown(Flavour::Ros2), action.shown(Flavour::Ros1)),
            ("a/action/B".into(), "a/B".into())
        );
    }
}
