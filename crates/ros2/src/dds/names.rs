//! How ROS 2 maps names to DDS: topics get a prefix that says what they are, types get a namespace `dds_` and a
//! trailing underscore. ROS 2 design, "Topic and Service name mapping to DDS".

/// Meaning of a DDS topic in ROS 2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meaning {
    /// A topic, by its full name.
    Topic(String),
    /// The requests of a service, by its full name.
    Requests(String),
    /// The responses of a service.
    Responses(String),
}

/// Returns the meaning of a DDS topic; `None` if it does not belong to ROS 2.
pub(super) fn meaning(dds: &str) -> Option<Meaning> {
    let (prefix, name) = dds.split_at_checked(2)?;
    let full = |name: &str| (name.len() > 1 && name.starts_with('/')).then(|| name.to_owned());
    Some(match prefix {
        "rt" => Meaning::Topic(full(name)?),
        "rq" => Meaning::Requests(full(name.strip_suffix("Request")?)?),
        "rr" => Meaning::Responses(full(name.strip_suffix("Reply")?)?),
        _ => return None,
    })
}

/// Returns the DDS topic name.
pub(super) fn topic(meaning: &Meaning) -> String {
    match meaning {
        Meaning::Topic(name) => format!("rt{name}"),
        Meaning::Requests(name) => format!("rq{name}Request"),
        Meaning::Responses(name) => format!("rr{name}Reply"),
    }
}

/// Converts a DDS type to ROS 2's notation: `std_msgs::msg::dds_::String_` is `std_msgs/msg/String`. Returns `None` if
/// it does not belong to ROS 2.
pub(crate) fn type_of(dds: &str) -> Option<String> {
    let (namespace, name) = dds.rsplit_once("::dds_::")?;
    let name = name.strip_suffix('_').filter(|n| is_word(n))?;
    let (package, folder) = namespace.split_once("::")?;
    (is_word(package) && is_word(folder)).then(|| format!("{package}/{folder}/{name}"))
}

/// Converts a ROS 2 type to DDS' notation; `None` if its name does not have three parts.
pub(crate) fn dds_type(ros: &str) -> Option<String> {
    let mut words = ros.split('/');
    let (package, folder, name) = (words.next()?, words.next()?, words.next()?);
    let is_whole = words.next().is_none() && [package, folder, name].into_iter().all(is_word);
    is_whole.then(|| format!("{package}::{folder}::dds_::{name}_"))
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns the service of a request or response type: `std_srvs/srv/SetBool` for `std_srvs/srv/SetBool_Request`.
pub(super) fn service_of(ros: &str) -> Option<&str> {
    let name = ros
        .strip_suffix("_Request")
        .or_else(|| ros.strip_suffix("_Response"))?;
    (!name.ends_with('/')).then_some(name)
}

/// Reads the type hash from an endpoint's user data: `typehash=RIHS01_…;`.
pub(super) fn hash_of(user_data: &[u8]) -> Option<[u8; 32]> {
    let text = std::str::from_utf8(user_data).ok()?;
    let mut entries = text.trim_end_matches('\0').split(';');
    let hash = entries.find_map(|e| e.strip_prefix("typehash="))?;
    let digits = hash
        .strip_prefix("RIHS01_")
        .filter(|d| d.len() == 64 && d.bytes().all(|b| b.is_ascii_hexdigit()))?;
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Writes user data with a type hash.
pub(super) fn user_data(hash: [u8; 32]) -> Vec<u8> {
    let digits: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("typehash=RIHS01_{digits};").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_and_services_have_their_prefixes() {
        for (dds, ros) in [
            ("rt/chatter", Meaning::Topic("/chatter".into())),
            ("rq/a/bRequest", Meaning::Requests("/a/b".into())),
            ("rr/a/bReply", Meaning::Responses("/a/b".into())),
            ("rt/RequestReply", Meaning::Topic("/RequestReply".into())),
        ] {
            assert_eq!(meaning(dds), Some(ros.clone()));
            assert_eq!(topic(&ros), dds);
        }
        for other in [
            "",
            "r",
            "rt",
            "rt/",
            "rtx",
            "rq/a",
            "rr/aRequest",
            "rqRequest",
            "ros_discovery_info",
            "é/a",
        ] {
            assert_eq!(meaning(other), None, "{other}");
        }
    }

    #[test]
    fn types_go_there_and_back() {
        for (dds, ros) in [
            ("std_msgs::msg::dds_::String_", "std_msgs/msg/String"),
            (
                "std_srvs::srv::dds_::SetBool_Request_",
                "std_srvs/srv/SetBool_Request",
            ),
            (
                "a::action::dds_::B_SendGoal_Response_",
                "a/action/B_SendGoal_Response",
            ),
        ] {
            assert_eq!(type_of(dds).as_deref(), Some(ros));
            assert_eq!(dds_type(ros).as_deref(), Some(dds));
        }
        for other in [
            "",
            "String",
            "std_msgs::msg::String_",
            "::dds_::_",
            "a::b::dds_::C",
            "a::b::c::dds_::D_",
            "a/b::c::dds_::D_",
        ] {
            assert_eq!(type_of(other), None, "{other}");
        }
        for other in ["std_msgs/String", "a/b/c/d", "a//c", "a/b/c::d"] {
            assert_eq!(dds_type(other), None, "{other}");
        }
        assert_eq!(
            service_of("std_srvs/srv/SetBool_Request"),
            Some("std_srvs/srv/SetBool")
        );
        assert_eq!(
            service_of("std_srvs/srv/SetBool_Response"),
            Some("std_srvs/srv/SetBool")
        );
        assert_eq!(service_of("std_msgs/msg/String"), None);
        assert_eq!(service_of("a/srv/_Request"), None);
    }

    #[test]
    fn hashes_are_read_from_user_data() {
        let hash: [u8; 32] = std::array::from_fn(|i| i as u8 * 7);
        assert_eq!(hash_of(&user_data(hash)), Some(hash));
        let mut with_more = b"serialization=cdr;".to_vec();
        with_more.extend(user_data(hash));
        with_more.push(0);
        assert_eq!(hash_of(&with_more), Some(hash));
        for other in [
            &b""[..],
            b"typehash=",
            b"typehash=RIHS02_00;",
            b"typehash=RIHS01_zz;",
            b"\xff",
        ] {
            assert_eq!(hash_of(other), None);
        }
        let signs = format!("typehash=RIHS01_{};", "+1".repeat(32));
        assert_eq!(hash_of(signs.as_bytes()), None);
    }
}
