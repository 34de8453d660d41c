//! Processes and threads as the kernel knows them: ids that stay right after a fork, the lock that a thread
//! holds in case it is killed, the bytes of a file that a process has locked for its lifetime, and how soon a thread
//! runs after it has been woken.

use std::cell::Cell;
use std::ffi::{c_long, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, compiler_fence};
use std::time::Duration;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;

use super::mapping;
use crate::simulation;

/// A page that the kernel zeroes in the child of a fork; it holds the id of the process.
static FORK_PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();

/// The kernel's `struct robust_list_head` of a thread.
#[repr(C)]
struct RobustList {
    first: *mut c_void,
    futex_offset: c_long,
    pending: *mut c_void,
}

/// A thread as the kernel knows it.
#[derive(Clone, Copy)]
struct Thread {
    /// The process in which this was found out: 0 before.
    process: u64,
    id: u32,
    robust_list: *mut RobustList,
}

const UNKNOWN: Thread = Thread { process: 0, id: 0, robust_list: ptr::null_mut() };

thread_local! {
    static THREAD: Cell<Thread> = const { Cell::new(UNKNOWN) };
}

fn new_fork_page() -> Option<&'static AtomicU64> {
    const BYTES: usize = 4096;
    // SAFETY: a null hint lets the kernel choose free addresses, so no existing memory is replaced.
    let page = unsafe {
        mmap_anonymous(ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    }
    .ok()?;
    // SAFETY: exactly the page just mapped. It is unmapped only where no reference to it was made; otherwise it
    // stays mapped for ever, zeroed memory that begins with an aligned and valid AtomicU64.
    unsafe {
        if madvise(page, BYTES, Advice::LinuxWipeOnFork).is_err() {
            let _ = munmap(page, BYTES);
            return None;
        }
        Some(&*page.cast::<AtomicU64>())
    }
}

/// Returns the id of this process. It costs a load, also after a fork.
#[inline]
pub(super) fn process() -> u64 {
    if let Some(process) = simulation::process() {
        return process;
    }
    let page = *FORK_PAGE.get_or_init(new_fork_page);
    match page.map_or(0, |page| page.load(Relaxed)) {
        0 => first_process(page),
        process => process,
    }
}

#[cold]
fn first_process(page: Option<&AtomicU64>) -> u64 {
    let process = u64::from(std::process::id());
    if let Some(page) = page {
        page.store(process, Relaxed);
    }
    process
}

/// Returns this thread; asks the kernel only at first and after a fork.
#[inline]
fn thread() -> Thread {
    let thread = THREAD.get();
    let process = process();
    if thread.process == process { thread } else { first_thread(process) }
}

#[cold]
fn first_thread(process: u64) -> Thread {
    let id = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let thread = Thread { process, id, robust_list: robust_list() };
    THREAD.set(thread);
    thread
}

/// Returns the list of robust futexes that the C library has registered for this thread, or registers one.
fn robust_list() -> *mut RobustList {
    let mut list: *mut RobustList = ptr::null_mut();
    let mut bytes: usize = 0;
    // SAFETY: the call asks for the calling thread (0) and writes a pointer and a size to the two locations.
    let status = unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut list, &raw mut bytes) };
    if status == 0 && !list.is_null() && bytes == size_of::<RobustList>() {
        return list;
    }
    // Not freed: the kernel reads it when the thread ends, after the program could free it.
    let own =
        Box::leak(Box::new(RobustList { first: ptr::null_mut(), futex_offset: 0, pending: ptr::null_mut() }));
    own.first = ptr::from_mut(own).cast();
    // SAFETY: `own` is a valid, empty list (it leads to itself) that lives as long as the program.
    let status =
        unsafe { libc::syscall(libc::SYS_set_robust_list, ptr::from_mut(own), size_of::<RobustList>()) };
    if status == 0 { own } else { ptr::null_mut() }
}

/// Returns the ids of this process and of this thread. It costs the loads of one of them.
#[inline]
pub(super) fn ids() -> (u64, u32) {
    let thread = thread();
    (thread.process, thread.id)
}

/// Sleeps while the low half of a word is `seen`, until it is woken or `nap` is over. Returns whether it is over.
pub(super) fn wait(word: &AtomicU64, seen: u32, nap: Duration) -> bool {
    if let Some(is_woken) = simulation::wait(word, seen, nap) {
        return !is_woken;
    }
    let nap = Timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().max(1).into() };
    let slept = futex::wait(mapping::futex(word), Flags::empty(), seen, Some(&nap));
    slept.is_err_and(|error| error == rustix::io::Errno::TIMEDOUT)
}

