//! The seam between the client and the kernel: a unit test may simulate time, sleep, sockets and processes.
//!
//! Outside of this crate's unit tests every function returns a constant and costs no instruction.

#[cfg(test)]
use std::cell::RefCell;
use std::io;
#[cfg(test)]
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use socket2::Socket;

/// A rule that a test breaks on purpose, to show that the loss would be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A fetched value is stored whatever its ticket says.
    TicketIgnored,
    /// A delete leaves the version of its key, so that earlier tickets stay good.
    DeleteKeepsVersion,
    /// "Unchanged" is taken from a connection that is younger than the copy.
    UnchangedOverReconnect,
    /// An entry is fresh from the moment when its reply came.
    FreshFromReply,
    /// A set that may not keep its value leaves the entry that is there.
    RefusedSetKeepsEntry,
    /// A value is created without the server's lease.
    NoLease,
    /// The absence of a key is kept for as long as a value.
    AbsenceAsFresh,
    /// A created value that may not be kept leaves the entry that is there.
    RefusedCreationKeepsEntry,
    /// A created value is stored whatever was stored meanwhile.
    CreationReplacesNewer,
    /// A creation that failed deletes whatever was stored meanwhile.
    FailedCreationDeletesNewer,
    /// An empty item that stands for a value is taken for one.
    EmptyItemIsValue,
    /// The key of an announced change keeps its version, so that earlier tickets stay good.
    ForgetKeepsVersion,
    /// A server is taken to announce from when its answer came, and not from when it was asked.
    FeedFromAnswer,
    /// A beat is the time at which an answer came, and not at which it was asked for.
    BeatFromAnswer,
    /// An entry is exact by the beat of another feed.
    BeatOfAnyFeed,
    /// A reader does not look whether the entry is still there after it has looked at the beat.
    BeatNotLookedBehind,
    /// A value that is not exact is used while another one renews it.
    InexactBesideRenewal,
    /// The simulated server notes a lease after it has read the item.
    #[cfg(test)]
    LeaseAfterRead,
    /// The simulated server loses an announcement, and the connection stays.
    #[cfg(test)]
    AnnouncementLost,
    /// The fetch of a process that was killed is not taken over by readers that have a stale value.
    DeadRenewalStays,
}

/// What a test puts in place of the kernel, for one thread.
pub trait World {
    /// Returns the time in milliseconds.
    fn now_ms(&self) -> u64;
    /// Lets other threads go on.
    fn step(&self);
    /// Lets other threads go on, before a store to shared memory.
    fn store(&self);
    /// Waits for so long.
    fn sleep(&self, time: Duration);
    /// Waits until a thread of the host wakes those that wait, or for so long. Returns whether it was woken.
    fn wait(&self, time: Duration) -> bool;
    /// Wakes all threads of the host that wait.
    fn wake(&self);
    /// Returns one end of a connection.
    fn connect(&self) -> io::Result<Socket>;
    /// Waits until a connection of the thread's process can be read, or has broken.
    fn wait_for_reply(&self, fd: i32);
    /// Waits until a connection of the thread's process has something to read, or for so long.
    fn listen(&self, fd: i32, time: Duration);
    /// Returns whether nothing but threads that listen is left.
    fn is_over(&self) -> bool;
    /// Returns the id of the thread's process.
    fn process(&self) -> u64;
    /// Locks a byte of the host's file for the thread's process. Returns whether it was free.
    fn lock_byte(&self, at: u64) -> bool;
    /// Returns whether another process has locked a byte of the host's file.
    fn is_byte_locked(&self, at: u64) -> bool;
    /// Returns whether the thread's process is being killed.
    fn is_killed(&self) -> bool;
    /// Returns whether a rule is broken.
    fn is_broken(&self, fault: Fault) -> bool;
}

#[cfg(test)]
thread_local! {
    static WORLD: RefCell<Option<Rc<dyn World>>> = const { RefCell::new(None) };
}

