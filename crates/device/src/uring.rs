//! The I/O queue over io_uring: registered files, registered slab, completions on an eventfd. Never sockets.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use io_uring::types::Fixed;
use io_uring::{IoUring, opcode, squeue};

use super::transfer::{Step, Transfer};
use super::wake::WakeFd;
use super::{BufferSlab, Completion, Device, IoBuf, IoOp, IoQueue, QueueOptions, Wake};

/// One io_uring for one event loop.
///
/// It belongs to the thread that made it (the kernel is told so, which saves it locking), hence it is not
/// `Send`. Where the kernel can do so (Linux 6.1), completions are delivered when the thread reaps or
/// flushes, and at no other time; before that it may be interrupted for them, and a thread blocked in
/// `epoll_wait` may see one `EINTR` before the descriptor is readable.
///
/// The descriptor is raised only for what finishes between a `flush` and the next `reap`, when the thread may
/// sleep: waking a loop that is awake anyway would cost it a turn.
///
/// In-flight operations are bounded by the depth, each with at most one entry in either ring, and both rings
/// hold at least as many: neither can overflow.
pub struct UringQueue {
    // Before the memory it works on: fields are dropped in this order.
    ring: IoUring,
    slots: Box<[Option<Slot>]>,
    free: Vec<u32>,
    /// Entries in the submission ring or the kernel whose completion has not been taken.
    outstanding: usize,
    /// Over without the kernel having seen them.
    ready: Vec<Completion>,
    /// Whether something stays in the submission ring that `reap` has to see off.
    unsent: bool,
    slab: BufferSlab,
    slab_registered: bool,
    devices: Vec<Arc<dyn Device>>,
    wake: WakeFd,
    wake_mode: Wake,
    _one_thread: PhantomData<*const ()>,
}

struct Slot {
    token: u64,
    op: IoOp,
    memory: *mut u8,
    transfer: Transfer,
    registered: bool,
}

/// The one registered buffer: the whole slab.
const SLAB_INDEX: u16 = 0;

impl UringQueue {
    /// A queue over `devices`, to be used by the calling thread.
    ///
    /// # Errors
    /// `Unsupported` when a device has no descriptor; else what the kernel says to making the ring. A slab
    /// that cannot be registered (locked memory is limited) only costs speed; see
    /// [`slab_registered`](Self::slab_registered).
    pub fn new(devices: &[Arc<dyn Device>], options: QueueOptions) -> io::Result<Self> {
        let options = options.resolved();
        let fds = descriptors(devices)?;
        let mut ring = build_ring(options.depth)?;
        let depth = options.depth as usize;
        assert!(ring.params().sq_entries() as usize >= depth && ring.params().cq_entries() as usize >= depth);
        let wake = WakeFd::new()?;
        let slab = BufferSlab::new(options.slab_slots);
        let submitter = ring.submitter();
        submitter.register_files(&fds)?;
        submitter.register_eventfd(wake.as_fd().as_raw_fd())?;
        let (base, len) = slab.block();
        let block = [libc::iovec { iov_base: base.cast(), iov_len: len }];
        // SAFETY: the block stays allocated for as long as `self.slab`, which is dropped after `self.ring`;
        // it is written by the kernel only under read operations, whose buffers `self.slots` owns.
        let slab_registered = unsafe { submitter.register_buffers(&block) }.is_ok();
        // Saves looking the descriptor up at each call; a kernel before 5.18 cannot.
        let _ = ring.submitter().register_ring_fd();
        ring.completion().disable_eventfd();
        Ok(UringQueue {
            ring,
            slots: (0..depth).map(|_| None).collect(),
            free: (0..options.depth).rev().collect(),
            outstanding: 0,
            ready: Vec::new(),
            unsent: false,
            slab,
            slab_registered,
            devices: devices.to_vec(),
            wake,
            wake_mode: options.wake,
            _one_thread: PhantomData,
        })
    }

    /// Whether the kernel holds the slab's pages ready, so that reads into it need not pin them.
    pub fn slab_registered(&self) -> bool {
        self.slab_registered
    }

    /// Moves what the kernel has finished to `out`, and puts what has to go on back into the submission ring.
    fn collect(&mut self, out: &mut Vec<Completion>) {
        let (_, mut submission, completion) = self.ring.split();
        for entry in completion {
            let index = entry.user_data() as usize;
            let slot = self.slots[index].as_mut().expect("a completion names the slot of its submission");
            self.outstanding -= 1;
            match slot.transfer.advance(outcome(entry.result())) {
                Step::Again => {
                    let entry = submission_entry(&self.devices, slot, index);
                    // SAFETY: the slot stays in place, and owns the memory, until its completion is taken.
                    let pushed = unsafe { submission.push(&entry) };
                    pushed.expect("the submission ring has room for every slot");
                    self.outstanding += 1;
                    self.unsent = true;
                }
                Step::Over(result) => {
                    let slot = self.slots[index].take().expect("it was there above");
                    self.free.push(index as u32);
                    out.push(Completion { token: slot.token, op: slot.op, result });
                }
            }
        }
    }

