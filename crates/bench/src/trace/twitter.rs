//! Twitter's cache-trace: `timestamp,key,key_size,value_size,client_id,operation,TTL`, time in whole seconds.

use super::{Op, Record, invalid, key_number};
use std::io::{self, BufRead};

/// A longer line is none.
const LINE_BYTES_MAX: usize = 4096;

/// Reads line by line; the first line's second is 0.
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    at: u64,
    first_s: Option<u64>,
}

impl<R: BufRead> Reader<R> {
    /// Reads from the beginning.
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), at: 0, first_s: None }
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        loop {
            self.line.clear();
            self.at += 1;
            let bound = LINE_BYTES_MAX as u64;
            if io::Read::take(&mut self.input, bound).read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            if self.line.len() == LINE_BYTES_MAX {
                return Err(invalid(self.at, "a line of more than 4096 bytes"));
            }
            let line = self.line.trim_ascii();
            if !line.is_empty() {
                return parse(line, self.at, &mut self.first_s).map(Some);
            }
        }
    }
}

/// A key may hold commas: the last five columns are counted from the end.
fn parse(line: &[u8], at: u64, first_s: &mut Option<u64>) -> io::Result<Record> {
    let number = |text: &[u8]| -> Option<u64> { std::str::from_utf8(text).ok()?.trim().parse().ok() };
    let wrong = |what| invalid(at, what);
    let mut ends = line.rsplitn(6, |b| *b == b',');
    let mut next = || ends.next().unwrap_or_default();
    let (ttl, op, _client, value, key_size, front) = (next(), next(), next(), next(), next(), next());
    let comma = front.iter().position(|b| *b == b',').ok_or_else(|| wrong("fewer than seven columns"))?;
    let (time, key) = (&front[..comma], &front[comma + 1..]);
    let second = number(time).ok_or_else(|| wrong("the timestamp is no number of seconds"))?;
    let first = *first_s.get_or_insert(second);
    let op = std::str::from_utf8(op).ok().and_then(Op::parse).ok_or_else(|| wrong("an unknown operation"))?;
    Ok(Record {
        time_ns: second.saturating_sub(first).saturating_mul(1_000_000_000),
        key: key_number(key),
        key_bytes: number(key_size)
            .ok_or_else(|| wrong("the key size is no number"))?
            .min(u64::from(u16::MAX)) as u16,
        value_bytes: number(value)
            .ok_or_else(|| wrong("the value size is no number"))?
            .min(u64::from(u32::MAX)) as u32,
        ttl_s: number(ttl).ok_or_else(|| wrong("the TTL is no number"))?.min(u64::from(u32::MAX)) as u32,
        op,
    })
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = io::Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_mean_what_the_trace_says() {
        let text = b"100,a,b:k,5,230,17,set,86400\n\n101,zz,2,0,17,get,0\n";
        let records: Vec<_> = Reader::new(&text[..]).map(|r| r.expect("it parses")).collect();
        assert_eq!(records.len(), 2);
        let first = records[0];
        assert_eq!((first.time_ns, first.key_bytes, first.value_bytes), (0, 5, 230));
        assert_eq!((first.ttl_s, first.op, first.key), (86_400, Op::Set, key_number(b"a,b:k")));
        assert_eq!((records[1].time_ns, records[1].op), (1_000_000_000, Op::Get));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for line in ["1,k,2,3,4,jump,6", "x,k,2,3,4,get,6", "1,k", "1,k,2,3,4,get,-"] {
            let error = Reader::new(line.as_bytes()).next().expect("a line").expect_err("it is wrong");
            assert!(error.to_string().starts_with("record 1: "), "{error}");
        }
        let long = vec![b'x'; 10_000];
        assert!(Reader::new(&long[..]).next().expect("a line").is_err());
    }
}
