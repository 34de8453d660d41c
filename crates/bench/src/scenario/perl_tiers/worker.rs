//! The programs that run the loops: Perl with the modules that Debian has, a program of Larder's client, Python.

use super::row::{Loop, Row, Worker};
use crate::scenario::child::Child;
use crate::scenario::folder::Folder;
use crate::scenario::{Stage, host};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PERL: &str = include_str!("loops.pl");
const PYTHON: &str = include_str!("loops.py");
/// The driver, which is built beside this program.
const DRIVER: &str = "examples/tier_loops";
/// A program needs a moment to begin and to end.
const MORE: Duration = Duration::from_secs(20);
/// The document kept its mapped files in memory; where there is no such place, they are where all files are.
const MEMORY: &str = "/dev/shm";

/// Where to get the modules.
const MODULES: [(&str, &str); 5] = [
    ("Cache::Memcached::Fast", "Debian: libcache-memcached-fast-perl"),
    ("Cache::Mmap", "Debian: libcache-mmap-perl"),
    ("Cache::FastMmap", "Debian: libcache-fastmmap-perl"),
    ("diskcache", "pip install diskcache, and --python with the path of that Python"),
    ("larder", "the wheel larder-cache, and --python with the path of that Python"),
];

/// A worker's output.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ran {
    /// Iterations done.
    pub iterations: u64,
    /// How long they took.
    pub seconds: f64,
    /// Gets that found nothing.
    pub misses: u64,
    /// Gets that found something else.
    pub wrong: u64,
    /// Gets that found the value near.
    pub near: u64,
    /// Gets that asked the remote server.
    pub far: u64,
}

impl Ran {
    /// An iteration, in microseconds.
    pub fn iteration_us(&self) -> f64 {
        self.seconds * 1e6 / self.iterations.max(1) as f64
    }
}

/// What a loop runs with.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Iterations at most.
    pub iterations: u64,
    /// Time at most.
    pub time: Duration,
    /// The file with the value.
    pub value: &'a Path,
    /// The local server; empty for none.
    pub near: String,
    /// The remote server; empty for none.
    pub far: String,
    /// Words of a command that runs another one elsewhere; empty for here.
    pub before: Vec<String>,
}

/// The workers that there are.
#[derive(Debug)]
pub struct Workers {
    /// Each with the words that start it.
    programs: Vec<(Worker, Vec<String>)>,
    modules: Vec<&'static str>,
    /// For mapped files.
    memory: Option<Folder>,
}

impl Workers {
    /// Finds them, and which modules they have; what is not there is noted.
    ///
    /// # Errors
    /// Their scripts cannot be written; in words.
    pub fn find(stage: &mut Stage<'_>) -> Result<Self, String> {
        let memory = Path::new(MEMORY).is_dir().then(|| Folder::new(Path::new(MEMORY)).ok()).flatten();
        if memory.is_none() {
            stage.part.note(format!("mapped files are not in {MEMORY}, which is not there"));
        }
        let mut workers = Self { programs: Vec::new(), modules: Vec::new(), memory };
        let scripts = [
            (Worker::Perl, "perl", "loops.pl", PERL, None),
            (Worker::Python, "python3", "loops.py", PYTHON, stage.options.wanted.python.clone()),
        ];
        for (worker, name, file, text, given) in scripts {
            let script = stage.folder().join(file);
            std::fs::write(&script, text).map_err(|e| e.to_string())?;
            match given.or_else(|| host::program(name, &[])) {
                Some(program) => {
                    workers.modules.extend(modules(stage, worker, &program));
                    let words = [&program, &script].map(|path| path.display().to_string());
                    workers.programs.push((worker, words.to_vec()));
                }
                None => stage.part.note(format!("{name} skipped: it is not installed")),
            }
        }
        match driver(stage.options.wanted.driver.clone()) {
            Some(path) => workers.programs.push((Worker::Driver, vec![path.display().to_string()])),
            None => stage.part.note(format!(
                "Larder's client skipped: {DRIVER} is not beside this program (cargo build --release -p \
                 larder-client --example tier_loops, or --driver PATH)"
            )),
        }
        Ok(workers)
    }

    /// Whether a row's program and modules are there.
    pub fn can_run(&self, row: &Row) -> bool {
        self.words_of(row.worker).is_some() && row.modules.iter().all(|module| self.modules.contains(module))
    }

    fn words_of(&self, worker: Worker) -> Option<&[String]> {
        self.programs.iter().find(|(other, _)| *other == worker).map(|(_, words)| words.as_slice())
    }

    /// Runs a loop of a row.
    ///
    /// # Errors
    /// The program failed or a stop was asked for, in words.
    pub fn run(&self, stage: &Stage<'_>, row: &Row, which: Loop, job: &Job<'_>) -> Result<Ran, String> {
        let files = self.memory.as_ref().map_or(stage.folder(), Folder::path);
        let own = [
            row.store.to_string(),
            which.name().to_string(),
            job.iterations.to_string(),
            job.time.as_secs_f64().to_string(),
            job.value.display().to_string(),
            files.display().to_string(),
            format!("larder-bench:page:{}", std::process::id()),
            job.near.trim_start_matches("unix:").to_string(),
            job.far.trim_start_matches("unix:").to_string(),
        ];
        let program = self.words_of(row.worker).unwrap_or_default();
        let words: Vec<String> = job.before.iter().chain(program).chain(&own).cloned().collect();
        let log = stage.folder().join("worker.log");
        let child = Child::start(stage.host, &stage.host.load_cpus, &words, &log, None)?;
        let output = child.finish(job.time + MORE, stage.stop)?;
        parse(&output).ok_or_else(|| format!("it printed {output:?}"))
    }
}

/// The modules that a script's interpreter has.
fn modules(stage: &mut Stage<'_>, worker: Worker, program: &Path) -> Vec<&'static str> {
    let mut there = Vec::new();
    for (module, source) in MODULES.into_iter().filter(|(name, _)| worker_of(name) == worker) {
        let found = match worker {
            Worker::Python => host::succeeds(program, &["-c", &format!("import {module}")]),
            _ => host::succeeds(program, &[&format!("-M{module}"), "-e", "1"]),
        };
        if found {
            there.push(module);
        } else {
            stage.part.note(format!("{module} skipped: it is not installed ({source})"));
        }
    }
    there
}

fn worker_of(module: &str) -> Worker {
    if module.contains("::") { Worker::Perl } else { Worker::Python }
}

/// The driver: the one given, else where cargo puts it beside this program.
fn driver(given: Option<PathBuf>) -> Option<PathBuf> {
    let built = || Some(std::env::current_exe().ok()?.parent()?.join(DRIVER));
    given.or_else(built).filter(|path| path.is_file())
}

fn parse(line: &str) -> Option<Ran> {
    let mut words = line.split_whitespace();
    let ran = Ran {
        iterations: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        misses: words.next()?.parse().ok()?,
        wrong: words.next()?.parse().ok()?,
        near: words.next()?.parse().ok()?,
        far: words.next()?.parse().ok()?,
    };
    words.next().is_none().then_some(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_line_is_read() {
        let ran = parse("1000 0.250000 3 0 997 3\n").expect("it is one");
        assert!((ran.iteration_us() - 250.0).abs() < 1e-9);
        assert_eq!((ran.misses, ran.wrong, ran.near, ran.far), (3, 0, 997, 3));
        assert_eq!(parse("Can't locate"), None);
        assert_eq!(parse("1000 0.25 3 0 997"), None);
        assert_eq!(parse("1000 0.25 3 0 997 3 4"), None);
    }
}
