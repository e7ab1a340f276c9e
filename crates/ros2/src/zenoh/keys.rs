//! Key expressions of topics and services, and the hashes of types in them:
//! `<domain>/<name>/<package>::msg::dds_::<Type>_/RIHS01_<64 digits>`.

use crate::dds::names;

/// Replaces a slash in a name that is a single part of a key.
pub(super) const SLASH: char = '%';
const HASH: &str = "RIHS01_";

/// The key of a topic's messages or a service's requests. `None` if name or type is not valid in ROS 2.
pub(super) fn of(domain: u32, name: &str, type_name: &str, hash: [u8; 32]) -> Option<String> {
    let type_name = names::dds_type(type_name)?;
    let name = name.trim_matches('/');
    is_name(name).then(|| format!("{domain}/{name}/{type_name}/{}", hash_text(hash)))
}

/// Whether a name may be part of a key: it has no wildcards and no empty part.
fn is_name(name: &str) -> bool {
    let is_part =
        |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    name.split('/').all(is_part)
}

/// Formats a hash in ROS 2's notation.
pub(super) fn hash_text(hash: [u8; 32]) -> String {
    let mut out = String::with_capacity(HASH.len() + 64);
    out.push_str(HASH);
    hash.iter().for_each(|b| out.push_str(&format!("{b:02x}")));
    out
}

/// Reads a hash; `None` if it is malformed or has another version.
pub(super) fn hash_of(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix(HASH)?;
    if digits.len() != 64 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

/// Converts a name to a single part of a key.
pub(super) fn mangled(name: &str) -> String {
    let name = if name.is_empty() { "/" } else { name };
    name.chars().map(|c| if c == '/' { SLASH } else { c }).collect()
}

/// Converts a part of a key back to the name that it stands for.
pub(super) fn demangled(part: &str) -> String {
    part.chars().map(|c| if c == SLASH { '/' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_rmw_zenoh() {
        let hash: [u8; 32] = std::array::from_fn(|i| i as u8 * 7);
        let text = hash_text(hash);
        assert_eq!(
            of(2, "/robot1/chatter", "std_msgs/msg/String", hash).as_deref(),
            Some(&*format!("2/robot1/chatter/std_msgs::msg::dds_::String_/{text}"))
        );
        assert_eq!(hash_of(&text), Some(hash));
        for (name, kind) in [
            ("/", "std_msgs/msg/String"),
            ("", "std_msgs/msg/String"),
            ("/a//b", "std_msgs/msg/String"),
            ("/a/*", "std_msgs/msg/String"),
            ("/a/**", "std_msgs/msg/String"),
            ("/a$*", "std_msgs/msg/String"),
            ("/a?b=c", "std_msgs/msg/String"),
            ("/a#", "std_msgs/msg/String"),
            ("/@ros2_lv", "std_msgs/msg/String"),
            ("/a", "String"),
            ("/a", "std_msgs/msg/*"),
        ] {
            assert_eq!(of(0, name, kind, hash), None, "{name} {kind}");
        }
    }

    #[test]
    fn hashes_that_are_none_are_refused() {
        let signs = format!("RIHS01_{}", "+1".repeat(32));
        for text in [
            "",
            "RIHS01_",
            "RIHS02_00",
            "TypeHashNotSupported",
            "EMPTY",
            &signs,
        ] {
            assert_eq!(hash_of(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_one_part_and_back() {
        for name in ["/", "/a", "/a/b_c"] {
            assert_eq!(demangled(&mangled(name)), name);
            assert!(!mangled(name).contains('/'));
        }
        assert_eq!(mangled(""), "%");
    }
}
