//! Access categories: how a frame's DSCP determines its chances on the air.

use crate::phy::Standard;
use core::fmt;
use core::time::Duration;

/// How hosts contend for the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The distributed coordination function: one queue per host, with equal treatment of all frames.
    #[default]
    Dcf,
    /// Enhanced distributed channel access: one queue per category; the queues contend with each other and with other
    /// hosts.
    Edca(Mapping),
}

/// Mapping from DSCP to category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// RFC 8325, section 4.3, with RFC 8622 for lower effort; code points without a meaning are best effort. Linux does
    /// this since 6.8 (except for those without a meaning).
    #[default]
    Rfc8325,
    /// By the three bits of the former IP precedence (IEEE 802.11-2016, table 10-1), as most devices and older Linux
    /// do. EF becomes video, and CS1 and CS2 background.
    Precedence,
}

/// A category of IEEE 802.11-2016, section 10.2.4.2, in ascending order of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// AC_BK.
    Background,
    /// AC_BE.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl Category {
    /// All of them, in ascending order.
    pub const ALL: [Category; 4] = [
        Category::Background,
        Category::BestEffort,
        Category::Video,
        Category::Voice,
    ];

    /// The category of a packet with this DSCP (0 to 63; only the lower six bits count).
    pub fn of_dscp(dscp: u8, mapping: Mapping) -> Category {
        let priority = match mapping {
            Mapping::Precedence => (dscp & 63) >> 3,
            Mapping::Rfc8325 => match dscp & 63 {
                48 | 56 => 7,                  // CS6, CS7: network control
                44 | 46 => 6,                  // VOICE-ADMIT, EF
                40 => 5,                       // CS5: signalling
                24..=38 if dscp & 1 == 0 => 4, // CS3, AF3x, CS4, AF4x
                18 | 20 | 22 => 3,             // AF2x: low-latency data
                1 | 8 => 1,                    // LE, CS1: lower effort
                _ => 0,
            },
        };
        // IEEE 802.11-2016, table 10-1.
        match priority {
            1 | 2 => Category::Background,
            0 | 3 => Category::BestEffort,
            4 | 5 => Category::Video,
            _ => Category::Voice,
        }
    }

    /// The name in the standard: `AC_VO` and so on.
    pub fn name(self) -> &'static str {
        match self {
            Category::Background => "AC_BK",
            Category::BestEffort => "AC_BE",
            Category::Video => "AC_VI",
            Category::Voice => "AC_VO",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Contention parameters of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contention {
    /// Idle time before the back-off counts: DIFS or AIFS.
    pub(crate) space: Duration,
    pub(crate) slot: Duration,
    pub(crate) cw_min: u32,
    pub(crate) cw_max: u32,
}

impl Contention {
    pub(crate) fn dcf(standard: Standard) -> Contention {
        Contention {
            space: standard.difs(),
            slot: standard.slot(),
            cw_min: standard.cw_min(),
            cw_max: standard.cw_max(),
        }
    }

    /// The defaults of IEEE 802.11-2016, table 9-137.
    pub(crate) fn edca(standard: Standard, category: Category) -> Contention {
        let (low, high) = (standard.cw_min(), standard.cw_max());
        let (aifsn, cw_min, cw_max) = match category {
            Category::Background => (7, low, high),
            Category::BestEffort => (3, low, high),
            Category::Video => (2, low.div_ceil(2) - 1, low),
            Category::Voice => (2, low.div_ceil(4) - 1, low.div_ceil(2) - 1),
        };
        Contention {
            space: standard.sifs() + standard.slot() * aifsn,
            slot: standard.slot(),
            cw_min,
            cw_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_are_those_of_the_tables() {
        let of = |m: Mapping| move |d: u8| Category::of_dscp(d, m).name();
        // DF, CS1, CS2, AF21, CS3, AF41, CS5, EF, CS6.
        let dscp = [0, 8, 16, 18, 24, 34, 40, 46, 48];
        assert_eq!(
            dscp.map(of(Mapping::Rfc8325)),
            [
                "AC_BE", "AC_BK", "AC_BE", "AC_BE", "AC_VI", "AC_VI", "AC_VI", "AC_VO", "AC_VO"
            ]
        );
        assert_eq!(
            dscp.map(of(Mapping::Precedence)),
            [
                "AC_BE", "AC_BK", "AC_BK", "AC_BK", "AC_BE", "AC_VI", "AC_VI", "AC_VI", "AC_VO"
            ]
        );
    }

    #[test]
    fn windows_are_those_of_the_standard() {
        let of = |c| {
            let c = Contention::edca(Standard::A, c);
            (c.space.as_micros(), c.cw_min, c.cw_max)
        };
        assert_eq!(
            Category::ALL.map(of),
            [(79, 15, 1023), (43, 15, 1023), (34, 7, 15), (34, 3, 7)]
        );
    }
}
