//! The loops as Perl itself runs them, with the modules that Debian has.

use super::value;
use crate::scenario::child::Child;
use crate::scenario::folder::Folder;
use crate::scenario::{Stage, host};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SCRIPT: &str = include_str!("loops.pl");
/// It needs a moment to begin and to end.
const MORE: Duration = Duration::from_secs(20);
/// The document kept its mapped files in memory; where there is no such place, they are where all files are.
const MEMORY: &str = "/dev/shm";

/// Where Perl keeps the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In a server behind a network.
    Remote,
    /// In a server beside it.
    Local,
    /// In a file in memory, by a module in Perl.
    Mmap,
    /// The same by a module in C.
    FastMmap,
}

impl Store {
    /// The module that does it.
    pub fn module(self) -> &'static str {
        match self {
            Self::Remote | Self::Local => "Cache::Memcached::Fast",
            Self::Mmap => "Cache::Mmap",
            Self::FastMmap => "Cache::FastMmap",
        }
    }

    /// Where a server of it is.
    pub fn place(self) -> &'static str {
        if self == Self::Local { "local" } else { "remote" }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Remote | Self::Local => "memcached",
            Self::Mmap => "mmap",
            Self::FastMmap => "fastmmap",
        }
    }
}

/// Debian's names of the modules.
const MODULES: [(&str, &str); 3] = [
    ("Cache::Memcached::Fast", "libcache-memcached-fast-perl"),
    ("Cache::Mmap", "libcache-mmap-perl"),
    ("Cache::FastMmap", "libcache-fastmmap-perl"),
];

/// The script's output.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// Iterations done.
    pub iterations: u64,
    /// How long they took.
    pub seconds: f64,
    /// Gets that found nothing.
    pub misses: u64,
    /// Gets that found something else.
    pub wrong: u64,
    /// Whether each iteration was a set, too.
    pub with_set: bool,
}

impl Ran {
    /// An iteration, in microseconds.
    pub fn iteration_us(&self) -> f64 {
        self.seconds * 1e6 / self.iterations.max(1) as f64
    }
}

/// Perl with the script's modules.
#[derive(Debug)]
pub struct Perl {
    program: PathBuf,
    script: PathBuf,
    page: PathBuf,
    modules: Vec<&'static str>,
    /// For mapped files.
    memory: Option<Folder>,
}

impl Perl {
    /// Perl, and which modules it has; those that it has not are noted.
    ///
    /// # Errors
    /// There is no Perl.
    pub fn find(stage: &mut Stage<'_>) -> Result<Self, String> {
        let program = host::program("perl", &[]).ok_or("there is no perl")?;
        let mut modules = Vec::new();
        for (module, package) in MODULES {
            if host::succeeds(&program, &[&format!("-M{module}"), "-e", "1"]) {
                modules.push(module);
            } else {
                stage.part.note(format!("{module} skipped: it is not installed (Debian: {package})"));
            }
        }
        let script = stage.folder().join("loops.pl");
        let page = stage.folder().join("page.html");
        std::fs::write(&script, SCRIPT).map_err(|e| e.to_string())?;
        std::fs::write(&page, value::page()).map_err(|e| e.to_string())?;
        let memory = Path::new(MEMORY).is_dir().then(|| Folder::new(Path::new(MEMORY)).ok()).flatten();
        if memory.is_none() {
            stage.part.note(format!("mapped files are not in {MEMORY}, which is not there"));
        }
        Ok(Self { program, script, page, modules, memory })
    }

    /// Whether it has a module.
    pub fn has(&self, module: &str) -> bool {
        self.modules.contains(&module)
    }

    /// Runs a loop for this many iterations, or so long. `before` are words of a command that runs it
    /// elsewhere.
    ///
    /// # Errors
    /// It failed, in words.
    #[expect(clippy::too_many_arguments, reason = "they are the script's own")]
    pub fn run(
        &self,
        stage: &Stage<'_>,
        store: Store,
        place: &str,
        before: &[String],
        with_set: bool,
        iterations: u64,
        time: Duration,
    ) -> Result<Ran, String> {
        let files = self.memory.as_ref().map_or(stage.folder(), Folder::path);
        let own = [
            self.program.display().to_string(),
            self.script.display().to_string(),
            store.word().to_string(),
            place.trim_start_matches("unix:").to_string(),
            self.page.display().to_string(),
            u8::from(with_set).to_string(),
            iterations.to_string(),
            time.as_secs_f64().to_string(),
            files.display().to_string(),
        ];
        let words: Vec<String> = before.iter().chain(&own).cloned().collect();
        let log = stage.folder().join(format!("{}-perl.log", stage.next_number()));
        let child = Child::start(stage.host, &stage.host.load_cpus, &words, &log, None)?;
        let said = child.finish(time + MORE, stage.stop)?;
        parse(&said, with_set).ok_or_else(|| format!("it printed {said:?}"))
    }
}

fn parse(line: &str, with_set: bool) -> Option<Ran> {
    let mut words = line.split_whitespace();
    Some(Ran {
        iterations: words.next()?.parse().ok()?,
        seconds: words.next()?.parse().ok()?,
        misses: words.next()?.parse().ok()?,
        wrong: words.next()?.parse().ok()?,
        with_set,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_line_is_read() {
        let ran = parse("1000 0.250000 3 0\n", false).expect("it is one");
        assert!((ran.iteration_us() - 250.0).abs() < 1e-9 && ran.misses == 3 && ran.wrong == 0);
        assert_eq!(parse("Can't locate", false), None);
    }
}
