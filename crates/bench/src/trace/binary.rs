//! Our own form of a trace: 16 bytes of head, then records of 32 bytes, little endian, ready to be read in
//! any order.
//!
//! ```text
//!   head    0 "LARDTRC1" 8 record bytes (u32) 12 zero (u32)
//!
//!   record  0 time ns    8 key      16 value B  20 ttl s   24 key B  26 op  27      32
//!           | u64        | u64      | u32       | u32      | u16     | u8   | zero  |
//! ```

use super::{Op, Record, invalid};
use std::io::{self, Read, Write};

/// The first bytes of a file; the digit is the form's version.
pub const MAGIC: [u8; 8] = *b"LARDTRC1";
/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;
const HEAD_BYTES: usize = 16;

/// The bytes of a record.
pub fn encode(record: &Record) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0..8].copy_from_slice(&record.time_ns.to_le_bytes());
    bytes[8..16].copy_from_slice(&record.key.to_le_bytes());
    bytes[16..20].copy_from_slice(&record.value_bytes.to_le_bytes());
    bytes[20..24].copy_from_slice(&record.ttl_s.to_le_bytes());
    bytes[24..26].copy_from_slice(&record.key_bytes.to_le_bytes());
    bytes[26] = record.op as u8;
    bytes
}

/// The record of its bytes; none when the operation is unknown or the rest is not zero.
pub fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<Record> {
    let long = |from: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[from..from + 8]);
        u64::from_le_bytes(word)
    };
    let sizes = long(16);
    let op = *Op::ALL.get(usize::from(bytes[26]))?;
    let is_clean = bytes[27..].iter().all(|byte| *byte == 0);
    is_clean.then_some(Record {
        time_ns: long(0),
        key: long(8),
        value_bytes: sizes as u32,
        ttl_s: (sizes >> 32) as u32,
        key_bytes: u16::from_le_bytes([bytes[24], bytes[25]]),
        op,
    })
}

/// Writes a whole trace; returns how many records it had.
///
/// # Errors
/// The output cannot be written, or the records stop with an error.
pub fn write(mut output: impl Write, records: impl Iterator<Item = io::Result<Record>>) -> io::Result<u64> {
    output.write_all(&MAGIC)?;
    output.write_all(&(RECORD_BYTES as u32).to_le_bytes())?;
    output.write_all(&[0; 4])?;
    let mut count = 0;
    for record in records {
        output.write_all(&encode(&record?))?;
        count += 1;
    }
    output.flush()?;
    Ok(count)
}

/// Reads record by record.
pub struct Reader<R> {
    input: R,
    at: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the head; the input should be buffered.
    ///
    /// # Errors
    /// It is no trace of this form.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES];
        input.read_exact(&mut head)?;
        let size = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if head[..8] != MAGIC || size as usize != RECORD_BYTES {
            return Err(invalid(0, "it is no trace of larder-bench, or of another version"));
        }
        Ok(Self { input, at: 0 })
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        self.at += 1;
        let mut bytes = [0; RECORD_BYTES];
        let mut length = 0;
        while length < RECORD_BYTES {
            match self.input.read(&mut bytes[length..])? {
                0 if length == 0 => return Ok(None),
                0 => return Err(invalid(self.at, "the file ends within it")),
                more => length += more,
            }
        }
        decode(&bytes).map(Some).ok_or_else(|| invalid(self.at, "it is damaged"))
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

    fn record(at: u64) -> Record {
        Record {
            time_ns: at * 7,
            key: u64::MAX - at,
            key_bytes: 300,
            value_bytes: u32::MAX - 1,
            ttl_s: 86_400,
            op: Op::ALL[at as usize % Op::ALL.len()],
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut file = Vec::new();
        let written = write(&mut file, (0..50).map(|at| Ok(record(at)))).expect("memory takes it");
        assert_eq!((written, file.len()), (50, HEAD_BYTES + 50 * RECORD_BYTES));
        let back: Vec<_> = Reader::new(&file[..]).expect("our head").map(|r| r.expect("whole")).collect();
        assert_eq!(back, (0..50).map(record).collect::<Vec<_>>());
    }

    #[test]
    fn a_cut_or_damaged_file_is_noticed() {
        let mut file = Vec::new();
        write(&mut file, (0..2).map(|at| Ok(record(at)))).expect("memory takes it");
        assert!(Reader::new(&file[..60]).expect("our head").nth(1).expect("a part").is_err());
        file[HEAD_BYTES + 26] = 200;
        assert!(Reader::new(&file[..]).expect("our head").next().expect("one").is_err());
        file[0] = b'X';
        assert!(Reader::new(&file[..]).is_err());
    }
}
