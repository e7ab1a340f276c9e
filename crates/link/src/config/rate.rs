//! A radio's bit rate, as a configuration gives it.

use serde::{Deserialize, Deserializer, de};
use stats::quantity;

/// Where the rate is not known, the first guess, in bit/s: the lowest rate of OFDM.
const GUESS: u64 = 6_000_000;

/// What is known of a radio's bit rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Nothing: receipts clock the sending, and over one hop the rate is estimated from them.
    Auto,
    /// It is so many bit/s.
    Set(u64),
}

impl Rate {
    /// The rate to begin with, in bit/s.
    pub fn first(self) -> u64 {
        match self {
            Rate::Auto => GUESS,
            Rate::Set(rate) => rate,
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        if text.trim().eq_ignore_ascii_case("auto") {
            return Ok(Rate::Auto);
        }
        let rate = quantity::bit_rate(&text).map(Rate::Set);
        rate.map_err(|e| de::Error::custom(format!("{e}, or auto where it is not known or changes")))
    }
}
