//! The I/O queue over threads that call a [`Device`], for where io_uring is not to be had. Never io_uring.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::transfer::{Step, Transfer};
use super::wake::WakeFd;
use super::{BufferSlab, Completion, Device, IoBuf, IoOp, IoQueue, QueueOptions, Wake};

/// A queue over any devices, memory and faulty ones included.
pub struct PoolQueue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// Submitted, not yet flushed.
    batch: VecDeque<Job>,
    in_flight: usize,
    depth: usize,
    slab: BufferSlab,
    wake_mode: Wake,
}

struct Job {
    token: u64,
    op: IoOp,
}

struct Shared {
    devices: Vec<Arc<dyn Device>>,
    work: Mutex<Work>,
    wanted: Condvar,
    done: Mutex<Vec<Completion>>,
    wake: WakeFd,
}

#[derive(Default)]
struct Work {
    jobs: VecDeque<Job>,
    closing: bool,
}

impl PoolQueue {
    /// A queue over `devices` with threads of its own.
    ///
    /// # Errors
    /// What the system says to making a thread or a descriptor.
    pub fn new(devices: &[Arc<dyn Device>], options: QueueOptions) -> io::Result<Self> {
        let options = options.resolved();
        let shared = Arc::new(Shared {
            devices: devices.to_vec(),
            work: Mutex::default(),
            wanted: Condvar::new(),
            done: Mutex::default(),
            wake: WakeFd::new()?,
        });
        let mut queue = PoolQueue {
            shared,
            threads: Vec::new(),
            batch: VecDeque::new(),
            in_flight: 0,
            depth: options.depth as usize,
            slab: BufferSlab::new(options.slab_slots),
            wake_mode: options.wake,
        };
        for n in 0..options.threads {
            let shared = Arc::clone(&queue.shared);
            let thread = std::thread::Builder::new().name(format!("larder-io-{n}"));
            // On failure the queue is dropped, which ends the threads made so far.
            queue.threads.push(thread.spawn(move || shared.serve())?);
        }
        Ok(queue)
    }
}

impl IoQueue for PoolQueue {
    fn submit(&mut self, token: u64, op: IoOp) -> Result<(), IoOp> {
        if self.in_flight >= self.depth {
            return Err(op);
        }
        self.in_flight += 1;
        self.batch.push_back(Job { token, op });
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let started = self.batch.len();
        if started > 0 {
            lock(&self.shared.work).jobs.append(&mut self.batch);
            for _ in 0..started.min(self.threads.len()) {
                self.shared.wanted.notify_one();
            }
        }
        Ok(())
    }

    /// Never: whatever finishes raises the descriptor.
    fn is_ready(&mut self) -> bool {
        false
    }

    fn reap(&mut self, out: &mut Vec<Completion>) {
        // Cleared before the list is looked at, so that what finishes meanwhile raises it anew.
        if self.wake_mode == Wake::Level {
            self.shared.wake.clear();
        }
        let before = out.len();
        out.append(&mut lock(&self.shared.done));
        self.in_flight -= out.len() - before;
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.shared.wake.as_fd()
    }

    fn clear_wake(&mut self) {
        self.shared.wake.clear();
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    fn depth(&self) -> usize {
        self.depth
    }

    fn alloc(&mut self, len: usize) -> IoBuf {
        self.slab.take_or_allocate(len)
    }
}

impl Drop for PoolQueue {
    fn drop(&mut self) {
        let abandoned = {
            let mut work = lock(&self.shared.work);
            work.closing = true;
            std::mem::take(&mut work.jobs)
        };
        self.shared.wanted.notify_all();
        drop(abandoned);
        for thread in self.threads.drain(..) {
            // A thread that panicked has aborted the process.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn serve(&self) {
        let guard = AbortOnPanic;
        while let Some(Job { token, mut op }) = self.next() {
            let result = self.perform(&mut op);
            let mut done = lock(&self.done);
            done.push(Completion { token, op, result });
            // One wake-up for all that finishes before the next reap.
            let first = done.len() == 1;
            drop(done);
            if first {
                self.wake.raise();
            }
        }
        std::mem::forget(guard);
    }

    fn next(&self) -> Option<Job> {
        let mut work = lock(&self.work);
        loop {
            if work.closing {
                return None;
            }
            if let Some(job) = work.jobs.pop_front() {
                return Some(job);
            }
            work = self.wanted.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn perform(&self, op: &mut IoOp) -> io::Result<usize> {
        let device = self.devices.get(op.place().0).map(|device| &**device);
        let memory = op.memory();
        let possible = op.check(device, memory)?;
        let (Some(device), 1..) = (device, possible) else {
            return Ok(0);
        };
        let mut transfer = Transfer::new(possible, device.alignment(), op.is_write());
        loop {
            let (at, len) = transfer.attempt();
            let outcome = match op {
                IoOp::Read { offset, buf, .. } => device.read_at(&mut buf[at..at + len], *offset + at as u64),
                IoOp::Write { offset, source, .. } => {
                    device.write_at(&source.bytes()[at..at + len], *offset + at as u64)
                }
            };
            if let Step::Over(result) = transfer.advance(outcome) {
                return result;
            }
        }
    }
}

/// A panic on a thread of the pool would lose an operation, and its submitter would wait for ever.
struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        std::process::abort();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
