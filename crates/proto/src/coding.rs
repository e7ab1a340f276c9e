//! A random linear code over a sliding window of fragments, as in RFC 8681: arithmetic in GF(2⁸), and the coefficients
//! that both ends compute.
//!
//! Each parity is the sum of the fragments of a window, each multiplied by a coefficient. A receiver that has all but
//! `n` of them, and `n` parities, solves for the missing ones.

/// Most fragments that one parity covers.
pub(crate) const WINDOW: u64 = 32;

/// x⁸ + x⁴ + x³ + x² + 1, for which 2 generates all elements but 0 (RFC 8681, section 3.7.1).
const POLYNOMIAL: u16 = 0x11D;

const TABLES: ([u8; 512], [u8; 256]) = {
    let (mut exp, mut log) = ([0; 512], [0; 256]);
    let (mut x, mut i) = (1u16, 0);
    while i < 255 {
        exp[i] = x as u8;
        exp[i + 255] = x as u8;
        log[x as usize] = i as u8;
        x <<= 1;
        if x & 0x100 != 0 {
            x ^= POLYNOMIAL;
        }
        i += 1;
    }
    (exp, log)
};

/// Product in the field.
pub(crate) fn product(a: u8, b: u8) -> u8 {
    if a == 0 || b == 0 {
        return 0;
    }
    TABLES.0[usize::from(TABLES.1[usize::from(a)]) + usize::from(TABLES.1[usize::from(b)])]
}

/// Multiplicative inverse; 0 for 0.
pub(crate) fn inverse(a: u8) -> u8 {
    match a {
        0 => 0,
        a => TABLES.0[255 - usize::from(TABLES.1[usize::from(a)])],
    }
}

/// Adds `factor` times `what` to `sum`, which grows as needed: bytes beyond an end count as 0.
pub(crate) fn add(sum: &mut Vec<u8>, what: &[u8], factor: u8) {
    if factor == 0 {
        return;
    }
    if sum.len() < what.len() {
        sum.resize(what.len(), 0);
    }
    let mut row = [0; 256];
    for (i, r) in row.iter_mut().enumerate() {
        *r = product(i as u8, factor);
    }
    for (s, w) in sum.iter_mut().zip(what) {
        *s ^= row[usize::from(*w)];
    }
}

/// The coefficient of fragment `id` in the parity `key`; never 0.
pub(crate) fn coefficient(key: u8, id: u64) -> u8 {
    let mixed = (id ^ (u64::from(key) << 56)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    1 + ((mixed >> 33) % 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_field() {
        for a in 0..=255u8 {
            assert_eq!(product(a, 1), a);
            assert!(a == 0 || product(a, inverse(a)) == 1, "{a}");
            for b in [0, 1, 2, 3, 0x53, 0xCA, 255] {
                assert_eq!(product(a, b), product(b, a));
                assert_eq!(product(a, b ^ 7), product(a, b) ^ product(a, 7));
            }
        }
        assert_eq!(product(0x80, 2), 0x1D, "the polynomial");
        let mut sum = vec![1, 2];
        add(&mut sum, &[1, 2, 3], 1);
        assert_eq!(sum, [0, 0, 3]);
        let coefficients: std::collections::BTreeSet<u8> = (0..100).map(|i| coefficient(3, i)).collect();
        assert!(coefficients.len() > 70 && !coefficients.contains(&0));
    }
}
