//! Statistics and item metadata as answers: one name and value at a time, then an end.

use super::binary::{self, ReplyHeader};
use super::dump::push_facts;
use crate::reply::{ItemInfo, Reply};
use crate::{base64, status, text};

impl Reply<'_> {
    /// One statistic: `STAT <name> <value>`, or a packet with name and value. The value must not be empty,
    /// and the name must hold no blank: clients take both for the end of what they can parse.
    pub fn stat(&self, out: &mut Vec<u8>, name: &str, value: &[u8]) {
        if let Reply::Binary { opcode, opaque, .. } = self {
            let fields = ReplyHeader {
                key_len: name.len() as u16,
                body_len: (name.len() + value.len()) as u32,
                ..ReplyHeader::default()
            };
            binary::header(out, *opcode, *opaque, fields);
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value);
            return;
        }
        out.extend_from_slice(b"STAT ");
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    }

    /// One statistic that is a number.
    pub fn stat_number(&self, out: &mut Vec<u8>, name: &str, value: u64) {
        self.stat(out, name, itoa::Buffer::new().format(value).as_bytes());
    }

    /// The end of the statistics: `END`, or a packet with neither name nor value.
    pub fn stats_end(&self, out: &mut Vec<u8>) {
        match self {
            Reply::Binary { opcode, opaque, .. } => {
                binary::header(out, *opcode, *opaque, ReplyHeader::default());
            }
            Reply::Classic { .. } | Reply::Meta { .. } => out.extend_from_slice(b"END\r\n"),
        }
    }

    /// There are no such statistics: `ERROR`, or "Not found".
    pub fn stats_unknown(&self, out: &mut Vec<u8>) {
        if let Reply::Binary { opcode, opaque, .. } = self {
            let status = status::NOT_FOUND;
            binary::error(out, *opcode, *opaque, status, status::words(status));
            return;
        }
        self.line(out, text::ERROR);
    }

    /// The answer to `me` for an item that is there; `class` and `size` (in bytes, all overhead included) are
    /// what the store makes of memcached's slab class and total size. For one that is not,
    /// [`Reply::miss`].
    pub fn debug(&self, out: &mut Vec<u8>, key: &[u8], item: &ItemInfo, class: u32, size: u64) {
        out.extend_from_slice(b"ME ");
        if item.key_is_binary {
            base64::encode(out, key);
        } else {
            out.extend_from_slice(key);
        }
        push_facts(out, item, item.ttl_after_s.map(u64::from), u64::from(item.idle_s), class, size);
        out.extend_from_slice(b"\r\n");
    }
}
