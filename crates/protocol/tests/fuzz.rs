//! Random bytes and mutated requests for a few seconds: see `support/fuzz_body.rs` for what must hold. The
//! fuzz target of the same name in `fuzz/` runs the same body for as long as one likes.

mod support;

use std::time::{Duration, Instant};

use support::{corpus, fuzz_body};

const TIME: Duration = Duration::from_secs(4);
const INPUTS_MIN: u64 = 20_000;
const SEED: u64 = 0x5eed_1a4d_e400_0001;

/// Marsaglia's xorshift: small, fast, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 16) as usize % bound.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The words of the grammar, the numbers at its edges, and what stands between them.
const WORDS: &[&[u8]] = &[
    b"get ",
    b"gets ",
    b"gat ",
    b"gats ",
    b"set ",
    b"add ",
    b"replace ",
    b"append ",
    b"prepend ",
    b"cas ",
    b"delete ",
    b"incr ",
    b"decr ",
    b"touch ",
    b"flush_all ",
    b"version",
    b"verbosity ",
    b"quit",
    b"stats ",
    b"mg ",
    b"ms ",
    b"md ",
    b"ma ",
    b"ml ",
    b"L5 ",
    b"P1000 ",
    b"B2 ",
    b"MG ",
    b"MS ",
    b"mn",
    b"me ",
    b"watch ",
    b"shutdown ",
    b"lru_crawler ",
    b"slabs ",
    b"lru ",
    b"cache_memlimit ",
    b"extstore ",
    b"noreply",
    b"key ",
    b"YWJj ",
    b"b ",
    b"v ",
    b"k ",
    b"q ",
    b"Oabc ",
    b"T30 ",
    b"N-1 ",
    b"R5 ",
    b"C7 ",
    b"E8 ",
    b"F9 ",
    b"J10 ",
    b"D11 ",
    b"MA ",
    b"I ",
    b"x ",
    b"0 ",
    b"1 ",
    b"2 ",
    b"5 ",
    b"-1 ",
    b"2147483645 ",
    b"2147483646 ",
    b"4294967295 ",
    b"4294967296 ",
    b"18446744073709551615 ",
    b"18446744073709551616 ",
    b"\r\n",
    b"\r\n",
    b"\n",
    b" ",
    b"\r",
    b"\0",
    b"\x80",
    b"HTTP/1.0\r\n",
    b"hi\r\n",
];

fn grammar(random: &mut Random) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..1 + random.below(24) {
        data.extend_from_slice(random.pick::<&[u8]>(WORDS));
    }
    data
}

fn packets(random: &mut Random) -> Vec<u8> {
    let mut data = Vec::new();
    for _ in 0..1 + random.below(4) {
        let small = |random: &mut Random| random.below(6);
        let (key, extras, value) = (small(random), *random.pick(&[0usize, 4, 8, 20, 3]), small(random));
        let mut packet = support::packet(
            random.below(0x28) as u8,
            &b"binary"[..key],
            &[7; 20][..extras],
            &b"value"[..value.min(5)],
            random.next() & 1,
        );
        if random.below(4) == 0 {
            let at = random.below(12);
            packet[at] ^= 1 << random.below(8);
        }
        data.extend(packet);
    }
    data
}

fn mutate(random: &mut Random, data: &mut Vec<u8>) {
    for _ in 0..1 + random.below(4) {
        let at = random.below(data.len() + 1);
        match random.below(6) {
            0 if at < data.len() => data[at] = random.next() as u8,
            1 if at < data.len() => data[at] ^= 1 << random.below(8),
            2 if at < data.len() => {
                data.remove(at);
            }
            3 => data.truncate(at),
            4 => {
                let word = *random.pick(WORDS);
                data.splice(at..at, word.iter().copied());
            }
            _ => {
                let byte = data.get(at).copied().unwrap_or(b' ');
                let times = *random.pick(&[1usize, 3, 30, 300, 3000]);
                data.splice(at..at, std::iter::repeat_n(byte, times));
            }
        }
    }
}

#[test]
fn nothing_breaks_the_parser() {
    let corpus = corpus::all();
    let mut random = Random(SEED);
    let start = Instant::now();
    let mut inputs = 0u64;
    let time = std::env::var("LARDER_FUZZ_SECONDS").ok().map(|text| text.parse().expect("whole seconds"));
    let time = time.map_or(TIME, Duration::from_secs);
    while inputs < INPUTS_MIN || start.elapsed() < time {
        let mut data = match random.below(8) {
            0 => (0..random.below(200)).map(|_| random.next() as u8).collect(),
            1 | 2 => packets(&mut random),
            3 | 4 => random.pick(&corpus).clone(),
            _ => grammar(&mut random),
        };
        if random.below(4) != 0 {
            mutate(&mut random, &mut data);
        }
        let input = data.clone();
        if let Err(panic) = std::panic::catch_unwind(|| fuzz_body::check(&input)) {
            eprintln!("input {inputs} of seed {SEED:#x}: {}", data.escape_ascii());
            std::panic::resume_unwind(panic);
        }
        inputs += 1;
    }
    println!("{inputs} inputs");
}

#[test]
fn long_lines_and_long_gets() {
    for len in [2047, 2048, 2049, 3000, 70_000, 1024 * 1024 - 2, 1024 * 1024 + 2] {
        for start in [&b"get "[..], b"gets ", b"mg ", b"  get ", b""] {
            for byte in [b'k', b' '] {
                for end in [&b""[..], b"\r\n", b"\n"] {
                    fuzz_body::check(&[start, &vec![byte; len], end].concat());
                }
            }
        }
    }
}