/// Puts this thread into a simulated world, until the next call.
#[cfg(test)]
pub fn enter(world: Option<Rc<dyn World>>) {
    WORLD.set(world);
}

#[inline(always)]
fn ask<T>(question: impl FnOnce(&dyn World) -> T) -> Option<T> {
    #[cfg(test)]
    {
        let world = WORLD.with_borrow(Clone::clone);
        world.map(|world| question(&*world))
    }
    #[cfg(not(test))]
    {
        let _ = question;
        None
    }
}

/// Returns the simulated time in milliseconds.
#[inline(always)]
pub fn now_ms() -> Option<u64> {
    ask(|world| world.now_ms())
}

/// How often the simulated coarse clock advances, in milliseconds.
const TICK_MS: u64 = 10;

/// Returns the simulated time in milliseconds, as of the last tick of the coarse clock.
#[inline(always)]
pub fn coarse_now_ms() -> Option<u64> {
    now_ms().map(|now_ms| now_ms / TICK_MS * TICK_MS)
}

/// Returns the simulated time as an instant.
#[inline(always)]
pub fn now() -> Option<Instant> {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    now_ms().map(|now_ms| *BEGIN.get_or_init(Instant::now) + Duration::from_millis(now_ms))
}

/// Lets other simulated threads go on.
#[inline(always)]
pub fn step() {
    ask(|world| world.step());
}

/// Lets other simulated threads go on, before a store to shared memory.
#[inline(always)]
pub fn store() {
    ask(|world| world.store());
}

/// Waits for so long if time is simulated. Returns whether it is.
#[inline(always)]
pub fn sleep(time: Duration) -> bool {
    ask(|world| world.sleep(time)).is_some()
}

/// Waits while the low half of a word has not changed, until it is woken or `time` is over. Returns whether it was
/// woken; `None` if there is no simulation.
#[inline(always)]
pub fn wait(word: &AtomicU64, seen: u32, time: Duration) -> Option<bool> {
    ask(|world| word.load(std::sync::atomic::Ordering::Acquire) as u32 != seen || world.wait(time))
}

/// Wakes the simulated threads of the host.
#[inline(always)]
pub fn wake() -> bool {
    ask(|world| world.wake()).is_some()
}

/// Returns a simulated connection.
#[inline(always)]
pub fn connect() -> Option<io::Result<Socket>> {
    ask(|world| world.connect())
}

/// Waits until a simulated connection can be read.
#[inline(always)]
pub fn wait_for_reply(fd: i32) {
    ask(|world| world.wait_for_reply(fd));
}

/// Waits until a simulated connection has something to read, or for so long. Returns whether it is simulated.
#[inline(always)]
pub fn listen(fd: i32, time: Duration) -> bool {
    ask(|world| world.listen(fd, time)).is_some()
}

/// Returns whether nothing but simulated threads that listen is left.
#[inline(always)]
pub fn is_over() -> bool {
    ask(|world| world.is_over()).unwrap_or(false)
}

/// Returns the id of the simulated process.
#[inline(always)]
pub fn process() -> Option<u64> {
    ask(|world| world.process())
}

/// Returns whether processes are simulated.
pub fn is_simulated() -> bool {
    process().is_some()
}

/// Locks a byte for the simulated process. Returns whether it was free.
#[inline(always)]
pub fn lock_byte(at: u64) -> Option<bool> {
    ask(|world| world.lock_byte(at))
}

/// Returns whether another simulated process has locked a byte.
#[inline(always)]
pub fn is_byte_locked(at: u64) -> Option<bool> {
    ask(|world| world.is_byte_locked(at))
}

/// Returns whether the simulated process is being killed.
#[inline(always)]
pub fn is_killed() -> bool {
    ask(|world| world.is_killed()).unwrap_or(false)
}

/// Returns whether a test has broken a rule.
#[inline(always)]
pub fn is_broken(fault: Fault) -> bool {
    ask(|world| world.is_broken(fault)).unwrap_or(false)
}
