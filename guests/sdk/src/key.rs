//! The keyed hash and the keyed random stream: all the chance that a guest has, and the same on every machine.

/// A key for one purpose. It can hash and choose, and cannot be read or printed.
#[derive(Clone)]
pub struct Key {
    bytes: [u8; 32],
}

impl Key {
    pub(crate) const fn new(bytes: [u8; 32]) -> Self {
        Self { bytes }
    }

    /// A key from bytes, for tests of what is built on keys. A guest's own come from [`Context::key`](crate::Context::key).
    #[cfg(not(target_arch = "wasm32"))]
    #[must_use]
    pub const fn for_tests(bytes: [u8; 32]) -> Self {
        Self::new(bytes)
    }

    /// A key of its own for a purpose; what it makes is unrelated to what this one makes.
    #[must_use]
    pub fn derive(&self, purpose: &str) -> Self {
        Self { bytes: self.hash(purpose.as_bytes()) }
    }

    /// The keyed blake3 of a value: 256 bits that nobody can compute, or test a guess against, without the key.
    #[must_use]
    pub fn hash(&self, value: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.bytes, value).as_bytes()
    }

    /// A stream of random numbers for a value: equal keys and values give equal streams.
    #[must_use]
    pub fn random<'value>(&self, value: &'value [u8]) -> Random<'value> {
        Random { key: self.clone(), value, block: self.hash(value), used: 0, longer: None }
    }
}

/// A keyed random stream: the extendable output of keyed blake3.
///
/// The first 32 bytes are the plain keyed hash, and most functions need no more; only beyond them is the
/// hasher itself, two kilobytes of state, set up.
pub struct Random<'value> {
    key: Key,
    value: &'value [u8],
    block: [u8; 32],
    used: usize,
    longer: Option<Box<blake3::OutputReader>>,
}

impl Random<'_> {
    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        if self.used == self.block.len() {
            self.refill();
        }
        let byte = self.block[self.used];
        self.used += 1;
        byte
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// The next 32 bits.
    pub fn bits32(&mut self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// A number below `bound`, each equally likely; 0 where `bound` is 0.
    ///
    /// Lemire's method: a multiplication instead of a division, and a repeated draw where the range would lean.
    pub fn below(&mut self, bound: u32) -> u32 {
        if bound == 0 {
            return 0;
        }
        let mut product = u64::from(self.bits32()) * u64::from(bound);
        if (product as u32) < bound {
            let lean = bound.wrapping_neg() % bound;
            while (product as u32) < lean {
                product = u64::from(self.bits32()) * u64::from(bound);
            }
        }
        (product >> 32) as u32
    }

    /// A 64-bit number below `bound`, each equally likely; 0 where `bound` is 0.
    pub fn below64(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let mut product = u128::from(self.bits()) * u128::from(bound);
        if (product as u64) < bound {
            let lean = bound.wrapping_neg() % bound;
            while (product as u64) < lean {
                product = u128::from(self.bits()) * u128::from(bound);
            }
        }
        (product >> 64) as u64
    }

    /// One of the choices, each equally likely; `None` where there are none.
    pub fn pick<'list, T>(&mut self, choices: &'list [T]) -> Option<&'list T> {
        let position = self.below(u32::try_from(choices.len()).ok()?);
        choices.get(position as usize)
    }

    /// The next 32 bytes of the stream, of which the plain hash was the first.
    fn refill(&mut self) {
        let reader = self.longer.get_or_insert_with(|| {
            let mut reader = blake3::Hasher::new_keyed(&self.key.bytes).update(self.value).finalize_xof();
            reader.set_position(self.block.len() as u64);
            Box::new(reader)
        });
        reader.fill(&mut self.block);
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_extendable_output_of_the_keyed_hash() {
        let key = Key::new([7; 32]);
        let mut expected = [0; 100];
        blake3::Hasher::new_keyed(&[7; 32]).update(b"ada").finalize_xof().fill(&mut expected);
        let mut random = key.random(b"ada");
        let drawn: [u8; 100] = std::array::from_fn(|_| random.byte());
        assert_eq!(drawn, expected);
    }

    #[test]
    fn purposes_and_values_are_unrelated() {
        let key = Key::new([7; 32]);
        assert_ne!(key.derive("a").hash(b"x"), key.derive("b").hash(b"x"));
        assert_ne!(key.hash(b"x"), key.hash(b"y"));
        assert_eq!(key.derive("a").hash(b"x"), key.derive("a").hash(b"x"));
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_it_and_no_further() {
        let mut random = Key::new([1; 32]).random(b"dice");
        let mut seen = [0_u32; 6];
        for _ in 0..6_000 {
            seen[random.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1150).contains(&count)), "{seen:?}");
        assert_eq!((random.below(0), random.below(1), random.below64(0), random.below64(1)), (0, 0, 0, 0));
        assert!((0..1000).all(|_| random.below64(u64::MAX - 1) < u64::MAX - 1));
    }

    #[test]
    fn an_empty_list_has_no_pick() {
        let mut random = Key::new([1; 32]).random(b"");
        assert_eq!(random.pick::<u8>(&[]), None);
        assert_eq!(random.pick(&["only"]), Some(&"only"));
    }
}
