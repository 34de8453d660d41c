//! Messages over a stream of bytes: a length in four bytes, most significant first, then as much JSON.
//!
//! A login shell may print a greeting before the agent runs, so the agent's first frame comes behind
//! [`MAGIC`], and the bytes before it are skipped.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};

/// Comes once, before the first frame of an agent.
pub const MAGIC: &[u8] = b"\nlarder-bench-agent\n";
/// The longest frame that is taken; a result of an hour of seconds is a tenth of it.
pub const FRAME_BYTES_MAX: usize = 64 << 20;

const READ_BYTES: usize = 64 << 10;

/// Writes one message and flushes.
///
/// # Errors
/// Of the stream; or the message is longer than [`FRAME_BYTES_MAX`].
pub fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other(format!("a message of {length} bytes is too long")));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    to.write_all(&bytes)?;
    to.flush()
}

/// Takes messages out of a stream, in whatever pieces it comes.
#[derive(Debug)]
pub struct Frames<R> {
    from: R,
    buffer: Vec<u8>,
    taken: usize,
}

impl<R: Read> Frames<R> {
    /// Nothing read yet.
    pub fn new(from: R) -> Self {
        Self { from, buffer: Vec::new(), taken: 0 }
    }

    /// Reads to the first of some marks and past it, and returns which it was; none when the stream ends
    /// before.
    ///
    /// # Errors
    /// Of the stream; or there are `most` bytes and no mark.
    pub fn skip_to(&mut self, marks: &[&[u8]], most: usize) -> io::Result<Option<usize>> {
        loop {
            let waiting = &self.buffer[self.taken..];
            let found = marks.iter().enumerate().filter_map(|(which, mark)| {
                let at = waiting.windows(mark.len()).position(|window| window == *mark)?;
                Some((at, which, mark.len()))
            });
            if let Some((at, which, length)) = found.min() {
                self.taken += at + length;
                return Ok(Some(which));
            }
            if waiting.len() > most {
                return Err(io::Error::other("it prints much, and none of it is from an agent"));
            }
            if self.read()? == 0 {
                return Ok(None);
            }
        }
    }

    /// Everything up to a mark, and past it; none when the stream ends before.
    ///
    /// # Errors
    /// Of the stream; or there are `most` bytes and no mark.
    pub fn take_to(&mut self, mark: &[u8], most: usize) -> io::Result<Option<Vec<u8>>> {
        loop {
            let waiting = &self.buffer[self.taken..];
            if let Some(at) = waiting.windows(mark.len()).position(|window| window == mark) {
                let text = waiting[..at].to_vec();
                self.taken += at + mark.len();
                return Ok(Some(text));
            }
            if waiting.len() > most {
                return Err(io::Error::other(format!("more than {most} bytes came in one piece")));
            }
            if self.read()? == 0 {
                return Ok(None);
            }
        }
    }

    /// The next message; none at the end of the stream.
    ///
    /// # Errors
    /// Of the stream; its end within a message; or the bytes are no message.
    pub fn message<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            let waiting = &self.buffer[self.taken..];
            if let Some((head, body)) = waiting.split_at_checked(4) {
                let length = head.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
                if length > FRAME_BYTES_MAX {
                    return Err(io::Error::other(format!("a frame says that it has {length} bytes")));
                }
                if let Some(json) = body.get(..length) {
                    let message = serde_json::from_slice(json)?;
                    self.taken += 4 + length;
                    return Ok(Some(message));
                }
            }
            if self.read()? == 0 {
                let is_between = self.taken == self.buffer.len();
                let cut = || io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within a message");
                return if is_between { Ok(None) } else { Err(cut()) };
            }
        }
    }

    fn read(&mut self) -> io::Result<usize> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let read = loop {
            match self.from.read(&mut self.buffer[before..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(before + read.as_ref().map_or(0, |read| *read));
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Gives its pieces one read after the other.
    struct Pieces(VecDeque<Vec<u8>>);

    impl Read for Pieces {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let Some(mut piece) = self.0.pop_front() else { return Ok(0) };
            let length = piece.len().min(to.len());
            to[..length].copy_from_slice(&piece[..length]);
            let rest = piece.split_off(length);
            if !rest.is_empty() {
                self.0.push_front(rest);
            }
            Ok(length)
        }
    }

    fn stream() -> Vec<u8> {
        let mut bytes = b"Welcome to Debian\n".to_vec();
        bytes.extend_from_slice(MAGIC);
        for message in ["one", "", "a longer one"] {
            write(&mut bytes, &message).expect("memory takes all");
        }
        bytes
    }

    fn read_all(pieces: Vec<Vec<u8>>) -> Vec<String> {
        let mut frames = Frames::new(Pieces(pieces.into()));
        assert_eq!(frames.skip_to(&[b"no such mark", MAGIC], 1000).expect("it is there"), Some(1));
        let mut found = Vec::new();
        while let Some(message) = frames.message().expect("whole messages") {
            found.push(message);
        }
        found
    }

    #[test]
    fn messages_survive_a_split_at_every_byte() {
        let bytes = stream();
        let want = ["one", "", "a longer one"];
        for at in 0..=bytes.len() {
            let pieces = vec![bytes[..at].to_vec(), bytes[at..].to_vec()];
            assert_eq!(read_all(pieces.into_iter().filter(|piece| !piece.is_empty()).collect()), want);
        }
        assert_eq!(read_all(bytes.iter().map(|byte| vec![*byte]).collect()), want);
    }

    #[test]
    fn text_is_taken_up_to_its_mark() {
        let bytes = b"one|two||three".to_vec();
        for at in 0..=bytes.len() {
            let pieces = [&bytes[..at], &bytes[at..]].map(<[u8]>::to_vec);
            let pieces = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
            let mut frames = Frames::new(Pieces(pieces));
            let mut take = || frames.take_to(b"|", 100).expect("short");
            assert_eq!([take(), take(), take()].map(Option::unwrap_or_default), [&b"one"[..], b"two", b""]);
            assert_eq!(take(), None);
        }
        assert!(Frames::new(&bytes[..]).take_to(b"four", 5).is_err());
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_an_error() {
        let mut bytes = Vec::new();
        write(&mut bytes, &"message").expect("memory takes all");
        for length in 1..bytes.len() {
            let mut frames = Frames::new(&bytes[..length]);
            let ended = frames.message::<String>().map_err(|error| error.kind());
            assert_eq!(ended, Err(io::ErrorKind::UnexpectedEof), "{length}");
        }
        assert_eq!(Frames::new(&b""[..]).message::<String>().expect("the end"), None);
    }

    #[test]
    fn what_is_no_frame_is_refused_and_nothing_large_is_kept() {
        assert!(Frames::new(&b"\xff\xff\xff\xff{}"[..]).message::<String>().is_err());
        assert!(Frames::new(&b"\0\0\0\x02{}"[..]).message::<String>().is_err());
        let noise = vec![b'x'; 1 << 20];
        assert!(Frames::new(&noise[..]).skip_to(&[MAGIC], 1000).is_err());
        assert_eq!(Frames::new(&noise[..10]).skip_to(&[MAGIC], 1000).expect("short"), None);
    }
}
