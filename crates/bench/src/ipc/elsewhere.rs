//! Two systems that cannot be built here any more, with values that were measured on another day.
//!
//! Constants, never cells: the same test (300 messages at 30 Hz) with the same payload rule on a machine with two
//! processors. Compare them with each other and with the row of TCPROS that was measured with them, not with current
//! numbers.

/// Median and 99th percentile in microseconds.
pub(super) type Pair = (u32, u32);

/// Size in bytes, subscribers, then TCPROS, the original TZC, and Ach.
pub(super) const ROWS: [(u64, u32, Pair, Pair, Pair); 8] = [
    (4 << 10, 1, (204, 1176), (154, 306), (28, 172)),
    (4 << 10, 8, (572, 1541), (466, 985), (101, 496)),
    (64 << 10, 1, (209, 940), (215, 2058), (31, 718)),
    (64 << 10, 8, (769, 4358), (393, 1154), (105, 430)),
    (1 << 20, 1, (754, 2753), (172, 672), (119, 9050)),
    (1 << 20, 8, (2549, 5776), (416, 929), (402, 2735)),
    (4 << 20, 1, (1612, 61178), (198, 1044), (451, 37169)),
    (4 << 20, 8, (7205, 21792), (429, 1262), (1280, 5340)),
];
