//! Noise of the sensors.

/// Random numbers from a seed: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Noise(seed)
    }

    /// Uniform from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Nearly normal around 0 with this standard deviation: at most 3.5 deviations.
    pub(crate) fn normal(&mut self, deviation: f64) -> f64 {
        // The sum of four uniform numbers has a variance of a third.
        let sum: f64 = (0..4).map(|_| self.uniform() - 0.5).sum();
        sum * 3f64.sqrt() * deviation
    }
}
