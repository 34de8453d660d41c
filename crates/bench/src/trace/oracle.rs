//! oracleGeneral of libCacheSim: records of 24 bytes, little endian.
//!
//! ```text
//!   0        4                 12        16                24
//!   | time s | object id       | size B  | next access     |
//!   | u32    | u64             | u32     | i64, not used   |
//! ```
//!
//! It knows neither operations nor expiry: every record is a get, which look-aside makes a set where it
//! misses.

use super::{Op, Record, invalid};
use std::io::{self, Read};

const RECORD_BYTES: usize = 24;
/// The trace does not tell the length of keys: a number in hexadecimal has this many.
const KEY_BYTES: u16 = 16;

/// Reads record by record; the first record's second is 0.
pub struct Reader<R> {
    input: R,
    at: u64,
    first_s: Option<u32>,
}

impl<R: Read> Reader<R> {
    /// Reads from the beginning; the input should be buffered.
    pub fn new(input: R) -> Self {
        Self { input, at: 0, first_s: None }
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        self.at += 1;
        let mut bytes = [0; RECORD_BYTES];
        let mut length = 0;
        while length < RECORD_BYTES {
            match self.input.read(&mut bytes[length..])? {
                0 if length == 0 => return Ok(None),
                0 => {
                    return Err(invalid(
                        self.at,
                        "the file ends within it; is it of the form oracleGeneral?",
                    ));
                }
                more => length += more,
            }
        }
        let word = |from: usize| {
            u32::from_le_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]])
        };
        let second = word(0);
        let first = *self.first_s.get_or_insert(second);
        if second < first {
            return Err(invalid(self.at, "time goes back; is it of the form oracleGeneral?"));
        }
        Ok(Some(Record {
            time_ns: u64::from(second - first) * 1_000_000_000,
            key: u64::from(word(4)) | u64::from(word(8)) << 32,
            key_bytes: KEY_BYTES,
            value_bytes: word(12),
            ttl_s: 0,
            op: Op::Get,
        }))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_real_trace() {
        // The first record and the fourth of a published block trace.
        let bytes = [
            0x6a, 0xf7, 0x55, 0, 0x09, 0x1a, 0x8f, 0x02, 0, 0, 0, 0, 0, 0x02, 0, 0, 255, 255, 255, 255, 255,
            255, 255, 255, 0x6b, 0xf7, 0x55, 0, 0x37, 0x9b, 0x68, 0x02, 0, 0, 0, 0, 0, 0x1a, 0, 0, 255, 255,
            255, 255, 255, 255, 255, 255,
        ];
        let records: Vec<_> = Reader::new(&bytes[..]).map(|r| r.expect("it parses")).collect();
        assert_eq!((records[0].key, records[0].value_bytes, records[0].time_ns), (0x028f_1a09, 512, 0));
        assert_eq!((records[1].value_bytes, records[1].time_ns), (6656, 1_000_000_000));
        assert!(Reader::new(&bytes[..30]).nth(1).expect("a part").is_err());
    }
}
