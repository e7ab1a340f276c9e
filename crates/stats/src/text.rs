//! Makes foreign text safe to print.
//!
//! A terminal executes control sequences in its output. A name or an error from another process, host or file may
//! contain sequences that clear the screen, write to its title or clipboard, or display a line in a different order.
//! Names are checked where they come in ([`is_plain`]); everything printed goes through [`printable`].

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a name has none of the characters that [`printable`] replaces.
pub fn is_plain(text: &str) -> bool {
    !text.chars().any(is_special)
}

/// `text` on one line. Characters that a terminal would execute or not show are written as JSON escapes: `\n`,
/// `\u001b`. So JSON keeps its meaning.
///
/// ```
/// assert_eq!(stats::text::printable("/scan"), "/scan");
/// assert_eq!(stats::text::printable("/scan\u{1b}[2J\u{202e}"), "/scan\\u001b[2J\\u202e");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_special)
}

/// The same for text of several lines: line feeds and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_special(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_special: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_special) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        match c {
            c if !is_special(c) => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(out)
}

/// Characters that a terminal executes (C0, DEL, C1), that reorder a line (Unicode's bidirectional controls, UAX #9),
/// that end one (U+2028, U+2029), or that are invisible.
fn is_special(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Bidirectional marks, embeddings, overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{2028}' | '\u{2029}'
            // Zero-width: soft hyphen, joiners, spaces, fillers, byte order mark, annotations, tags.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_and_invisible_characters_are_escaped() {
        for (text, shown) in [
            ("\u{1b}]0;owned\u{7}", "\\u001b]0;owned\\u0007"),
            ("a\u{9b}31mb\u{7f}", "a\\u009b31mb\\u007f"),
            ("two\nlines\r\tand", "two\\nlines\\r\\tand"),
            ("/cmd\u{202e}lev_\u{2066}", "/cmd\\u202elev_\\u2066"),
            ("/sc\u{200b}an\u{feff}", "/sc\\u200ban\\ufeff"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(printable(text), shown);
            assert!(!is_plain(text), "{text:?}");
        }
        assert_eq!(
            printable_lines("float32 x\t# Länge\n\u{1b}[2J"),
            "float32 x\t# Länge\n\\u001b[2J"
        );
        for plain in ["", "/camera/größe", "/名前", "a b", "é😀", "\\n"] {
            assert!(
                matches!(printable(plain), Cow::Borrowed(_)) && is_plain(plain),
                "{plain}"
            );
        }
    }

    #[test]
    fn nothing_below_a_space_is_left() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        assert!(printable(&all).bytes().all(|b| b >= 0x20 && b != 0x7f));
        assert!(is_plain(&printable(&all)));
        let lines = printable_lines(&all);
        assert!(lines.bytes().all(|b| b >= 0x20 || b == b'\n' || b == b'\t'));
    }
}
