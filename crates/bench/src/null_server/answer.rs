//! The null server's reply to each request, with as little parsing as the framing allows.

use crate::wire::Protocol;

/// Fixed replies.
pub(super) struct Replies {
    protocol: Protocol,
    value: Vec<u8>,
    /// ` 0 BYTES\r\n` and the value with its line end.
    text_tail: Vec<u8>,
    /// The same with a unique number.
    unique_tail: Vec<u8>,
}

impl Replies {
    pub fn new(protocol: Protocol, value_bytes: u32) -> Self {
        let value = vec![b'0'; value_bytes as usize];
        let tail = |end| [format!(" 0 {value_bytes}{end}\r\n").as_bytes(), &value, b"\r\n"].concat();
        let (text_tail, unique_tail) = (tail(""), tail(" 1"));
        Self { protocol, value, text_tail, unique_tail }
    }

    /// Answers the first request of `input`, and returns its length; 0 if it is not whole, none if it is
    /// none.
    pub fn answer(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        match self.protocol {
            Protocol::Text => self.text(input, out),
            Protocol::Meta => self.meta(input, out),
            Protocol::Binary => self.binary(input, out),
            Protocol::Resp2 => self.resp(input, out),
        }
    }

    fn text(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let Some(end) = memchr::memchr(b'\n', input) else { return Some(0) };
        let line = &input[..end.saturating_sub(1)];
        match *line.first()? {
            b'g' => {
                let words = line.split(|byte| *byte == b' ');
                // The first word of a gat is its expiry.
                let keys = words.skip(if line.starts_with(b"gat ") { 2 } else { 1 });
                for key in keys.filter(|key| !key.is_empty()) {
                    out.extend_from_slice(b"VALUE ");
                    out.extend_from_slice(key);
                    out.extend_from_slice(if line.starts_with(b"gets ") {
                        &self.unique_tail
                    } else {
                        &self.text_tail
                    });
                }
                out.extend_from_slice(b"END\r\n");
            }
            b's' | b'a' | b'p' | b'c' => {
                let said: &[u8] = if line.ends_with(b" noreply") { b"" } else { b"STORED\r\n" };
                return stored(input, end, line.split(|byte| *byte == b' ').nth(4)?, said, out);
            }
            b'i' => out.extend_from_slice(b"1\r\n"),
            b'd' => out.extend_from_slice(b"DELETED\r\n"),
            b'v' => out.extend_from_slice(b"VERSION 0\r\n"),
            b't' => out.extend_from_slice(b"TOUCHED\r\n"),
            _ => return None,
        }
        Some(end + 1)
    }

    fn meta(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let Some(end) = memchr::memchr(b'\n', input) else { return Some(0) };
        let line = &input[..end.saturating_sub(1)];
        let mut words = line.split(|byte| *byte == b' ');
        match words.next()? {
            b"mg" if words.clone().any(|word| word == b"v") => {
                out.extend_from_slice(b"VA ");
                out.extend_from_slice(self.value.len().to_string().as_bytes());
                if words.clone().any(|word| word == b"c") {
                    out.extend_from_slice(b" c1");
                }
                if let Some(opaque) = words.find(|word| word.starts_with(b"O")) {
                    out.push(b' ');
                    out.extend_from_slice(opaque);
                }
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(&self.value);
                out.extend_from_slice(b"\r\n");
            }
            b"ms" => {
                let said: &[u8] = if words.clone().any(|word| word == b"q") { b"" } else { b"HD\r\n" };
                return stored(input, end, words.nth(1)?, said, out);
            }
            b"version" => out.extend_from_slice(b"VERSION 0\r\n"),
            b"mn" => out.extend_from_slice(b"MN\r\n"),
            b"ma" if words.any(|word| word == b"v") => out.extend_from_slice(b"VA 1\r\n1\r\n"),
            b"mg" | b"ma" | b"md" => out.extend_from_slice(b"HD\r\n"),
            _ => return None,
        }
        Some(end + 1)
    }

    fn binary(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        const HEADER: usize = 24;
        if input.len() < HEADER {
            return Some(0);
        }
        let opcode = input[1];
        let body = u32::from_be_bytes([input[8], input[9], input[10], input[11]]) as usize;
        if input[0] != 0x80 {
            return None;
        }
        if input.len() < HEADER + body {
            return Some(0);
        }
        const SETQ: u8 = 0x11;
        if opcode == SETQ {
            return Some(HEADER + body);
        }
        // A get has four bytes of flags before its value, an increment a number for a value.
        let (extras, value): (usize, &[u8]) = match opcode {
            0x00 | 0x0d | 0x1d => (4, &self.value),
            0x05 => (0, &[0; 8]),
            _ => (0, &[]),
        };
        let mut header = [0; HEADER + 4];
        header[0] = 0x81;
        header[1] = opcode;
        header[4] = extras as u8;
        header[8..12].copy_from_slice(&((extras + value.len()) as u32).to_be_bytes());
        header[12..16].copy_from_slice(&input[12..16]);
        out.extend_from_slice(&header[..HEADER + extras]);
        out.extend_from_slice(value);
        Some(HEADER + body)
    }

    fn resp(&self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let Some((words, mut at)) = count(input, b'*')? else { return Some(0) };
        let mut verb: &[u8] = b"";
        for word in 0..words {
            let Some((bytes, next)) = count(&input[at..], b'$')? else { return Some(0) };
            let begin = at + next;
            at = begin + bytes + 2;
            if at > input.len() {
                return Some(0);
            }
            if word == 0 {
                verb = &input[begin..begin + bytes];
            }
        }
        let value = |out: &mut Vec<u8>| {
            out.extend_from_slice(format!("${}\r\n", self.value.len()).as_bytes());
            out.extend_from_slice(&self.value);
            out.extend_from_slice(b"\r\n");
        };
        match verb {
            b"GET" | b"GETEX" => value(out),
            b"MGET" => {
                out.extend_from_slice(format!("*{}\r\n", words - 1).as_bytes());
                (1..words).for_each(|_| value(out));
            }
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"SET" => out.extend_from_slice(b"+OK\r\n"),
            b"INCR" | b"DEL" | b"EXPIRE" | b"PERSIST" => out.extend_from_slice(b":1\r\n"),
            _ => return None,
        }
        Some(at)
    }
}

/// Answers a store whose data begins behind the line that ends at `end`.
fn stored(input: &[u8], end: usize, bytes: &[u8], reply: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let whole = end + 1 + number(bytes)? + 2;
    if input.len() < whole {
        return Some(0);
    }
    out.extend_from_slice(reply);
    Some(whole)
}

/// The number behind a sign, and where the next line begins; the inner none is: not whole.
fn count(input: &[u8], sign: u8) -> Option<Option<(usize, usize)>> {
    let Some(end) = memchr::memchr(b'\n', input) else { return Some(None) };
    let digits = input[..end].strip_prefix(&[sign])?.strip_suffix(b"\r")?;
    Some(Some((number(digits)?, end + 1)))
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}
