//! Which I/O queue to use, and why not the other one. Never how either works.

use std::fmt;
use std::io;
use std::sync::Arc;

use io_uring::{IoUring, Probe, opcode};

use super::{Device, IoQueue, PoolQueue, QueueOptions, UringQueue};

/// The ways to reach a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoKind {
    /// io_uring where it works, else threads.
    #[default]
    Auto,
    /// io_uring or an error.
    Uring,
    /// A pool of threads.
    Threads,
}

/// Why io_uring cannot be used here. The message says what would change that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UringUnavailable {
    /// The kernel refuses it to this process.
    Blocked,
    /// The kernel has none.
    Absent,
    /// The kernel's is too old: it lacks the named thing.
    Lacks(&'static str),
    /// The device of this index has no descriptor to submit to.
    NoDescriptor(usize),
    /// Not enough of a resource, or another failure: the error number.
    Failed(i32),
}

impl UringUnavailable {
    fn from_error(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => UringUnavailable::Blocked,
            Some(libc::ENOSYS) => UringUnavailable::Absent,
            Some(libc::EINVAL) => UringUnavailable::Lacks("a feature of the ring"),
            other => UringUnavailable::Failed(other.unwrap_or(0)),
        }
    }
}

impl fmt::Display for UringUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UringUnavailable::Blocked => write!(
                f,
                "io_uring is blocked for this process (a container's seccomp profile, or the sysctl \
                 kernel.io_uring_disabled); allow io_uring_setup, io_uring_enter and io_uring_register \
                 to use it"
            ),
            UringUnavailable::Absent => write!(f, "this kernel has no io_uring"),
            UringUnavailable::Lacks(what) => {
                write!(f, "this kernel's io_uring lacks {what}; Linux 5.15 has it")
            }
            UringUnavailable::NoDescriptor(index) => {
                write!(f, "device {index} is not a file, and io_uring reaches only files")
            }
            UringUnavailable::Failed(libc::ENOMEM) => {
                write!(f, "io_uring got no memory; raise the limit on locked memory (ulimit -l)")
            }
            UringUnavailable::Failed(errno) => {
                write!(f, "io_uring cannot be set up: {}", io::Error::from_raw_os_error(*errno))
            }
        }
    }
}

impl std::error::Error for UringUnavailable {}

/// A queue, and what became of the wish for one.
pub struct OpenedQueue {
    /// The queue.
    pub queue: Box<dyn IoQueue>,
    /// What it is: [`IoKind::Uring`] or [`IoKind::Threads`].
    pub kind: IoKind,
    /// Why it is not io_uring although [`IoKind::Auto`] would have had it so.
    pub fallback: Option<UringUnavailable>,
}

/// Whether this process may use io_uring and it has all features needed here. Costs a ring, so ask once.
///
/// # Errors
/// Why not.
pub fn probe_uring() -> Result<(), UringUnavailable> {
    let ring = IoUring::new(2).map_err(|error| UringUnavailable::from_error(&error))?;
    let mut probe = Probe::new();
    let submitter = ring.submitter();
    submitter.register_probe(&mut probe).map_err(|error| UringUnavailable::from_error(&error))?;
    let needed = [
        (opcode::Read::CODE, "READ"),
        (opcode::Write::CODE, "WRITE"),
        (opcode::ReadFixed::CODE, "READ_FIXED"),
    ];
    match needed.iter().find(|(code, _)| !probe.is_supported(*code)) {
        Some((_, name)) => Err(UringUnavailable::Lacks(name)),
        // Without it a full completion ring would lose completions instead of keeping them back.
        None if !ring.params().is_feature_nodrop() => Err(UringUnavailable::Lacks("NODROP")),
        None => Ok(()),
    }
}

/// What to use, given the wish and what trying io_uring said: the kind, and for [`IoKind::Auto`] why it is
/// not io_uring.
///
/// # Errors
/// io_uring was insisted on and is not to be had.
pub fn choose(
    wish: IoKind,
    uring: Result<(), UringUnavailable>,
) -> Result<(IoKind, Option<UringUnavailable>), UringUnavailable> {
    match (wish, uring) {
        (IoKind::Threads, _) => Ok((IoKind::Threads, None)),
        (IoKind::Auto | IoKind::Uring, Ok(())) => Ok((IoKind::Uring, None)),
        (IoKind::Auto, Err(why)) => Ok((IoKind::Threads, Some(why))),
        (IoKind::Uring, Err(why)) => Err(why),
    }
}

/// Opens a queue over `devices`. Call it on the thread that will use it: an io_uring belongs to its maker.
///
/// # Errors
/// `Unsupported`, carrying an [`UringUnavailable`], when io_uring was insisted on and is not to be had; else
/// what the system says to making threads.
pub fn open_queue(
    kind: IoKind,
    devices: &[Arc<dyn Device>],
    options: QueueOptions,
) -> io::Result<OpenedQueue> {
    let mut made = None;
    let tried =
        if kind == IoKind::Threads { Ok(()) } else { try_uring(devices, options).map(|q| made = Some(q)) };
    let (kind, fallback) =
        choose(kind, tried).map_err(|why| io::Error::new(io::ErrorKind::Unsupported, why))?;
    let queue: Box<dyn IoQueue> = match made {
        Some(queue) => Box::new(queue),
        None => Box::new(PoolQueue::new(devices, options)?),
    };
    Ok(OpenedQueue { queue, kind, fallback })
}

fn try_uring(devices: &[Arc<dyn Device>], options: QueueOptions) -> Result<UringQueue, UringUnavailable> {
    if let Some(index) = devices.iter().position(|device| device.raw_fd().is_none()) {
        return Err(UringUnavailable::NoDescriptor(index));
    }
    probe_uring()?;
    UringQueue::new(devices, options).map_err(|error| UringUnavailable::from_error(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_ring_falls_back_and_says_why() {
        let why = UringUnavailable::from_error(&io::Error::from_raw_os_error(libc::EPERM));
        assert_eq!(why, UringUnavailable::Blocked);
        assert_eq!(choose(IoKind::Auto, Err(why.clone())), Ok((IoKind::Threads, Some(why.clone()))));
        assert_eq!(choose(IoKind::Uring, Err(why.clone())), Err(why.clone()));
        assert_eq!(choose(IoKind::Threads, Err(why.clone())), Ok((IoKind::Threads, None)));
        assert!(why.to_string().contains("seccomp"));
    }

    #[test]
    fn a_working_ring_is_used_unless_threads_are_wanted() {
        assert_eq!(choose(IoKind::Auto, Ok(())), Ok((IoKind::Uring, None)));
        assert_eq!(choose(IoKind::Uring, Ok(())), Ok((IoKind::Uring, None)));
        assert_eq!(choose(IoKind::Threads, Ok(())), Ok((IoKind::Threads, None)));
    }

    #[test]
    fn refusals_are_told_apart() {
        let of = |errno| UringUnavailable::from_error(&io::Error::from_raw_os_error(errno));
        assert_eq!(of(libc::ENOSYS), UringUnavailable::Absent);
        assert_eq!(of(libc::EMFILE), UringUnavailable::Failed(libc::EMFILE));
        assert!(of(libc::ENOMEM).to_string().contains("ulimit -l"));
    }
}