/// Wakes so many that sleep at a word.
pub(super) fn wake(word: &AtomicU64, count: u32) {
    if !simulation::wake() {
        let _ = futex::wake(mapping::futex(word), Flags::empty(), count);
    }
}

/// Returns the kernel's id of this thread, which a robust futex holds while the thread has it.
#[inline]
pub(super) fn thread_id() -> u32 {
    thread().id
}

/// Tells the kernel which futex this thread is about to hold, or holds: if the thread ends, the kernel marks it as
/// [`rustix::thread::futex::OWNER_DIED`] and wakes one that waits for it. One futex at a time.
///
/// It is the entry of the list that the C library uses for a mutex between two states, so no pointer of ours lies in
/// shared memory. A robust mutex of the C library that this thread locks meanwhile would end the announcement.
#[inline]
pub(super) fn announce(futex: &AtomicU32) {
    let list = thread().robust_list;
    if list.is_null() {
        return;
    }
    // SAFETY: `list` is this thread's registered list, which lives as long as the thread. Only this thread and the
    // C library in it write the entry. The kernel checks the addresses that it finds there, and only when it ends
    // the thread.
    unsafe {
        let entry = ptr::from_ref(futex).cast::<u8>().wrapping_offset(-((*list).futex_offset as isize));
        ptr::write_volatile(&raw mut (*list).pending, entry.cast_mut().cast());
    }
    // A killed thread has executed its instructions in order; only the compiler must not move them.
    compiler_fence(SeqCst);
}

/// Ends the announcement.
#[inline]
pub(super) fn retract() {
    compiler_fence(SeqCst);
    let list = thread().robust_list;
    if !list.is_null() {
        // SAFETY: as in announce.
        unsafe { ptr::write_volatile(&raw mut (*list).pending, ptr::null_mut()) };
    }
}

/// Asks the kernel to run this thread soon after it has been woken, and for a short time then. The thread gets no
/// larger share of the processors. Kernels before 6.12 and threads that are not scheduled in the ordinary way keep
/// their own times.
pub(crate) fn run_soon() {
    /// The shortest that the kernel allows.
    const SLICE_NS: u64 = 100_000;
    // SAFETY: a C struct of integers, of which zero is a valid value.
    let mut schedule: libc::sched_attr = unsafe { std::mem::zeroed() };
    let bytes = size_of::<libc::sched_attr>();
    // SAFETY: the call asks for the calling thread (0) and writes at most so many bytes to the struct.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut schedule, bytes, 0) };
    if status != 0 || schedule.sched_policy != libc::SCHED_OTHER.unsigned_abs() {
        return;
    }
    schedule.sched_runtime = SLICE_NS;
    // SAFETY: the call reads the struct, whose first word is its size. If it is refused, nothing has changed.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const schedule, 0) };
}

fn byte_range(kind: libc::c_int, at: u64) -> libc::flock {
    // SAFETY: a C struct of integers, of which zero is a valid value.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = at as libc::off_t;
    range.l_len = 1;
    range
}

/// Locks a byte of the file, which need not exist, until this process ends or closes the file. A child of a fork does
/// not have it. Returns whether it was free.
///
/// # Errors
/// The error that the system reports.
pub(super) fn lock_byte(file: &File, at: u64) -> io::Result<bool> {
    if let Some(is_mine) = simulation::lock_byte(at) {
        return Ok(is_mine);
    }
    let range = byte_range(libc::F_WRLCK, at);
    // SAFETY: the descriptor is open, and the call reads the struct it is given.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const range) } {
        0.. => Ok(true),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EAGAIN)) => Ok(false),
            error => Err(error),
        },
    }
}

/// Returns whether another process has locked the byte.
///
/// # Errors
/// The error that the system reports.
pub(super) fn is_byte_locked(file: &File, at: u64) -> io::Result<bool> {
    if let Some(is_locked) = simulation::is_byte_locked(at) {
        return Ok(is_locked);
    }
    let mut range = byte_range(libc::F_WRLCK, at);
    // SAFETY: the descriptor is open, and the call reads and writes the struct it is given.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &raw mut range) } {
        0.. => Ok(i32::from(range.l_type) != libc::F_UNLCK),
        _ => Err(io::Error::last_os_error()),
    }
}
