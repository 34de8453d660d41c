//! CacheLib's kvcache traces: CSV with a header that names the columns, among them `key`, `op`, `size`,
//! `op_count`, `key_size` and sometimes `ttl` and `op_time`.
//!
//! A row with `op_count` n is n requests. Without `op_time` there is no time: requests are a microsecond
//! apart, and a replay has to set its own rate.

use super::{Op, Record, invalid, key_number};
use std::io::{self, BufRead};

const LINE_BYTES_MAX: u64 = 4096;
/// Between two requests of a trace without times.
const GAP_NS: u64 = 1000;
/// More requests in one row are taken for a fault of the file.
const OP_COUNT_MAX: u64 = 1_000_000;

/// Where the columns stand.
#[derive(Debug, Default)]
struct Columns {
    key: Option<usize>,
    op: Option<usize>,
    size: Option<usize>,
    op_count: Option<usize>,
    key_size: Option<usize>,
    ttl: Option<usize>,
    op_time: Option<usize>,
}

/// Reads row by row.
pub struct Reader<R> {
    input: R,
    columns: Columns,
    line: String,
    at: u64,
    first_s: Option<u64>,
    last_ns: u64,
    repeats: u64,
    record: Record,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// A column that must be there is missing.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut line = String::new();
        io::Read::take(&mut input, LINE_BYTES_MAX).read_line(&mut line)?;
        let mut columns = Columns::default();
        for (at, name) in line.trim().split(',').enumerate() {
            match name.trim() {
                "key" => columns.key = Some(at),
                "op" => columns.op = Some(at),
                "size" => columns.size = Some(at),
                "op_count" => columns.op_count = Some(at),
                "key_size" => columns.key_size = Some(at),
                "ttl" => columns.ttl = Some(at),
                "op_time" => columns.op_time = Some(at),
                _ => {}
            }
        }
        if columns.key.is_none() || columns.op.is_none() || columns.size.is_none() {
            return Err(invalid(0, "the header names no columns key, op and size"));
        }
        let record = Record::default();
        Ok(Self { input, columns, line, at: 0, first_s: None, last_ns: 0, repeats: 0, record })
    }

    /// Whether there is a column of times, in whole seconds.
    pub fn has_times(&self) -> bool {
        self.columns.op_time.is_some()
    }

    fn read(&mut self) -> io::Result<Option<Record>> {
        if self.repeats > 0 {
            self.repeats -= 1;
            return Ok(Some(self.record));
        }
        loop {
            self.line.clear();
            self.at += 1;
            if io::Read::take(&mut self.input, LINE_BYTES_MAX).read_line(&mut self.line)? == 0 {
                return Ok(None);
            }
            if !self.line.trim().is_empty() {
                self.parse()?;
                return Ok(Some(self.record));
            }
        }
    }

    fn parse(&mut self) -> io::Result<()> {
        let cells: Vec<&str> = self.line.trim().split(',').map(str::trim).collect();
        let cell =
            |column: Option<usize>| column.and_then(|at| cells.get(at)).copied().filter(|c| !c.is_empty());
        let number = |column: Option<usize>, missing: u64, name: &str| match cell(column) {
            None => Ok(missing),
            Some(text) => {
                text.parse().map_err(|_| invalid(self.at, &format!("{name} `{text}` is no number")))
            }
        };
        let key = cell(self.columns.key).ok_or_else(|| invalid(self.at, "it has no key"))?;
        let name = cell(self.columns.op).unwrap_or_default();
        // Gets and sets are marked by the layer that asked: GET_LEASE, SET_TAIL.
        let op = name.split('_').next().and_then(Op::parse).or((name == "DEL").then_some(Op::Delete));
        let time_ns = match cell(self.columns.op_time) {
            None => self.last_ns + GAP_NS,
            Some(_) => {
                let second: u64 = number(self.columns.op_time, 0, "op_time")?;
                let first = *self.first_s.get_or_insert(second);
                second.saturating_sub(first).saturating_mul(1_000_000_000)
            }
        };
        self.record = Record {
            time_ns,
            key: key.parse().unwrap_or_else(|_| key_number(key.as_bytes())),
            key_bytes: number(self.columns.key_size, key.len() as u64, "key_size")?.min(u64::from(u16::MAX))
                as u16,
            value_bytes: number(self.columns.size, 0, "size")?.min(u64::from(u32::MAX)) as u32,
            ttl_s: number(self.columns.ttl, 0, "ttl")?.min(u64::from(u32::MAX)) as u32,
            op: op.ok_or_else(|| invalid(self.at, &format!("an unknown operation `{name}`")))?,
        };
        let count = number(self.columns.op_count, 1, "op_count")?;
        if count > OP_COUNT_MAX {
            return Err(invalid(self.at, "op_count is above a million"));
        }
        self.last_ns = time_ns;
        self.repeats = count.max(1) - 1;
        Ok(())
    }
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
    fn a_row_may_stand_for_several_requests() {
        let text =
            "key,op,size,op_count,key_size,ttl\n17,GET,100,3,36,0\nab,SET_TAIL,20,1,40,60\n5,DELETE,0,1,9,\n";
        let records: Vec<_> =
            Reader::new(text.as_bytes()).expect("a header").map(|r| r.expect("it parses")).collect();
        assert_eq!(records.len(), 5);
        assert_eq!((records[2].key, records[2].op, records[2].value_bytes), (17, Op::Get, 100));
        assert_eq!((records[3].op, records[3].ttl_s, records[3].key_bytes), (Op::Set, 60, 40));
        assert_eq!((records[4].op, records[4].time_ns), (Op::Delete, 3000));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert!(Reader::new(&b"a,b,c\n"[..]).is_err());
        let mut reader = Reader::new(&b"key,op,size\n1,FLY,2\n"[..]).expect("a header");
        let error = reader.next().expect("a row").expect_err("it is wrong");
        assert!(error.to_string().contains("FLY"), "{error}");
    }
}