    /// Hands the submission ring to the kernel. Raises the wake-up when it will not take all of it now.
    fn send(&mut self) -> io::Result<()> {
        self.unsent = false;
        while !self.ring.submission().is_empty() {
            match self.ring.submit() {
                Ok(0) => return self.postpone(),
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => return self.postpone(),
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn postpone(&mut self) -> io::Result<()> {
        self.unsent = true;
        self.wake.raise();
        Ok(())
    }
}

impl IoQueue for UringQueue {
    fn submit(&mut self, token: u64, op: IoOp) -> Result<(), IoOp> {
        if self.in_flight() >= self.slots.len() {
            return Err(op);
        }
        let index = self.free.pop().expect("fewer operations than slots");
        let registered =
            self.slab_registered && matches!(&op, IoOp::Read { buf, .. } if buf.is_from(&self.slab));
        let transfer = Transfer::new(0, 1, false);
        let memory = std::ptr::null_mut();
        // The memory is asked for only now that the operation rests where it stays until it is over.
        let slot = self.slots[index as usize].insert(Slot { token, op, memory, transfer, registered });
        let (memory, available) = slot.op.memory();
        let device = self.devices.get(slot.op.place().0).map(|device| &**device);
        let checked = slot.op.check(device, (memory, available));
        match (checked, device) {
            (Ok(possible @ 1..), Some(device)) => {
                slot.memory = memory;
                slot.transfer = Transfer::new(possible, device.alignment(), slot.op.is_write());
                let entry = submission_entry(&self.devices, slot, index as usize);
                // SAFETY: the entry's memory is `possible` bytes, at most those that `check` found there. The
                // slot owns them and stays in place until the completion is taken, in `collect` or in `drop`.
                let pushed = unsafe { self.ring.submission().push(&entry) };
                pushed.expect("the submission ring has room for every slot");
                self.outstanding += 1;
            }
            (checked, _) => {
                let slot = self.slots[index as usize].take().expect("inserted above");
                self.free.push(index);
                self.ready.push(Completion { token: slot.token, op: slot.op, result: checked });
                self.wake.raise();
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()?;
        self.ring.completion().enable_eventfd();
        // What finished before the line above is seen by `is_ready`, what finishes after it raises the
        // descriptor: the kernel, too, publishes first and looks at the switch second.
        fence(SeqCst);
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        !self.ready.is_empty() || self.ring.submission().taskrun() || !self.ring.completion().is_empty()
    }

    fn reap(&mut self, out: &mut Vec<Completion>) {
        self.ring.completion().disable_eventfd();
        if self.wake_mode == Wake::Level {
            self.wake.clear();
        }
        out.append(&mut self.ready);
        if self.ring.submission().taskrun() {
            // Completions wait for this thread to enter the kernel, which it may not do otherwise while busy.
            // After a failure they go on waiting, and the next call tries again.
            let _ = self.ring.submit();
        }
        self.collect(out);
        if self.unsent {
            // A broken ring says so to the next `flush`.
            let _ = self.send();
        }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    fn clear_wake(&mut self) {
        self.wake.clear();
    }

    fn in_flight(&self) -> usize {
        self.outstanding + self.ready.len()
    }

    fn depth(&self) -> usize {
        self.slots.len()
    }

    fn alloc(&mut self, len: usize) -> IoBuf {
        self.slab.take_or_allocate(len)
    }
}

impl Drop for UringQueue {
    fn drop(&mut self) {
        while self.outstanding > 0 {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => {}
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => std::thread::yield_now(),
                    _ => {
                        // The kernel may hold these buffers for ever, so they cannot be used again.
                        std::mem::forget(std::mem::take(&mut self.slots));
                        return;
                    }
                },
            }
            self.outstanding -= self.ring.completion().count();
        }
    }
}

fn descriptors(devices: &[Arc<dyn Device>]) -> io::Result<Vec<RawFd>> {
    let fds = devices.iter().enumerate().map(|(index, device)| match device.raw_fd() {
        Some(fd) => Ok(fd.as_raw_fd()),
        None => Err(io::Error::new(io::ErrorKind::Unsupported, format!("device {index} has no descriptor"))),
    });
    fds.collect()
}

/// The ring, with what this kernel offers to make completions cheaper.
fn build_ring(depth: u32) -> io::Result<IoUring> {
    let is_unknown = |error: &io::Error| error.raw_os_error() == Some(libc::EINVAL);
    let mut common = IoUring::builder();
    common.setup_submit_all().setup_taskrun_flag().setup_single_issuer();
    match common.clone().setup_defer_taskrun().build(depth) {
        // Linux before 6.1 knows only the other way, before 6.0 neither.
        Err(error) if is_unknown(&error) => match common.setup_coop_taskrun().build(depth) {
            Err(error) if is_unknown(&error) => IoUring::new(depth),
            result => result,
        },
        result => result,
    }
}

fn submission_entry(devices: &[Arc<dyn Device>], slot: &Slot, index: usize) -> squeue::Entry {
    let (device, offset) = slot.op.place();
    let (at, len) = slot.transfer.attempt();
    let file = Fixed(device as u32);
    let offset = devices[device].base() + offset + at as u64;
    let len = u32::try_from(len).expect("an attempt is bounded");
    let memory = slot.memory.wrapping_add(at);
    let entry = match &slot.op {
        IoOp::Write { .. } => opcode::Write::new(file, memory, len).offset(offset).build(),
        IoOp::Read { .. } if slot.registered => {
            opcode::ReadFixed::new(file, memory, len, SLAB_INDEX).offset(offset).build()
        }
        IoOp::Read { .. } => opcode::Read::new(file, memory, len).offset(offset).build(),
    };
    entry.user_data(index as u64)
}

fn outcome(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result))
}
