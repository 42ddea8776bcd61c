//! Keyed bijections: of the numbers below a bound, and of strings of numerals. What they map never collides.

use aes::Aes256;
use fpe::ff1::{FF1, NumeralString, Operations};
use pgveil_guest::{Fault, Key, Outcome};

/// The rounds of the Feistel network, as many as FF1 has.
const ROUNDS: u8 = 10;

/// Below this many values FF1 is not allowed (NIST SP 800-38G revision 1) and [`Permutation`] is used instead. A domain so small can
/// be searched by whoever sees enough pairs, whatever the method.
const FF1_LEAST_VALUES: u64 = 1_000_000;

/// Half a numeral string must stay below 2^112, so that 128-bit arithmetic holds a byte more.
const HALF_BITS: f64 = 112.0;

/// A keyed bijection of the numbers from 0 to `size` - 1.
///
/// A balanced Feistel network over the next even number of bits, its round function keyed blake3, walked until the number is
/// below the size: at most four steps on average.
pub(crate) struct Permutation {
    key: Key,
    size: u128,
    half_bits: u32,
}

impl Permutation {
    /// The bijection for a key and a size from 1 to 2^126.
    pub(crate) fn new(key: &Key, size: u128) -> Self {
        let bits = 128 - size.saturating_sub(1).leading_zeros();
        Self { key: key.derive(&format!("permutation {size}")), size, half_bits: bits.div_ceil(2).max(1) }
    }

    /// The number that this one becomes. One that is not below the size stays what it is.
    pub(crate) fn apply(&self, number: u128) -> u128 {
        if number >= self.size {
            return number;
        }
        let mut walked = self.step(number);
        while walked >= self.size {
            walked = self.step(walked);
        }
        walked
    }

    fn step(&self, number: u128) -> u128 {
        let mask = (1_u128 << self.half_bits) - 1;
        let (mut left, mut right) = (number >> self.half_bits, number & mask);
        for round in 0..ROUNDS {
            let mut message = [0; 17];
            message[0] = round;
            message[1..].copy_from_slice(&right.to_le_bytes());
            let mut hash = [0; 16];
            hash.copy_from_slice(&self.key.hash(&message)[..16]);
            (left, right) = (right, left ^ (u128::from_le_bytes(hash) & mask));
        }
        left << self.half_bits | right
    }
}

/// A keyed bijection of strings of numerals in one radix, which keeps their length: FF1 with AES-256.
pub(crate) struct Numerals {
    radix: u8,
    longest_half: usize,
    ff1: FF1<Aes256>,
    /// By length, from 1, while FF1 has too few values.
    short: Vec<Permutation>,
}

impl Numerals {
    /// The bijection for a key and a radix from 2 to 64.
    pub(crate) fn new(key: &Key, radix: u8) -> Result<Self, String> {
        let ff1 = FF1::new(&key.derive("ff1").hash(b"aes-256"), u32::from(radix)).map_err(|error| error.to_string())?;
        let sizes = std::iter::successors(Some(u64::from(radix)), |size| size.checked_mul(u64::from(radix)));
        let short = sizes.take_while(|&size| size < FF1_LEAST_VALUES);
        let short = short.map(|size| Permutation::new(key, u128::from(size))).collect();
        let longest_half = (HALF_BITS / f64::from(radix).log2()) as usize;
        Ok(Self { radix, longest_half, ff1, short })
    }

    /// Replaces numerals, each below the radix, by others.
    ///
    /// More than two halves hold are masked in pieces of about equal length.
    pub(crate) fn apply(&self, numerals: &mut [u8]) -> Outcome {
        if numerals.is_empty() {
            return Ok(());
        }
        let pieces = numerals.len().div_ceil(2 * self.longest_half);
        let length = numerals.len().div_ceil(pieces);
        for (position, piece) in numerals.chunks_mut(length).enumerate() {
            self.apply_piece(position as u64, piece)?;
        }
        Ok(())
    }

    fn apply_piece(&self, position: u64, piece: &mut [u8]) -> Outcome {
        if let Some(permutation) = self.short.get(piece.len() - 1) {
            write_numerals(permutation.apply(read_numerals(piece, self.radix)), self.radix, piece);
            return Ok(());
        }
        let (front, back) = piece.split_at(piece.len() / 2);
        let half = |numerals: &[u8]| Half { value: read_numerals(numerals, self.radix), count: numerals.len() };
        let whole = Whole { front: half(front), back: half(back) };
        let masked = self.ff1.encrypt(&position.to_le_bytes(), &whole).map_err(|_| Fault::INTERNAL)?;
        let (front, back) = piece.split_at_mut(piece.len() / 2);
        write_numerals(masked.front.value, self.radix, front);
        write_numerals(masked.back.value, self.radix, back);
        Ok(())
    }
}

fn read_numerals(numerals: &[u8], radix: u8) -> u128 {
    numerals.iter().fold(0, |number, &numeral| number * u128::from(radix) + u128::from(numeral))
}

fn write_numerals(mut number: u128, radix: u8, numerals: &mut [u8]) {
    for numeral in numerals.iter_mut().rev() {
        *numeral = (number % u128::from(radix)) as u8;
        number /= u128::from(radix);
    }
}

