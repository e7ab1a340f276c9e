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
    /// There is no radio but a wire that is quicker than its hosts: nothing is paced, receipts alone bound what is on
    /// the way, and datagrams leave in batches.
    Unlimited,
}

impl Rate {
    /// The rate to begin with, in bit/s.
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
                "{e}, auto where it is not known or changes, or unlimited for a wire"
            ))
        })
    }
}
