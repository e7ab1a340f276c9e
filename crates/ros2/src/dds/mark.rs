//! User data of a ROS 2 participant: its enclave, and whether it is a Ropewalk bridge.

use bridge::Graph;

/// The user data of a bridge.
pub(crate) fn user_data(graph: Graph) -> Vec<u8> {
    format!("enclave=/;ropewalk={:x};", graph.number()).into_bytes()
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

/// The graph number that marks the messages of a bridge.
pub(super) fn of(user_data: &[u8]) -> Option<Graph> {
    let number = u32::from_str_radix(entry(user_data, "ropewalk")?, 16).ok()?;
    Graph::from_number(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_read_beside_what_others_say() {
        let graph = Graph::new("a bridge");
        assert_eq!(of(&user_data(graph)), Some(graph));
        assert_eq!(enclave(&user_data(graph)), "/");
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
