//! JSON of clients, with a bounded depth.

use serde_json::Value;

/// How deep JSON of a client may be nested.
const DEPTH: usize = 32;

/// Why JSON of a client is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// It is not JSON.
    #[error("not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is nested too deep.
    #[error("JSON is nested more than {DEPTH} levels deep")]
    Depth,
}

/// Reads JSON of a client.
///
/// # Errors
/// [`JsonError`] if it is not JSON, or nested too deep; nothing is built before the depth is known.
pub fn parse_json(bytes: &[u8]) -> Result<Value, JsonError> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEPTH {
            return Err(JsonError::Depth);
        }
    }
    Ok(serde_json::from_slice(bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deep_json_is_refused_and_brackets_in_texts_do_not_count() {
        let nested = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
        assert!(parse_json(nested(DEPTH).as_bytes()).is_ok());
        assert!(matches!(
            parse_json(nested(DEPTH + 1).as_bytes()),
            Err(JsonError::Depth)
        ));
        let text = format!("{{\"a\": \"\\\"{}\"}}", "[".repeat(100));
        assert!(parse_json(text.as_bytes()).is_ok());
        assert!(matches!(parse_json(b"{"), Err(JsonError::Syntax(_))));
    }
}
