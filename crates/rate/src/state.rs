//! What a rule remembers of a key, and the text in which it is kept: a letter for the rule and numbers, with blanks
//! between them, so that an operator can read it.

/// What a rule remembers of a key. Periods are numbered from 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Of a fixed window: `F <period> <count>`.
    Fixed {
        /// The number of the period.
        period: u64,
        /// What passed in it.
        count: u64,
    },
    /// Of a sliding window: `S <period> <before> <count>`.
    Sliding {
        /// The number of the period.
        period: u64,
        /// What passed in the period before it.
        before: u64,
        /// What passed in it.
        count: u64,
    },
    /// Of the generic cell rate algorithm: `G <time>`.
    Gcra {
        /// When the bucket is full again, in nanoseconds since 1970.
        full_at_ns: u64,
    },
}

/// The most bytes that a state takes: a letter, and three numbers with a blank before each.
pub const STATE_BYTES_MAX: usize = 1 + 3 * 21;

/// A state as text.
#[derive(Clone, Copy, Debug)]
pub struct StateText {
    bytes: [u8; STATE_BYTES_MAX],
    len: usize,
}

impl StateText {
    fn new(letter: u8, numbers: &[u64]) -> StateText {
        let mut text = StateText { bytes: [0; STATE_BYTES_MAX], len: 0 };
        text.push(&[letter]);
        for number in numbers {
            text.push(b" ");
            text.push(itoa::Buffer::new().format(*number).as_bytes());
        }
        text
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
            self.len = end;
        }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl AsRef<[u8]> for StateText {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl State {
    /// Returns the state as text.
    pub fn encode(&self) -> StateText {
        match *self {
            State::Fixed { period, count } => StateText::new(b'F', &[period, count]),
            State::Sliding { period, before, count } => StateText::new(b'S', &[period, before, count]),
            State::Gcra { full_at_ns } => StateText::new(b'G', &[full_at_ns]),
        }
    }

    /// Returns the state that a text holds; none if it is no state.
    pub fn decode(text: &[u8]) -> Option<State> {
        let mut words = std::str::from_utf8(text).ok()?.split(' ');
        let letter = words.next()?;
        let mut number = || {
            let word = words.next().filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))?;
            word.parse().ok()
        };
        let state = match letter {
            "F" => State::Fixed { period: number()?, count: number()? },
            "S" => State::Sliding { period: number()?, before: number()?, count: number()? },
            "G" => State::Gcra { full_at_ns: number()? },
            _ => return None,
        };
        words.next().is_none().then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_comes_back_and_nothing_else_is_one() {
        for number in [0, 7, u64::MAX] {
            for state in [
                State::Fixed { period: number, count: 1 },
                State::Sliding { period: number, before: number, count: number },
                State::Gcra { full_at_ns: number },
            ] {
                assert_eq!(State::decode(state.encode().as_bytes()), Some(state));
            }
        }
        for other in [
            &b""[..],
            b"1 2 3",
            b"F",
            b"F 1",
            b"F 1 +2",
            b"F 1 2 3",
            b"F 1 2 ",
            b"S 1 2",
            b"S 1 2 x",
            b"G 18446744073709551616",
            b"G ",
            b"X 1 2",
            b"\xff 1 2",
        ] {
            assert_eq!(State::decode(other), None, "{}", other.escape_ascii());
        }
    }
}
