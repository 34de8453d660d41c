//! The programs that are explored, and what may happen meanwhile.

use std::time::Duration;

use super::explore::{Op, Program, Thread};
use super::schedule::{Event, Limits};
use crate::tiered::{Push, TieredOptions, Unreachable};

use Event::{
    EvictAtHost, EvictAtServer, Hang, Kill, LoseLine, LoseReply, LoseRequest, Pass, Restart, TimeOut,
};
use Op::{Count, Delete, FailToCreate, Get, GetOrCreate, Invalidate, Listen, Pause, Set, SetForASecond};

/// A multiple of the coarse clock's tick: so the bound is exact although that clock lags.
const FRESH_MS: u64 = 1000;
const STALE_MS: u64 = 3000;
/// A pause after which a copy is stale, and in another second than the connection that it came by.
const LONG_MS: u64 = FRESH_MS + 100;

const OPTIONS: TieredOptions = TieredOptions {
    fresh: Duration::from_millis(FRESH_MS),
    stale: Duration::from_millis(STALE_MS),
    negative: Duration::ZERO,
    wait: Duration::from_millis(1000),
    lease: Duration::from_secs(2),
    early_percent: 0,
    unreachable: Unreachable::Error,
    push: None,
};
const NEGATIVE: TieredOptions = TieredOptions { negative: Duration::from_millis(400), ..OPTIONS };

/// The time after which an announcement is missed at the latest.
const SILENCE_MS: u64 = 400;
/// Only what is announced is used without asking.
const PUSH: TieredOptions = TieredOptions {
    fresh: Duration::ZERO,
    push: Some(Push {
        keep: Duration::from_secs(600),
        silence: Duration::from_millis(SILENCE_MS),
        exact_within: None,
    }),
    ..OPTIONS
};
/// The time within which reads are exact, whatever is late.
const WITHIN_MS: u64 = 100;
/// A little more than that.
const LATE_MS: u64 = WITHIN_MS + 20;
const EXACT: TieredOptions = TieredOptions {
    push: Some(Push {
        keep: Duration::from_secs(600),
        silence: Duration::from_millis(SILENCE_MS),
        exact_within: Some(Duration::from_millis(WITHIN_MS)),
    }),
    ..PUSH
};
/// Until then the listener has subscribed.
const BEGIN: Op = Pause(500);
/// Longer than a change may go unseen.
const LATER: Op = Pause(SILENCE_MS + 200);

const fn thread(host: usize, process: u64, ops: &'static [Op]) -> Thread {
    Thread { host, process, ops }
}

const fn limits(preemptions: u32, events: u32) -> Limits {
    Limits { preemptions, events, at_stores: false }
}

const ANY: usize = usize::MAX;

