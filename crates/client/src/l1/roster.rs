//! The roster: in which row of the statistics each process counts.
//!
//! ```text
//!  shared | 8 lines, for processes without a row
//!  row    | taken 32, pid 32 | birth | home | 5 unused    which process has it; pid 0 while it is being taken
//!         | 8 words                                       the counts of the row when the process took it
//!         | 8 lines                                       counts; a thread adds to one of them, by its id
//! ```
//! Counts are never set back: what a process counted is the difference to what its row had when it took it. So the row
//! of a process that has ended is taken over without a change to the sum, and a process that is killed while it takes
//! one leaves a row without a process.
//!
//! A process has a row while it lives, which others see by either of two signs: the process has locked a byte of the
//! file, which holds in all PID namespaces but ends when a library of the process closes the file; or `/proc` shows, in
//! the same namespace, a process with the same id and birth. A process of an earlier boot has another home.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::fence;

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use super::layout::{LANES, LINE, ROW};
use super::stats::{Counted, L1Process, L1Processes};
use super::{crash, sys};

/// Where in the file the locked bytes of rows begin: far behind its end, and behind those of `flight`.
const ROWS_AT: u64 = 1 << 41;
/// How often a row is read until no other process takes it meanwhile.
const LOOKS: u32 = 8;

/// Who a process is, among all that ever used the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    pid: u32,
    /// When it began, in clock ticks since the boot; 0 if that is unknown.
    birth: u64,
    /// A hash of the boot and the PID namespace; 0 if they are unknown.
    home: u64,
}

impl Identity {
    fn own(pid: u32) -> Identity {
        Identity { pid, birth: birth("self").unwrap_or(0), home: home().unwrap_or(0) }
    }

    fn is_known(&self) -> bool {
        self.birth != 0 && self.home != 0
    }
}

fn home() -> Option<u64> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::metadata("/proc/self/ns/pid").ok()?.ino();
    Some(rapidhash_v3_seeded(&boot, &RapidSecrets::seed(namespace)))
}

/// Returns when a process began, in clock ticks since the boot; `None` if there is none that still runs.
fn birth(pid: &str) -> Option<u64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything.
    let behind_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(&stat[behind_name..]).ok()?.split_ascii_whitespace();
    let runs = !matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| runs)
}

/// All rows of a file.
#[derive(Clone, Copy)]
pub(super) struct Roster<'a> {
    /// The lines that processes without a row share, and the rows behind them.
    words: &'a [AtomicU64],
    file: &'a File,
}

impl<'a> Roster<'a> {
    pub(super) fn new(words: &'a [AtomicU64], file: &'a File) -> Roster<'a> {
        Roster { words, file }
    }

    fn rows(self) -> impl Iterator<Item = Row<'a>> {
        let rows = self.words[LANES * LINE..].chunks_exact(ROW);
        rows.zip(0..).map(move |(words, nth)| Row { words, file: self.file, lock_at: ROWS_AT + nth })
    }

    /// Takes a row for this process: its own, if it had one before, or one of a process that has ended. Returns the
    /// number of the row's first line of counts; `None` if all rows have living processes, or the file cannot be
    /// locked.
    pub(super) fn take(self, pid: u32) -> Option<usize> {
        let me = Identity::own(pid);
        let is_own = |row: &Row<'_>| me.is_known() && row.owner() == Some(me) && row.lock();
        if let Some(nth) = self.rows().position(|row| is_own(&row)) {
            return Some(first_line(nth));
        }
        let nth = self.rows().position(|row| !row.lives(&me) && row.lock())?;
        self.rows().nth(nth)?.begin(&me);
        Some(first_line(nth))
    }

    /// Returns the counts of all processes together.
    pub(super) fn sum(self) -> Counted {
        let shared = Counted::in_lines(&self.words[..LANES * LINE]);
        self.rows().fold(shared, |sum, row| sum.plus(row.counted()))
    }

    /// Returns the counts of all living processes, of which this one counts from line `own` of the statistics on, and
    /// of all others.
    pub(super) fn by_process(self, pid: u32, own: Option<usize>) -> L1Processes {
        let me = Identity::own(pid);
        let mut others = Counted::in_lines(&self.words[..LANES * LINE]);
        let mut living = Vec::new();
        for (nth, row) in self.rows().enumerate() {
            let counted = row.counted();
            others = others.plus(counted);
            if let Some((pid, of_process)) = row.of_living(&me, own == Some(first_line(nth))) {
                others = others.minus(of_process);
                living.push(L1Process { pid, stats: of_process.stats() });
            }
        }
        living.sort_by_key(|process| process.pid);
        L1Processes { living, others: others.stats() }
    }
}

