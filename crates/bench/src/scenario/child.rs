//! A program that was started for a scenario, and is ended by its own process id when its owner is dropped.

use super::Host;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long it may take to end by itself: a database has to put things in order.
const GOODBYE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(5);
/// How much of its log is quoted.
const WORDS_MAX: usize = 300;

/// A program that was started.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    name: String,
    log: PathBuf,
}

impl Child {
    /// Starts `words` on `cpus`; its output goes to the file `log`. It is in a process group of its own, so
    /// that a Ctrl-C at the terminal reaches us alone. `identity` are the user and group to become.
    ///
    /// # Errors
    /// It cannot be started, in words.
    pub fn start(
        host: &Host,
        cpus: &[usize],
        words: &[String],
        log: &Path,
        identity: Option<(u32, u32)>,
    ) -> Result<Self, String> {
        let name = words.first().cloned().unwrap_or_default();
        let failed = |error: std::io::Error| format!("{name} cannot be started: {error}");
        let out = File::create(log).map_err(failed)?;
        let error = out.try_clone().map_err(failed)?;
        let mut command = Command::new(&name);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(out).stderr(error).process_group(0);
        // The user's own settings would change the comparison.
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_setting(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        if let Some(folder) = log.parent() {
            command.current_dir(folder);
        }
        if let Some((user, group)) = identity {
            command.uid(user).gid(group);
        }
        let process = host.pinned(cpus, || command.spawn()).map_err(failed)?;
        Ok(Self { process, name: name.clone(), log: log.to_path_buf() })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().ok().flatten()
    }

    /// Returns its output, shortened.
    pub fn words(&self) -> String {
        let text = self.output();
        let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let skipped = line.chars().count().saturating_sub(WORDS_MAX);
        line.chars().skip(skipped).collect()
    }

    /// Returns its output.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until it is ready.
    ///
    /// # Errors
    /// It ended, took longer than `patience`, or `stop` was asked for; in words.
    pub fn wait_until(
        &mut self,
        patience: Duration,
        stop: &AtomicBool,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return Err(format!("{} ended with {status}: {}", self.name, self.words()));
            }
            if is_ready() {
                return Ok(());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(format!("stopped while {} started", self.name));
            }
            if Instant::now() > until {
                return Err(format!(
                    "{} was not ready after {} s: {}",
                    self.name,
                    patience.as_secs(),
                    self.words()
                ));
            }
            thread::sleep(STEP);
        }
    }

    /// Waits for its end, and returns its output.
    ///
    /// # Errors
    /// It ended badly, took longer than `patience` or `stop` was asked for; in words.
    pub fn finish(mut self, patience: Duration, stop: &AtomicBool) -> Result<String, String> {
        let until = Instant::now() + patience;
        loop {
            match self.ended() {
                Some(status) if status.success() => return Ok(self.output()),
                Some(status) => return Err(format!("{} ended with {status}: {}", self.name, self.words())),
                None if stop.load(Ordering::Relaxed) => {
                    return Err(format!("stopped while {} ran", self.name));
                }
                None if Instant::now() > until => {
                    return Err(format!("{} did not end in {} s", self.name, patience.as_secs()));
                }
                None => thread::sleep(STEP),
            }
        }
    }
}

fn is_setting(name: &str) -> bool {
    ["LARDER_", "MEMCACHED_", "PG", "MYSQL_", "MARIADB_"].iter().any(|prefix| name.starts_with(prefix))
}

impl Drop for Child {
    fn drop(&mut self) {
        // One that ended is not signalled: its number may be another's by now.
        let Some(pid) = Pid::from_raw(self.process.id() as i32).filter(|_| self.ended().is_none()) else {
            return;
        };
        let _ = kill_process(pid, Signal::TERM);
        let until = Instant::now() + GOODBYE;
        while Instant::now() < until {
            if self.ended().is_some() {
                return;
            }
            thread::sleep(STEP);
        }
        // Its state is not needed any more, and its own children end with it.
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::folder::Folder;

    fn start(folder: &Folder, script: &str) -> Child {
        let words = ["sh", "-c", script].map(str::to_string);
        Child::start(&Host::default(), &[], &words, &folder.path().join("log"), None)
            .expect("there is a shell")
    }

    #[test]
    fn its_end_and_its_words_are_told() {
        let folder = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let go = AtomicBool::new(false);
        let patience = Duration::from_secs(20);
        assert_eq!(start(&folder, "echo said").finish(patience, &go), Ok("said\n".to_string()));
        let bad = start(&folder, "echo why; exit 3").finish(patience, &go).expect_err("it ended with 3");
        assert!(bad.contains("why") && bad.contains('3'), "{bad}");
        let early = start(&folder, "exit 0").wait_until(patience, &go, || false).expect_err("it is gone");
        assert!(early.contains("ended"), "{early}");
    }

    #[test]
    fn settings_of_servers_are_told_from_others() {
        assert!(is_setting("LARDER_MEMORY_LIMIT") && is_setting("PGPORT"));
        assert!(!is_setting("PATH") && !is_setting("TMPDIR"));
    }

    #[test]
    fn it_ends_with_its_owner() {
        let folder = Folder::new(&std::env::temp_dir()).expect("there is a temporary folder");
        let child = start(&folder, "sleep 1000");
        let proc = format!("/proc/{}", child.pid());
        assert!(Path::new(&proc).exists());
        drop(child);
        assert!(!Path::new(&proc).exists());
        let stop = AtomicBool::new(true);
        let why =
            start(&folder, "sleep 1000").finish(Duration::from_secs(20), &stop).expect_err("it was stopped");
        assert!(why.contains("stopped"), "{why}");
    }
}