/// A numeral string as FF1 takes it: two numbers and their lengths.
struct Whole {
    front: Half,
    back: Half,
}

#[derive(Clone, Copy)]
struct Half {
    value: u128,
    count: usize,
}

impl NumeralString for Whole {
    type Ops = Half;

    fn is_valid(&self, _: u32) -> bool {
        true
    }

    fn numeral_count(&self) -> usize {
        self.front.count + self.back.count
    }

    fn split(&self) -> (Half, Half) {
        (self.front, self.back)
    }

    fn concat(front: Half, back: Half) -> Self {
        Self { front, back }
    }
}

impl Operations for Half {
    type Bytes = Tail;

    fn numeral_count(&self) -> usize {
        self.count
    }

    fn to_be_bytes(&self, _: u32, length: usize) -> Tail {
        Tail { bytes: self.value.to_be_bytes(), length }
    }

    fn add_mod_exp(self, other: impl Iterator<Item = u8>, radix: u32, count: usize) -> Self {
        let modulus = power(radix, count);
        Self { value: (self.value + remainder(other, modulus)) % modulus, count }
    }

    fn sub_mod_exp(self, other: impl Iterator<Item = u8>, radix: u32, count: usize) -> Self {
        let modulus = power(radix, count);
        Self { value: (self.value % modulus + modulus - remainder(other, modulus)) % modulus, count }
    }
}

/// The last bytes of a number, as many as FF1 asks for.
struct Tail {
    bytes: [u8; 16],
    length: usize,
}

impl AsRef<[u8]> for Tail {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[self.bytes.len() - self.length..]
    }
}

fn power(radix: u32, count: usize) -> u128 {
    (0..count).fold(1, |power, _| power * u128::from(radix))
}

/// A number of any length, most significant byte first, modulo another. WebAssembly has no 128-bit division, so
/// small moduli are spared it.
fn remainder(bytes: impl Iterator<Item = u8>, modulus: u128) -> u128 {
    match u64::try_from(modulus) {
        Ok(modulus) if modulus < 1 << 56 => {
            u128::from(bytes.fold(0, |number: u64, byte| (number << 8 | u64::from(byte)) % modulus))
        }
        _ => bytes.fold(0, |number: u128, byte| (number << 8 | u128::from(byte)) % modulus),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn key() -> Key {
        Key::for_tests(*b"an example key of thirty-2 bytes")
    }

    #[test]
    fn every_number_is_reached_once() {
        for size in [1_u128, 2, 3, 10, 100, 1000, 4096, 99_991] {
            let permutation = Permutation::new(&key(), size);
            let reached: BTreeSet<_> = (0..size).map(|number| permutation.apply(number)).collect();
            assert!(reached.iter().copied().eq(0..size), "{size}");
        }
        let whole = Permutation::new(&key(), 1 << 64);
        assert_ne!(whole.apply(u128::from(u64::MAX)), whole.apply(0));
    }

    #[test]
    fn it_moves_numbers_about() {
        let permutation = Permutation::new(&key(), 10_000);
        let fixed = (0..10_000).filter(|&number| permutation.apply(number) == number).count();
        assert!(fixed < 10, "{fixed} numbers stay");
    }

    /// NIST's samples 1 and 7 for FF1 (SP 800-38G, FF1samples.pdf): 0123456789 under AES-128 and AES-256, without a tweak.
    #[test]
    fn our_numerals_give_the_published_vectors() -> Result<(), String> {
        let key = [
            0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c, 0xef, 0x43,
            0x59, 0xd8, 0xd5, 0x80, 0xaa, 0x4f, 0x7f, 0x03, 0x6d, 0x6f, 0x04, 0xfc, 0x6a, 0x94,
        ];
        let whole = Whole { front: Half { value: 1234, count: 5 }, back: Half { value: 56789, count: 5 } };
        let short = FF1::<aes::Aes128>::new(&key[..16], 10).map_err(|error| error.to_string())?;
        let masked = short.encrypt(&[], &whole).map_err(|error| error.to_string())?;
        assert_eq!((masked.front.value, masked.back.value), (24_334, 77_484));
        let long = FF1::<Aes256>::new(&key, 10).map_err(|error| error.to_string())?;
        let masked = long.encrypt(&[], &whole).map_err(|error| error.to_string())?;
        assert_eq!((masked.front.value, masked.back.value), (66_576, 67_009));
        Ok(())
    }

    #[test]
    fn strings_of_every_length_stay_apart() -> Result<(), String> {
        let numerals = Numerals::new(&key(), 10)?;
        for length in 1..=150 {
            let mut masked = BTreeSet::new();
            for number in 0..10_u128 {
                let mut digits = vec![0; length];
                write_numerals(number, 10, &mut digits);
                numerals.apply(&mut digits).map_err(|_| "refused")?;
                assert!(digits.iter().all(|&digit| digit < 10));
                masked.insert(digits);
            }
            assert_eq!(masked.len(), 10, "{length}");
        }
        Ok(())
    }
}