/// Returns the number of a row's first line of counts.
fn first_line(row: usize) -> usize {
    LANES + row * (ROW / LINE) + (ROW / LINE - LANES)
}

struct Row<'a> {
    words: &'a [AtomicU64],
    file: &'a File,
    lock_at: u64,
}

impl Row<'_> {
    fn owner(&self) -> Option<Identity> {
        let pid = self.words[0].load(Acquire) as u32;
        let [birth, home] = [1, 2].map(|at| self.words[at].load(Relaxed));
        (pid != 0).then_some(Identity { pid, birth, home })
    }

    fn lock(&self) -> bool {
        sys::lock_byte(self.file, self.lock_at).unwrap_or(false)
    }

    /// Returns whether another process has the row and lives.
    fn lives(&self, me: &Identity) -> bool {
        if sys::is_byte_locked(self.file, self.lock_at).unwrap_or(false) {
            return true;
        }
        let is_there = |owner: &Identity| birth(&owner.pid.to_string()) == Some(owner.birth);
        self.owner().is_some_and(|owner| owner.is_known() && owner.home == me.home && is_there(&owner))
    }

    /// Makes the row that of a process, which has locked its byte.
    fn begin(&self, me: &Identity) {
        let taken = (self.words[0].load(Acquire) >> 32).wrapping_add(1) << 32;
        crash::step();
        self.words[0].store(taken, Relaxed);
        fence(Release);
        let before = self.counted().words();
        for (word, value) in self.words[1..].iter().zip([me.birth, me.home]) {
            crash::step();
            word.store(value, Relaxed);
        }
        for (word, value) in self.words[LINE..].iter().zip(before) {
            crash::step();
            word.store(value, Relaxed);
        }
        crash::step();
        self.words[0].store(taken | u64::from(me.pid), Release);
    }

    /// Returns the counts of all processes that ever had the row.
    fn counted(&self) -> Counted {
        Counted::in_lines(&self.words[ROW - LANES * LINE..])
    }

    /// Returns the id and the counts of the process that has the row, if it lives.
    fn of_living(&self, me: &Identity, is_own: bool) -> Option<(u32, Counted)> {
        for _ in 0..LOOKS {
            let word = self.words[0].load(Acquire);
            let owner = self.owner()?;
            if !is_own && !self.lives(me) {
                return None;
            }
            let before = Counted::in_lines(&self.words[LINE..2 * LINE]);
            let counted = self.counted().minus(before);
            fence(Acquire);
            if self.words[0].load(Relaxed) == word {
                return Some((owner.pid, counted));
            }
        }
        None
    }
}

/// The place where a process counts in a file: its id, and the word of the file at which its lines begin. One
/// word, so that a forked child, which inherits it, sees that it is its parent's, and threads need no lock.
#[derive(Default)]
pub(super) struct Seat(AtomicU64);

impl Seat {
    /// Returns where the lines of this process begin; `None` if it has none yet. It costs a load and a comparison.
    #[inline]
    pub(super) fn lines_at(&self, process: u64) -> Option<usize> {
        let known = self.0.load(Relaxed);
        (known >> 32 == process).then_some(known as u32 as usize)
    }

    /// Takes a row at the first call of a process. Its other threads do not wait for that: they count in the shared
    /// lines meanwhile, as all do if there is no row left. The statistics begin at the word `stats_at`.
    #[cold]
    pub(super) fn take(&self, process: u64, roster: Roster<'_>, stats_at: usize) -> usize {
        let known = self.0.load(Acquire);
        let shared = process << 32 | stats_at as u64;
        let is_first =
            known >> 32 != process && self.0.compare_exchange(known, shared, AcqRel, Acquire).is_ok();
        let pid = u32::try_from(process).ok().filter(|_| is_first && !crate::simulation::is_simulated());
        match pid.and_then(|pid| roster.take(pid)) {
            Some(line) => {
                self.0.store(shared + (line * LINE) as u64, Release);
                stats_at + line * LINE
            }
            None => stats_at,
        }
    }
}
