//! The answered increments of one client, packed: 6 to 8 bytes each instead of 24.
//!
//! An increment is three numbers, each as its distance to the number before it and in seven bits a byte, the
//! lowest first: from the last answer to this request, from this request to its answer, from the last value
//! to this one (signed, with the sign in the lowest bit).

use super::Op;

/// Answered increments of one client, in its own order.
#[derive(Clone, Debug, Default)]
pub struct Log {
    bytes: Vec<u8>,
    len: u64,
    last: Op,
}

impl Log {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next one.
    ///
    /// # Panics
    ///
    /// When it begins before the last one ended, or ends before it began: a client has one request under way.
    pub fn push(&mut self, op: Op) {
        assert!(self.last.end_ns <= op.start_ns, "a client has one request under way");
        assert!(op.start_ns <= op.end_ns, "an answer comes after its request");
        self.number(op.start_ns - self.last.end_ns);
        self.number(op.end_ns - op.start_ns);
        let step = op.value.wrapping_sub(self.last.value) as i64;
        self.number(((step << 1) ^ (step >> 63)) as u64);
        self.len += 1;
        self.last = op;
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last one, if any.
    pub fn last(&self) -> Option<Op> {
        (self.len > 0).then_some(self.last)
    }

    /// How much memory they take.
    pub fn size_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// All of them, in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { bytes: &self.bytes, last: Op::default() }
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }
}

impl FromIterator<Op> for Log {
    fn from_iter<I: IntoIterator<Item = Op>>(ops: I) -> Self {
        let mut log = Self::new();
        ops.into_iter().for_each(|op| log.push(op));
        log
    }
}

impl<'a> IntoIterator for &'a Log {
    type Item = Op;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Unpacks a [`Log`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    last: Op,
}

impl Iter<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for (at, &byte) in self.bytes.iter().enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte < 0x80 {
                self.bytes = &self.bytes[at + 1..];
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Iter<'_> {
    type Item = Op;

    fn next(&mut self) -> Option<Op> {
        let start_ns = self.last.end_ns + self.number()?;
        let end_ns = start_ns + self.number()?;
        let step = self.number()?;
        let step = (step >> 1) ^ (step & 1).wrapping_neg();
        self.last = Op { start_ns, end_ns, value: self.last.value.wrapping_add(step) };
        Some(self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_pushed_comes_back() {
        let ops = [
            Op { start_ns: 0, end_ns: 0, value: u64::MAX },
            Op { start_ns: 0, end_ns: 127, value: 0 },
            Op { start_ns: 255, end_ns: 70_000_000_000, value: 1 },
            Op { start_ns: 70_000_000_001, end_ns: 70_000_000_001, value: 1 << 63 },
            Op { start_ns: u64::MAX, end_ns: u64::MAX, value: 7 },
        ];
        let mut log = Log::new();
        assert!(log.is_empty());
        for op in ops {
            log.push(op);
        }
        assert_eq!(log.iter().collect::<Vec<_>>(), ops);
        assert_eq!((log.len(), log.last()), (5, Some(ops[4])));
    }

    #[test]
    fn an_increment_of_a_busy_counter_takes_seven_bytes() {
        let mut log = Log::new();
        for n in 0..100_000 {
            log.push(Op { start_ns: n * 100_000, end_ns: n * 100_000 + 99_900, value: n * 10 });
        }
        assert!(log.bytes.len() < 700_000, "{} bytes", log.bytes.len());
    }
}
