//! Calls of the system about the process itself: users, background, limits, processor time. This is the server's
//! only file with unsafe code.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::process::WaitOptions;

/// Returns the processor time used so far: in user space, in the kernel.
pub fn cpu_time() -> (Duration, Duration) {
    // SAFETY: rusage is plain integers, for which zero is a value; getrusage fills the one it is given.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::getrusage(libc::RUSAGE_SELF, &mut usage) != 0 {
            return (Duration::ZERO, Duration::ZERO);
        }
        usage
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec.max(0) as u64, (t.tv_usec.max(0) * 1000) as u32);
    (time(usage.ru_utime), time(usage.ru_stime))
}

/// Makes the allocator take every buffer of 128 KiB or more from the kernel and return it when it is freed. By
/// default it keeps such memory after a while, and a few large values would stay resident.
pub fn give_back_large_buffers() {
    // SAFETY: sets two numbers of the allocator, before any thread but this one runs.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 << 10);
        libc::mallopt(libc::M_TRIM_THRESHOLD, 1 << 20);
    }
}

/// The caller's end of a daemon in the background: it waits there until the daemon serves or has failed.
pub struct Background {
    caller: File,
}

impl Background {
    /// Goes on in a child process without the caller's terminal. The caller's process ends when the child
    /// [serves](Self::serving), or with the code of a child that ends before that. Called before any thread
    /// is started.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn enter() -> io::Result<Background> {
        let (mut child_serves, caller) = io::pipe()?;
        // SAFETY: the process has one thread, so the child is whole.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop(child_serves);
                rustix::process::setsid()?;
                Ok(Background { caller: File::from(OwnedFd::from(caller)) })
            }
            child => {
                drop(caller);
                let serves = matches!(child_serves.read(&mut [0]), Ok(1));
                std::process::exit(if serves { 0 } else { exit_code_of(child) });
            }
        }
    }

    /// Lets go of the caller's terminal and files, and tells it that the daemon serves.
    ///
    /// # Errors
    /// The error that the system reports.
    pub fn serving(mut self) -> io::Result<()> {
        let nowhere = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&nowhere)?;
        rustix::stdio::dup2_stdout(&nowhere)?;
        rustix::stdio::dup2_stderr(&nowhere)?;
        // A caller that is gone does not want to know.
        let _ = self.caller.write_all(&[1]);
        Ok(())
    }
}

/// Waits for a child to end. Returns its exit code, and 1 for one that a signal ended.
fn exit_code_of(child: libc::pid_t) -> i32 {
    let waited = rustix::process::waitpid(rustix::process::Pid::from_raw(child), WaitOptions::empty());
    waited.ok().flatten().and_then(|(_, status)| status.exit_status()).filter(|code| *code != 0).unwrap_or(1)
}

/// Gives up root for `user`, with that user's groups.
pub fn become_user(user: &str) -> io::Result<()> {
    let name = CString::new(user).map_err(|_| io::Error::other("the user's name holds a NUL"))?;
    // SAFETY: getpwnam returns null or a record that is valid until the next call; only this thread runs yet, and
    // the fields are copied at once. The others take plain numbers and a valid string.
    unsafe {
        let (uid, gid) = match user.parse::<libc::uid_t>() {
            Ok(number) => (number, number),
            Err(_) => {
                let record = libc::getpwnam(name.as_ptr());
                if record.is_null() {
                    return Err(io::Error::new(
                        io::ErrorKind::NotFound,
                        format!("there is no user \"{user}\""),
                    ));
                }
                ((*record).pw_uid, (*record).pw_gid)
            }
        };
        if libc::initgroups(name.as_ptr(), gid) != 0 || libc::setgid(gid) != 0 || libc::setuid(uid) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Keeps all memory, present and future, out of swap: each page from its first use on. (All at once would take
/// memory for addresses that the index may never grow to.)
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: mlockall takes flags and touches no memory of the program's own.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the bytes that were sent over a socket and that its peer has not acknowledged yet; 0 if that is not known.
pub fn unacknowledged_bytes(socket: &OwnedFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the request writes one int, for which there is room.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if result == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}

/// The number of the first descriptor that a service manager passes to a process.
const PASSED_FIRST: RawFd = 3;

/// Takes `count` descriptors that were open when this program began, from number 3 on. In the place of one that was not
/// there is `None`; so is each at a second call.
pub fn take_passed(count: usize) -> Vec<Option<OwnedFd>> {
    (PASSED_FIRST..).take(count).map(take_one).collect()
}

fn take_one(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: fcntl with these commands takes a number, which need not be open, and touches no memory.
    let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
    // What a program opens itself is closed at exec, so this one was not opened here, and no value owns it.
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        return None;
    }
    // SAFETY: as above; and the descriptor is open and no other value's. From now on it is closed at exec, so that a
    // second call does not take it.
    unsafe {
        if libc::fcntl(number, libc::F_SETFD, flags | libc::FD_CLOEXEC) < 0 {
            return None;
        }
        Some(OwnedFd::from_raw_fd(number))
    }
}

/// Returns whether the process runs as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
