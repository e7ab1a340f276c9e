//! The list of all certificates that a team ever made.
//!
//! One line each, `SERIAL HOST EXPIRES [revoked TIME]`, with times in seconds since 1970, UTC.

use super::check_name;

/// Most certificates in a ledger.
const MAX_ENTRIES: usize = 10_000;
/// Bytes of a serial number.
pub(super) const SERIAL: usize = 16;

/// All certificates that a team ever made, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The certificates.
    pub entries: Vec<Entry>,
}

/// One certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its serial number.
    pub serial: [u8; SERIAL],
    /// The host that it belongs to.
    pub host: String,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
    /// When it was revoked, in seconds since 1970.
    pub revoked: Option<u64>,
}

/// A malformed line of a ledger.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `SERIAL HOST EXPIRES [revoked TIME]`")]
pub struct LedgerError {
    /// The line, from 1.
    pub line: usize,
}

impl Ledger {
    /// Reads a ledger's text.
    ///
    /// # Errors
    /// [`LedgerError`] for the first malformed line.
    pub fn parse(text: &str) -> Result<Ledger, LedgerError> {
        let mut entries = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let wrong = LedgerError { line: i + 1 };
            let entry = Entry::parse(line).filter(|_| entries.len() < MAX_ENTRIES);
            entries.push(entry.ok_or(wrong)?);
        }
        Ok(Ledger { entries })
    }

    /// The certificate of `host` that is neither revoked nor expired at `now` (seconds since 1970).
    pub fn valid(&self, host: &str, now: u64) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|e| e.host == host && e.revoked.is_none() && e.expires > now)
    }
}

impl std::fmt::Display for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for e in &self.entries {
            write!(f, "{} {} {}", e.serial_text(), e.host, e.expires)?;
            match e.revoked {
                Some(at) => writeln!(f, " revoked {at}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

impl Entry {
    /// The serial number in its displayed form.
    pub fn serial_text(&self) -> String {
        self.serial.iter().map(|b| format!("{b:02x}")).collect()
    }

    fn parse(line: &str) -> Option<Entry> {
        let mut words = line.split(' ');
        let serial = parse_serial(words.next()?)?;
        let host = words.next().filter(|h| check_name(h).is_ok())?.to_owned();
        let expires = number(words.next()?)?;
        let revoked = match words.next() {
            None => None,
            Some("revoked") => Some(number(words.next()?)?),
            Some(_) => return None,
        };
        words.next().is_none().then_some(Entry {
            serial,
            host,
            expires,
            revoked,
        })
    }
}

/// A number as [`Ledger`] prints it. A date beyond the year 9999 is invalid.
fn number(text: &str) -> Option<u64> {
    let canonical = !text.starts_with('+') && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|n| canonical && *n < 253_402_300_800)
}

fn parse_serial(text: &str) -> Option<[u8; SERIAL]> {
    let digit = |c: u8| match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * SERIAL {
        return None;
    }
    let mut serial = [0; SERIAL];
    for (to, pair) in serial.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *to = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00112233445566778899aabbccddeeff robot-1 1900000000\n\
                        ffeeddccbbaa99887766554433221100 base 1900000000 revoked 1800000000\n";

    #[test]
    fn reads_what_it_writes() {
        let ledger = Ledger::parse(GOOD).expect("is good");
        assert_eq!(ledger.to_string(), GOOD);
        assert_eq!(ledger.entries[1].revoked, Some(1_800_000_000));
        assert!(ledger.valid("robot-1", 1_899_999_999).is_some());
        assert!(ledger.valid("robot-1", 1_900_000_000).is_none(), "expired");
        assert!(ledger.valid("base", 0).is_none(), "revoked");
    }

    #[test]
    fn a_wrong_line_is_named() {
        for bad in [
            "00112233445566778899aabbccddee robot 1",
            "00112233445566778899aabbccddeegg robot 1",
            "00112233445566778899aabbccddeeff Robot 1",
            "00112233445566778899aabbccddeeff robot -1",
            "00112233445566778899aabbccddeeff robot +1",
            "00112233445566778899aabbccddeeff robot 999999999999999999",
            "00112233445566778899aabbccddeeff robot 1 revoked",
            "00112233445566778899aabbccddeeff robot 1 revoked 1 2",
            "00112233445566778899aabbccddeeff robot 1 forgotten 1",
            "",
        ] {
            let text = format!("{GOOD}{bad}\n");
            assert_eq!(Ledger::parse(&text), Err(LedgerError { line: 3 }), "{bad}");
        }
    }
}
