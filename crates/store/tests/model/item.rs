//! What the model knows of an item, what an answer shows of one, and the randomness of a run.

use larder_store::*;

pub(super) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub value: Vec<u8>,
    pub client_flags: u32,
    pub expiry: Expiry,
    pub cas: u64,
    pub stale: bool,
    pub win_sent: bool,
}

pub(super) fn key_bytes(key: u64) -> Vec<u8> {
    let mut bytes = format!("key-{key:x}").into_bytes();
    bytes.extend(std::iter::repeat_n(b'.', (key % 40) as usize));
    bytes
}

pub(super) fn number(item: &Item) -> Option<u64> {
    let word = item.value.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    std::str::from_utf8(word).ok()?.parse::<u64>().ok()
}

pub(super) fn counted_to(arith: &Arith, old: u64) -> u64 {
    if arith.decrement { old.saturating_sub(arith.delta) } else { old.wrapping_add(arith.delta) }
}

/// What an item may be after counting.
pub(super) fn arith_values(arith: &Arith, present: Option<&Item>) -> Vec<Vec<u8>> {
    let counted = present.filter(|item| item.value.len() <= 20).and_then(|item| {
        let width = item.value.len();
        Some(format!("{:<width$}", counted_to(arith, number(item)?)).into_bytes())
    });
    let initial = arith.initial.map(|(initial, _)| initial.to_string().into_bytes());
    counted.into_iter().chain(initial).collect()
}

/// What an answer shows of an item (before this access), whether the caller won, and the expiry after.
pub(super) struct Observed {
    pub item: Item,
    pub value_len: usize,
    pub won: bool,
    pub expiry_after: Expiry,
    without_value: bool,
}

impl Observed {
    pub(super) fn new(found: &Found<'_>, fetch: &Fetch) -> Observed {
        let mut value = Vec::new();
        found.value.append_to(&mut value);
        let item = Item {
            value,
            client_flags: found.client_flags,
            expiry: found.expiry,
            cas: found.cas,
            stale: found.stale,
            win_sent: found.win_sent,
        };
        Observed {
            item,
            value_len: found.value_len as usize,
            won: found.won,
            expiry_after: found.expiry_after,
            without_value: fetch.without_value,
        }
    }

    /// Whether it shows `truth`, as far as a reader that did not win may tell.
    pub(super) fn shows(&self, truth: &Item) -> bool {
        let Observed { item, value_len, without_value, .. } = self;
        let not_lent = *without_value && item.value.is_empty();
        *value_len == truth.value.len()
            && (item.value == truth.value || not_lent)
            && item.cas == truth.cas
            && item.client_flags == truth.client_flags
            && item.expiry.seconds_left(Seconds(0)) == truth.expiry.seconds_left(Seconds(0))
            && item.stale == truth.stale
            && (item.win_sent == truth.win_sent || truth.stale)
    }
}
