//! Starts an agent on a host: a shell there, a script for it, and our own executable when the host has none
//! yet.
//!
//! The command that leads to the host runs `sh` without arguments, and the script goes to its standard input.
//! So there is nothing that shells on the way could misread, and `ssh`, `ip netns exec` and `docker exec -i`
//! all do. Nothing is sent ahead of its time, since a shell may read more of its input than it needs.

use super::frame::{Frames, MAGIC};
use super::host::{Host, Place, Transport};
use super::shell_words::quote;
use super::stripped::stripped;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The mark by which a script asks for the executable.
const WANTED: &[u8] = b"\nlarder-bench-wanted\n";
/// A greeting of a login shell is shorter.
const GREETING_BYTES_MAX: usize = 1 << 20;
/// Bytes kept of a host's standard error.
const SAID_BYTES_MAX: usize = 8 << 10;

/// The program that runs on the hosts.
#[derive(Clone, Debug)]
pub enum Program {
    /// A path there, or a name that is found there.
    There(String),
    /// This executable, copied where it is missing, without what only a debugger reads.
    Copied(Arc<Copy>),
}

/// An executable that can be copied.
#[derive(Debug)]
pub struct Copy {
    path: PathBuf,
    bytes: Vec<u8>,
    name: String,
}

impl Program {
    /// `path` on the hosts; without one, this executable itself.
    ///
    /// # Errors
    /// This executable cannot be read.
    pub fn new(path: Option<&str>) -> io::Result<Self> {
        if let Some(path) = path {
            return Ok(Self::There(path.to_string()));
        }
        let path = std::env::current_exe()?;
        let bytes = stripped(fs::read(&path)?);
        let mut hasher = DefaultHasher::new();
        hasher.write(&bytes);
        let name = format!("larder-bench-{}-{:016x}", super::VERSION, hasher.finish());
        Ok(Self::Copied(Arc::new(Copy { path, bytes, name })))
    }

    /// Returns the script for the shell at a place.
    fn script(&self, place: &Place) -> String {
        let start = |program: &str| format!("{{\nexec {} agent\n}}\n", quote(program));
        match (self, place) {
            (Self::There(path), _) => start(path),
            (Self::Copied(copy), Place::Local) => start(&copy.path.to_string_lossy()),
            (Self::Copied(copy), Place::Remote { .. }) => {
                // The folder is ours alone, so a file with the right name in it is our own copy.
                let (name, size) = (&copy.name, copy.bytes.len());
                let wanted = "'\\nlarder-bench-wanted\\n'";
                format!(
                    "{{\numask 077\n\
                     d=${{TMPDIR:-/tmp}}/larder-bench-$(id -u)\n\
                     f=$d/{name}\n\
                     [ -d \"$d\" ] || mkdir \"$d\" 2>/dev/null\n\
                     if [ -L \"$d\" ] || [ ! -d \"$d\" ] || [ ! -O \"$d\" ]; then\n\
                     echo \"$d is not a folder of ours; give the program's path with --remote\" >&2\n\
                     exit 1\nfi\n\
                     if [ ! -x \"$f\" ]; then\n\
                     printf {wanted}\n\
                     head -c {size} >\"$f.$$\" && [ \"$(wc -c <\"$f.$$\")\" -eq {size} ] \
                     && chmod 700 \"$f.$$\" && mv -f \"$f.$$\" \"$f\" \
                     || {{ rm -f \"$f.$$\"; echo \"the copy to $d failed\" >&2; exit 1; }}\n\
                     fi\n\
                     exec \"$f\" agent\n}}\n"
                )
            }
        }
    }
}

/// A process that leads to a host, and its standard error.
#[derive(Debug)]
pub struct Remote {
    child: Child,
    said: Said,
}

/// The end of a process's standard error.
#[derive(Clone, Debug)]
pub struct Said {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// The two ends of a conversation with an agent.
#[derive(Debug)]
pub struct Line {
    /// To it.
    pub to: ChildStdin,
    /// From it.
    pub from: Frames<ChildStdout>,
}

impl Remote {
    /// Starts the command that leads to a shell at the host. It is not of our process group, so that a Ctrl-C
    /// at the terminal reaches us alone, and the agents can still be asked for their results.
    ///
    /// # Errors
    /// There is no such command.
    pub fn start(transport: &Transport, host: &Host) -> Result<(Self, Line), String> {
        let command = transport.shell(&host.place);
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("{}: {error}", command[0]))?;
        let missing = || "a pipe is missing".to_string();
        let to = child.stdin.take().ok_or_else(missing)?;
        let from = Frames::new(child.stdout.take().ok_or_else(missing)?);
        let said = Said::of(child.stderr.take().ok_or_else(missing)?);
        Ok((Self { child, said }, Line { to, from }))
    }

