//! What the fuzz targets and the tests of the same harnesses share: decisions that are drawn from bytes, and random
//! bytes for a bounded time.
#![allow(dead_code, reason = "each test and target uses its own part of this")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// What a fuzzer's input decides, one after the other. When it is used up, every decision is the first of its kind.
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices(bytes)
    }

    /// Returns whether all bytes are used up.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next `len` bytes, or as many as are left.
    pub fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// Returns all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }

    /// Returns a number below `bound`, of as few bytes as that takes.
    pub fn below(&mut self, bound: usize) -> usize {
        let len = (bound.max(1) - 1).checked_ilog(256).map_or(0, |most| most as usize + 1);
        let number = self.bytes(len).iter().fold(0, |number, byte| number << 8 | usize::from(*byte));
        number % bound.max(1)
    }

    /// Returns any number.
    pub fn next(&mut self) -> u64 {
        self.bytes(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    /// Returns true one time in `n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'p, T: ?Sized>(&mut self, from: &[&'p T]) -> &'p T {
        from[self.below(from.len())]
    }
}

/// Random bytes that follow from a seed.
pub struct RandomBytes(pub u64);

impl RandomBytes {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ mixed >> 29
    }

    pub fn of(&mut self, len: usize) -> Vec<u8> {
        (0..len.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(len).collect()
    }

    /// Returns the input number `count`: of all magnitudes, up to `bytes_max` bytes.
    fn input(&mut self, bytes_max: usize) -> Vec<u8> {
        let most = bytes_max >> (self.next() % 6 * 2);
        let len = self.next() as usize % (most + 1);
        self.of(len)
    }
}

/// The seed of all inputs: the same each time, or that of `LARDER_FUZZ_SEED`, a number or `random`.
fn seed() -> u64 {
    match std::env::var("LARDER_FUZZ_SEED").as_deref() {
        Err(_) => 0x1a4d_e400,
        Ok("random") => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        }
        Ok(number) => number.parse().expect("LARDER_FUZZ_SEED is a number, or random"),
    }
}

/// Gives `check` random inputs of up to `bytes_max` bytes: at least `inputs_min`, and for the `usual` time or as many
/// seconds as `LARDER_FUZZ_SECONDS` says. An input that fails is kept in a file, for the fuzz target `name`.
pub fn for_a_while(name: &str, usual: Duration, inputs_min: u64, bytes_max: usize, check: impl Fn(&[u8])) {
    let seconds = std::env::var("LARDER_FUZZ_SECONDS").ok().map(|text| text.parse().expect("whole seconds"));
    let until = Instant::now() + seconds.map_or(usual, Duration::from_secs);
    let seed = seed();
    let (mut random, mut count) = (RandomBytes(seed), 0);
    while count < inputs_min || Instant::now() < until {
        let input = random.input(bytes_max);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let file = std::env::temp_dir().join(format!("larder-fuzz-{name}-{seed}-{count}"));
            let kept = std::fs::write(&file, &input);
            eprintln!("{name}: input {count} of LARDER_FUZZ_SEED={seed}: {} ({kept:?})", file.display());
            resume_unwind(panic);
        }
        count += 1;
    }
    println!("{name}: {count} inputs");
}
