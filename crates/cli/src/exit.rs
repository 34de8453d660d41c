//! How a verb ends: what it found, or why it failed, and the exit codes for these.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// The end of a verb that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing needs attention.
    Fine,
    /// The work is done, and its output names something that needs attention.
    Findings,
}

/// The reason why a verb could not do its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// A server, a file or the system failed. The text says what to do.
    Failed(String),
    /// A signal ended it.
    Interrupted,
    /// The reader of the output has gone, as `head` does.
    OutputClosed,
}

/// The result of a verb, or of a part of it.
pub type Outcome<T> = Result<T, Failure>;

/// What each exit code means, for help pages.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    done, and nothing needs attention
  1    could not be done: a server, a file or the system failed
  2    done, and something needs attention: see the output
  64   the command line is wrong
  130  ended by Ctrl-C";

impl Failure {
    /// Makes the failure for anything that can be shown.
    pub fn of(problem: impl fmt::Display) -> Failure {
        Failure::Failed(problem.to_string())
    }
}

impl From<larder_client::Error> for Failure {
    fn from(error: larder_client::Error) -> Failure {
        Failure::of(error)
    }
}

/// Returns the exit code of a verb that ended, after its failure is reported on standard error.
pub fn report(end: Outcome<Verdict>) -> ExitCode {
    let (code, message) = match end {
        Ok(Verdict::Fine) | Err(Failure::OutputClosed) => (0, None),
        Ok(Verdict::Findings) => (2, None),
        Err(Failure::Failed(message)) => (1, Some(message)),
        Err(Failure::Usage(message)) => (64, Some(message)),
        Err(Failure::Interrupted) => (130, None),
    };
    if let Some(message) = message {
        let _ = writeln!(io::stderr(), "larder: {message}");
    }
    ExitCode::from(code)
}

/// Writes text to standard output.
///
/// # Errors
/// Its reader has gone, or it cannot be written.
pub fn print(text: &str) -> Outcome<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(output_failed)
}

/// Returns the failure for an error of standard output.
pub fn output_failed(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::Failed(format!("the output cannot be written: {error}")),
    }
}

/// Writes a value as JSON, in lines for people, to standard output.
///
/// # Errors
/// See [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> Outcome<()> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::of)?;
    print(&format!("{text}\n"))
}
