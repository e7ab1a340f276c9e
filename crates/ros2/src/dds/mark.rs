//! User data of a ROS 2 participant: its enclave, and whether it is a Ropewalk bridge.

use crate::wire::Mark;
use bridge::Graph;

/// The user data of a bridge.
pub(crate) fn user_data(mark: Mark) -> Vec<u8> {
    let more = if mark.from_bridges {
        "ropewalk_from_bridges=1;"
    } else {
        ""
    };
    format!("enclave=/;ropewalk={:x};{more}", mark.graph.number()).into_bytes()
}

fn entry<'a>(user_data: &'a [u8], key: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(user_data).ok()?;
    let mut entries = text.trim_end_matches('\0').split(';');
    entries.find_map(|e| e.strip_prefix(key)?.strip_prefix('='))
}

/// The enclave; `/` if there is none.
pub(super) fn enclave(user_data: &[u8]) -> String {
    let enclave = entry(user_data, "enclave").filter(|e| stats::text::is_plain(e));
    let enclave = enclave.filter(|e| e.len() <= bridge::nodes::MAX_TEXT);
    enclave.unwrap_or("/").to_owned()
}

/// How a bridge identifies itself; `None` for others.
pub(super) fn of(user_data: &[u8]) -> Option<Mark> {
    let number = u32::from_str_radix(entry(user_data, "ropewalk")?, 16).ok()?;
    Some(Mark {
        graph: Graph::from_number(number)?,
        from_bridges: entry(user_data, "ropewalk_from_bridges") == Some("1"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_beside_what_others_say() {
        for from_bridges in [false, true] {
            let mark = Mark {
                graph: Graph::new("a bridge"),
                from_bridges,
            };
            assert_eq!(of(&user_data(mark)), Some(mark));
            assert_eq!(enclave(&user_data(mark)), "/");
        }
        assert_eq!(enclave(b"enclave=/robot/arm;\0"), "/robot/arm");
        for other in [
            &b"enclave=/;"[..],
            b"",
            b"ropewalk=;",
            b"ropewalk=0;",
            b"ropewalk=100000000;",
            b"ropewalk=x;",
            b"\xff",
        ] {
            assert_eq!(of(other), None);
            assert_eq!(enclave(other), "/");
        }
        assert_eq!(enclave(b"enclave=\x1b[2J;"), "/");
    }
}
