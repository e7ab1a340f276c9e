//! A radio's bit rate, as a configuration gives it.

use serde::{Deserialize, Deserializer, de};
use stats::quantity;

/// The first guess for an unknown rate, in bit/s: the lowest OFDM rate.
const GUESS: u64 = 6_000_000;

/// A radio's bit rate, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Unknown: receipts clock the sending, and over one hop they yield an estimate of the rate.
    Auto,
    /// The rate in bit/s.
    Set(u64),
    /// Not a radio but a wire that is faster than its hosts: nothing is paced, receipts alone bound the data
    /// in flight, and datagrams leave in batches.
    Unlimited,
}

impl Rate {
    /// The initial rate, in bit/s.
    pub fn first(self) -> u64 {
        match self {
            Rate::Auto => GUESS,
            Rate::Set(rate) => rate,
            Rate::Unlimited => u64::MAX,
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        if text.trim().eq_ignore_ascii_case("auto") {
            return Ok(Rate::Auto);
        }
        if text.trim().eq_ignore_ascii_case("unlimited") {
            return Ok(Rate::Unlimited);
        }
        let rate = quantity::bit_rate(&text).map(Rate::Set);
        rate.map_err(|e| {
            de::Error::custom(format!(
                "{e}, auto if it is unknown or changes, or unlimited for a wire"
            ))
        })
    }
}
