//! Seeded random numbers: the only source of randomness in a simulation. The same seed always gives the same numbers.

use std::sync::{Mutex, PoisonError};

use tickover_core::duration::Millis;
use tickover_service::ports::Ids;

/// A generator of random numbers (splitmix64). Each actor has its own, with its own stream name.
#[derive(Debug)]
pub struct Dice(Mutex<u64>);

impl Dice {
    /// The generator of one stream of a seed.
    pub fn new(seed: u64, stream: &str) -> Self {
        // FNV-1a of the name, so that the streams of one seed are independent.
        let start = stream.bytes().fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let dice = Self(Mutex::new(start));
        dice.roll();
        dice
    }

    pub fn roll(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&self, least: u64, most: u64) -> u64 {
        least + self.roll() % (most.saturating_sub(least) + 1)
    }

    /// A time of so many milliseconds, bounds included.
    pub fn millis(&self, least_ms: u64, most_ms: u64) -> Millis {
        Millis::new(self.between(least_ms, most_ms))
    }

    /// A time of so many whole seconds, bounds included.
    pub fn secs(&self, least_s: u64, most_s: u64) -> Millis {
        Millis::from_secs(self.between(least_s, most_s))
    }

    /// True in `per_mille` of a thousand cases. Draws no number if that is 0.
    pub fn chance(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.roll() % 1_000 < per_mille
    }

    /// One of these values.
    pub fn pick<T: Copy, const N: usize>(&self, from: [T; N]) -> T {
        from[usize::try_from(self.roll() % (N as u64)).unwrap_or(0)]
    }
}

/// Ids are random too, and fixed by the seed.
impl Ids for Dice {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let random = self.roll().to_be_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
    }
}
