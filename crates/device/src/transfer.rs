//! How one transfer goes on after a short, interrupted or failed attempt. Never makes an attempt itself.

use std::io;

use super::PAGE_BYTES;

/// Attempts in a row without a byte of progress before an interruption is reported as the error it is.
const STALLS_MAX: u32 = 64;

/// The most bytes one attempt asks for; the kernel moves at most 2 GiB less a page.
const ATTEMPT_BYTES_MAX: usize = 1 << 30;

/// The state of a read or write that may take several attempts.
///
/// ```text
///   0        at    reached              len
///   |---------|------|-------------------|
///             next attempt: at..len        at = reached rounded down to the alignment
/// ```
#[derive(Debug)]
pub(super) struct Transfer {
    len: usize,
    at: usize,
    reached: usize,
    alignment: usize,
    stalls: u32,
    write: bool,
}

/// What to do after an attempt.
#[derive(Debug)]
pub(super) enum Step {
    /// Make another attempt at [`Transfer::attempt`].
    Again,
    /// Over, with this result.
    Over(io::Result<usize>),
}

impl Transfer {
    /// A transfer of `len` bytes of which only the first `possible` exist on the device.
    pub(super) fn new(possible: usize, alignment: usize, write: bool) -> Self {
        debug_assert!(alignment.is_power_of_two() && alignment <= PAGE_BYTES);
        Transfer { len: possible, at: 0, reached: 0, alignment, stalls: 0, write }
    }

    /// The next attempt: where in the buffer it starts, and how many bytes it moves.
    pub(super) fn attempt(&self) -> (usize, usize) {
        (self.at, (self.len - self.at).min(ATTEMPT_BYTES_MAX))
    }

    /// Takes in the outcome of the attempt.
    pub(super) fn advance(&mut self, outcome: io::Result<usize>) -> Step {
        let moved = match outcome {
            Ok(moved) => moved,
            Err(error) if is_interruption(&error) && self.stalls < STALLS_MAX => {
                self.stalls += 1;
                return Step::Again;
            }
            Err(error) => return Step::Over(Err(error)),
        };
        let (_, asked) = self.attempt();
        assert!(moved <= asked, "a device moved {moved} bytes of {asked}");
        let reached = self.at + moved;
        if reached == self.len {
            return Step::Over(Ok(reached));
        }
        // Direct I/O cannot resume off the alignment, so a transfer that stopped there repeats its last
        // block. Stopping at the same byte twice is the end of the file, not a hiccup.
        if reached <= self.reached {
            return Step::Over(if self.write {
                Err(io::Error::new(io::ErrorKind::WriteZero, "the device takes no more bytes"))
            } else {
                Ok(self.reached)
            });
        }
        self.stalls = 0;
        self.reached = reached;
        self.at = reached - reached % self.alignment;
        Step::Again
    }
}

fn is_interruption(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mut transfer: Transfer, outcomes: Vec<io::Result<usize>>) -> io::Result<usize> {
        for outcome in outcomes {
            if let Step::Over(result) = transfer.advance(outcome) {
                return result;
            }
        }
        panic!("not over: {transfer:?}");
    }

    fn interrupted() -> io::Result<usize> {
        Err(io::ErrorKind::Interrupted.into())
    }

    #[test]
    fn short_attempts_add_up() {
        let read = Transfer::new(4096, 512, false);
        assert_eq!(run(read, vec![Ok(512), interrupted(), Ok(1024), Ok(2560)]).expect("a total"), 4096);
    }

    #[test]
    fn an_attempt_that_stops_inside_a_block_repeats_the_block() {
        let mut write = Transfer::new(4096, 512, true);
        assert!(matches!(write.advance(Ok(700)), Step::Again));
        assert_eq!(write.attempt(), (512, 3584));
        assert!(matches!(write.advance(Ok(3584)), Step::Over(Ok(4096))));
    }

    #[test]
    fn a_read_ends_where_the_file_ends() {
        assert_eq!(run(Transfer::new(4096, 512, false), vec![Ok(1024), Ok(0)]).expect("a total"), 1024);
        assert_eq!(run(Transfer::new(4096, 512, false), vec![Ok(700), Ok(188)]).expect("a total"), 700);
        assert_eq!(run(Transfer::new(4096, 512, false), vec![Ok(0)]).expect("a total"), 0);
    }

    #[test]
    fn a_write_that_makes_no_progress_is_an_error() {
        let error = run(Transfer::new(4096, 512, true), vec![Ok(1024), Ok(0)]).expect_err("no progress");
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    }

    #[test]
    fn endless_interruptions_surface() {
        let outcomes = (0..=STALLS_MAX).map(|_| interrupted()).collect();
        assert!(run(Transfer::new(4096, 512, false), outcomes).is_err());
    }
}