/// All programs. Their limits are those of a long exploration.
pub const PROGRAMS: &[Program] = &[
    Program {
        name: "reads beside a set",
        options: OPTIONS,
        setup: &[(0, Set), (2, Get)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get, Get]), thread(0, 2, &[Set, Get]), thread(1, 3, &[Get])],
        events: &[Pass(LONG_MS)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "reads beside a delete",
        options: OPTIONS,
        setup: &[(0, Set), (2, Get)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get, Get]), thread(0, 2, &[Delete, Get]), thread(1, 3, &[Get])],
        events: &[Pass(FRESH_MS)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "misses beside a set and a delete",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Get, Get]), thread(0, 2, &[Set, Delete]), thread(1, 3, &[Set])],
        events: &[],
        limits: limits(1, 0),
        creations_max: ANY,
    },
    Program {
        name: "two writers of a host",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Set, Get]), thread(0, 2, &[Set, Get])],
        events: &[EvictAtHost, EvictAtServer],
        limits: limits(2, 1),
        creations_max: ANY,
    },
    Program {
        name: "two threads of a process",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get, Delete, Get]), thread(0, 1, &[Get, Set, Get])],
        events: &[],
        limits: limits(2, 0),
        creations_max: ANY,
    },
    Program {
        name: "other hosts read in time",
        options: OPTIONS,
        setup: &[(0, Set), (1, Get)],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Set, Delete]), thread(1, 2, &[Get, Get, Get])],
        events: &[Pass(600)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "a missing key is known to be absent",
        options: NEGATIVE,
        setup: &[(0, Get)],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Get]), thread(0, 2, &[Set, Get]), thread(1, 3, &[Set])],
        events: &[Pass(500)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "an absent key is set elsewhere",
        options: NEGATIVE,
        setup: &[(0, Get)],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Get, Get]), thread(1, 2, &[Set])],
        events: &[Pass(500)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "one value is created for all",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[GetOrCreate]), thread(0, 2, &[GetOrCreate]), thread(1, 3, &[GetOrCreate])],
        events: &[],
        limits: limits(1, 0),
        creations_max: 1,
    },
    Program {
        name: "a creation that fails",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[FailToCreate, Get]), thread(1, 2, &[Set, GetOrCreate])],
        events: &[],
        limits: limits(2, 0),
        creations_max: 2,
    },
    Program {
        name: "a creation beside a set",
        options: NEGATIVE,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[GetOrCreate, Get]), thread(0, 2, &[Get]), thread(1, 3, &[Set, Delete])],
        events: &[],
        limits: limits(1, 0),
        creations_max: ANY,
    },
    Program {
        name: "a set while a value is created",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[GetOrCreate, Get]), thread(1, 2, &[Set, Get])],
        events: &[Pass(LONG_MS)],
        limits: limits(2, 1),
        creations_max: 1,
    },
    Program {
        name: "a creation beside reads",
        options: NEGATIVE,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Get]), thread(0, 2, &[Get]), thread(0, 3, &[GetOrCreate, Get])],
        events: &[TimeOut, EvictAtHost],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "a creation that is given up",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[GetOrCreate, Get]), thread(1, 2, &[GetOrCreate, Get])],
        events: &[Kill, Pass(2000)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "an item marked stale is created again",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[GetOrCreate, Get]), thread(0, 2, &[Get]), thread(1, 3, &[Invalidate])],
        events: &[],
        limits: limits(1, 0),
        creations_max: ANY,
    },
    Program {
        name: "an item is marked stale while its value is created",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[GetOrCreate, Get]), thread(1, 2, &[Invalidate, Get])],
        events: &[Pass(LONG_MS)],
        limits: limits(2, 1),
        creations_max: ANY,
    },
    Program {
        name: "the server is restarted",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get, Get]), thread(1, 2, &[Set, Set])],
        events: &[Restart, Pass(LONG_MS)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "requests and replies are lost",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get, Get]), thread(0, 2, &[Set, Get])],
        events: &[LoseRequest, LoseReply, TimeOut],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "deletes are lost",
        options: OPTIONS,
        setup: &[(0, Set), (1, Get)],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Delete, Get, Set, Get]), thread(0, 2, &[Get])],
        events: &[LoseRequest, LoseReply, TimeOut],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "a process is killed while it renews",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Get]), thread(0, 2, &[Get, Get])],
        events: &[Kill, Pass(100)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "a process is killed while it creates",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[GetOrCreate]), thread(0, 2, &[GetOrCreate, GetOrCreate])],
        events: &[Kill, Pass(100)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "a process is killed anywhere",
        options: OPTIONS,
        setup: &[(0, Set)],
        pause_ms: LONG_MS,
        threads: &[thread(0, 1, &[Set]), thread(0, 2, &[Delete, Get])],
        events: &[Kill],
        limits: Limits { preemptions: 1, events: 1, at_stores: true },
        creations_max: ANY,
    },
    Program {
        name: "items that live for a second",
        options: OPTIONS,
        setup: &[(1, SetForASecond)],
        pause_ms: 500,
        threads: &[thread(0, 1, &[Get, Get]), thread(1, 2, &[SetForASecond, Get])],
        events: &[Pass(600)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "two processes on each of two hosts",
        options: NEGATIVE,
        setup: &[(0, Set), (2, Get)],
        pause_ms: LONG_MS,
        threads: &[
            thread(0, 1, &[Get, Get]),
            thread(0, 2, &[Set, Get]),
            thread(1, 3, &[Get, Get]),
            thread(1, 4, &[Delete, Get]),
        ],
        events: &[Pass(500), EvictAtHost],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "everything at once",
        options: NEGATIVE,
        setup: &[(0, Set)],
        pause_ms: 500,
        threads: &[
            thread(0, 1, &[Get, GetOrCreate, Get]),
            thread(0, 2, &[Set, Get, Delete, Get]),
            thread(1, 3, &[GetOrCreate, Set, Get]),
            thread(1, 3, &[Invalidate, FailToCreate, Get]),
        ],
        events: &[Pass(600), LoseRequest, LoseReply, TimeOut, EvictAtServer, EvictAtHost, Restart, Kill],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "changes are announced",
        options: PUSH,
        setup: &[(2, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, Get, Get, LATER, Get]),
            thread(1, 3, &[BEGIN, Set]),
        ],
        events: &[Pass(SILENCE_MS + 300), LoseLine, Hang],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "an answer is read late",
        options: PUSH,
        setup: &[(1, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Pause(450), Get, Pause(60), Get]),
            thread(1, 3, &[BEGIN, Set]),
        ],
        events: &[Pass(SILENCE_MS + 300)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "an announcement overtakes a reply",
        options: PUSH,
        setup: &[(3, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, Get, Get]),
            thread(0, 3, &[BEGIN, Pause(1), Get]),
            thread(1, 4, &[BEGIN, Set]),
        ],
        events: &[Pass(10), LoseReply],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "a host changes what is announced to it",
        options: PUSH,
        setup: &[(1, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, Get, Set, Get]),
            thread(0, 3, &[BEGIN, Get, Delete, Get]),
        ],
        events: &[Hang, TimeOut],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "a created value is announced",
        options: PUSH,
        setup: &[],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, GetOrCreate, Get]),
            thread(1, 3, &[BEGIN, GetOrCreate, Set]),
        ],
        events: &[Pass(10), LoseLine],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "the process that listens is killed",
        options: PUSH,
        setup: &[(3, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Listen]),
            thread(0, 2, &[BEGIN, Get, LATER, Get, Pause(1000), Get]),
            thread(1, 3, &[BEGIN, Set, LATER, Set]),
        ],
        events: &[Kill, Hang],
        limits: limits(0, 2),
        creations_max: ANY,
    },
    Program {
        name: "the server that announces is restarted",
        options: PUSH,
        setup: &[(2, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, Get, Get, LATER, Get, Get]),
            thread(1, 3, &[BEGIN, Set, LATER, Set]),
        ],
        events: &[Restart, LoseLine, Pass(100)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "the listener or a reader is late",
        options: EXACT,
        setup: &[(2, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Pause(450), Get, Pause(25), Get]),
            thread(1, 3, &[Pause(470), Set]),
        ],
        events: &[Pass(LATE_MS)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "the answer to a beat is read late",
        options: EXACT,
        setup: &[(1, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Pause(450), Get, Pause(51), Get]),
            thread(1, 3, &[BEGIN, Set]),
        ],
        events: &[Pass(LATE_MS)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "the line that announces falls silent",
        options: EXACT,
        setup: &[(2, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[BEGIN, Get, Pause(30), Get, Pause(LATE_MS), Get]),
            thread(1, 3, &[BEGIN, Pause(20), Set]),
        ],
        events: &[Hang, LoseLine, Pass(LATE_MS)],
        limits: limits(1, 2),
        creations_max: ANY,
    },
    Program {
        name: "two readers find that the listener is late",
        options: EXACT,
        setup: &[(3, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Pause(450), Get, Pause(25), Get]),
            thread(0, 3, &[Pause(476), Get]),
            thread(1, 4, &[Pause(470), Set]),
        ],
        events: &[Pass(LATE_MS)],
        limits: limits(1, 1),
        creations_max: ANY,
    },
    Program {
        name: "another process announces what the killed one did not",
        options: EXACT,
        setup: &[(3, Set)],
        pause_ms: 0,
        threads: &[
            thread(0, 1, &[Listen]),
            thread(0, 2, &[Listen]),
            thread(0, 2, &[Pause(900), Get, Pause(2 * LATE_MS), Get]),
            thread(1, 3, &[Pause(905), Set]),
        ],
        events: &[Kill],
        limits: limits(0, 1),
        creations_max: ANY,
    },
    Program {
        name: "counts",
        options: OPTIONS,
        setup: &[],
        pause_ms: 0,
        threads: &[thread(0, 1, &[Count, Count]), thread(0, 2, &[Count]), thread(1, 3, &[Count])],
        events: &[LoseRequest, LoseReply],
        limits: limits(1, 1),
        creations_max: ANY,
    },
];

/// Returns the program with this name.
pub fn program(name: &str) -> &'static Program {
    PROGRAMS.iter().find(|program| program.name == name).expect("a program")
}