    /// Returns its standard error.
    pub fn said(&self) -> Said {
        self.said.clone()
    }

    /// Waits so long for it to end by itself, and ends it then.
    pub fn end(&mut self, patience: Duration) {
        let step = Duration::from_millis(5);
        for _ in 0..patience.as_millis() / step.as_millis() {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(step);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Line {
    /// Leads the shell to an agent, whose frames come next. `copying` is told when the program is
    /// sent there.
    ///
    /// # Errors
    /// It ended before, or printed something else; an empty message when it ended without a word.
    pub fn bring_up(
        &mut self,
        program: &Program,
        place: &Place,
        copying: impl FnOnce(),
    ) -> Result<(), String> {
        let in_words = |error: io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe => String::new(),
            _ => error.to_string(),
        };
        self.to.write_all(program.script(place).as_bytes()).map_err(in_words)?;
        self.to.flush().map_err(in_words)?;
        let mut marks = self.from.skip_to(&[MAGIC, WANTED], GREETING_BYTES_MAX).map_err(in_words)?;
        if let (Some(1), Program::Copied(copy)) = (marks, program) {
            copying();
            self.to.write_all(&copy.bytes).and_then(|()| self.to.flush()).map_err(in_words)?;
            marks = self.from.skip_to(&[MAGIC], GREETING_BYTES_MAX).map_err(in_words)?;
        }
        if marks == Some(0) { Ok(()) } else { Err(String::new()) }
    }
}

impl Said {
    fn of(mut from: ChildStderr) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bytes);
        let reader = thread::spawn(move || {
            let mut piece = [0; 1024];
            while let Ok(length @ 1..) = from.read(&mut piece) {
                let Ok(mut kept) = kept.lock() else { return };
                kept.extend_from_slice(&piece[..length]);
                let too_many = kept.len().saturating_sub(SAID_BYTES_MAX);
                kept.drain(..too_many);
            }
        });
        Self { bytes, reader: Arc::new(Mutex::new(Some(reader))) }
    }

    /// Its last line that is no blank one. Call it when the process is over or about to be.
    pub fn last_line(&self) -> Option<String> {
        // A connection that ssh keeps in the background may hold the pipe open, so the wait has a bound.
        for _ in 0..60 {
            let is_over = self.reader.lock().map_or(true, |r| r.as_ref().is_none_or(JoinHandle::is_finished));
            if is_over {
                break;
            }
            thread::sleep(Duration::from_millis(5));
        }
        let bytes = self.bytes.lock().ok()?.clone();
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.chars().filter(|c| !c.is_control()).take(300).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::host;

    #[test]
    fn a_host_that_can_not_be_reached_says_why() {
        let transport = Transport::parse("sh -c 'echo no way to {host} >&2; exit 255'").expect("a command");
        let hosts = host::parse("nowhere").expect("a host");
        let (mut remote, mut line) = Remote::start(&transport, &hosts[0]).expect("there is a sh");
        let program = Program::There("larder-bench".to_string());
        assert_eq!(line.bring_up(&program, &hosts[0].place, || ()), Err(String::new()));
        assert_eq!(remote.said().last_line().as_deref(), Some("no way to nowhere"));
        remote.end(Duration::from_secs(5));
    }

    #[test]
    fn the_program_is_copied_once_and_behind_any_greeting() {
        let folder = std::env::temp_dir().join(format!("larder-fleet-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let line = format!("env TMPDIR={} sh -c 'echo Welcome {{host}}; exec sh'", folder.display());
        let transport = Transport::parse(&line).expect("a command");
        let hosts = host::parse("here").expect("a host");
        let agent = b"#!/bin/sh\nprintf '\\nlarder-bench-agent\\n'; cat\n".to_vec();
        let copy = Copy { path: PathBuf::new(), bytes: agent, name: "larder-bench-test".to_string() };
        let program = Program::Copied(Arc::new(copy));
        for is_first in [true, false] {
            let (mut remote, mut line) = Remote::start(&transport, &hosts[0]).expect("there is a sh");
            let mut was_copied = false;
            let up = line.bring_up(&program, &hosts[0].place, || was_copied = true);
            assert_eq!((up, was_copied), (Ok(()), is_first), "{:?}", remote.said().last_line());
            crate::transport::frame::write(&mut line.to, &"hello").expect("it reads");
            assert_eq!(line.from.message::<String>().expect("an echo").as_deref(), Some("hello"));
            drop(line);
            remote.end(Duration::from_secs(5));
        }
        fs::remove_dir_all(&folder).expect("it is ours");
    }
}
