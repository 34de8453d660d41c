//! The I/O queues, each over every device it can reach. Never how a device is opened.

mod support;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use larder_device::{
    Completion, Device, Fault, FaultDevice, FaultRule, IoBuf, IoKind, IoOp, IoQueue, MemoryDevice, OpKind,
    PAGE_BYTES, QueueOptions, UringUnavailable, Wake, When, open_queue, probe_uring,
};
use support::{MIB, Random, Scratch, open_small};

const PAGE: u64 = PAGE_BYTES as u64;
const BYTES: u64 = 17 * MIB;

/// A kind of queue over a kind of device.
struct Pair {
    name: &'static str,
    kind: IoKind,
    devices: Vec<Arc<dyn Device>>,
    _scratch: Option<Scratch>,
}

impl Pair {
    fn open(&self, options: QueueOptions) -> Box<dyn IoQueue> {
        let opened = open_queue(self.kind, &self.devices, options).expect("a queue");
        assert_eq!(opened.kind, self.kind);
        opened.queue
    }

    fn depth(&self, depth: u32) -> Box<dyn IoQueue> {
        self.open(QueueOptions { depth, ..QueueOptions::default() })
    }
}

fn pairs() -> Vec<Pair> {
    let mut kinds = vec![IoKind::Threads];
    match probe_uring() {
        Ok(()) => kinds.push(IoKind::Uring),
        Err(why) => eprintln!("SKIPPED with io_uring: {why}"),
    }
    let mut pairs = Vec::new();
    for kind in kinds {
        for (name, scratch) in [("disk", Some(Scratch::new())), ("tmpfs", Scratch::in_memory())] {
            let Some(scratch) = scratch else { continue };
            let file = |name| Arc::new(open_small(scratch.path(name), BYTES)) as Arc<dyn Device>;
            let devices = vec![file("a"), file("b")];
            pairs.push(Pair { name, kind, devices, _scratch: Some(scratch) });
        }
    }
    let memory = || Arc::new(MemoryDevice::new(16 * MIB)) as Arc<dyn Device>;
    pairs.push(Pair {
        name: "memory",
        kind: IoKind::Threads,
        devices: vec![memory(), memory()],
        _scratch: None,
    });
    let devices = vec![ill(1), ill(2)];
    pairs.push(Pair { name: "ill memory", kind: IoKind::Threads, devices, _scratch: None });
    pairs
}

/// Memory that moves a part only, or is interrupted, half of the time.
fn ill(seed: u64) -> Arc<dyn Device> {
    let device = FaultDevice::new(MemoryDevice::new(16 * MIB), seed);
    for kind in [OpKind::Read, OpKind::Write] {
        device.inject(FaultRule::new(kind, Fault::Short, When::Chance(0.4)));
        device.inject(FaultRule::new(kind, Fault::Interrupted, When::Chance(0.2)));
    }
    Arc::new(device)
}

fn read(device: usize, offset: u64, buf: IoBuf) -> IoOp {
    IoOp::Read { device, offset, buf }
}

fn write(device: usize, offset: u64, buf: IoBuf) -> IoOp {
    let len = buf.len();
    IoOp::Write { device, offset, source: Box::new(buf), len }
}

fn finish(queue: &mut dyn IoQueue) -> Vec<Completion> {
    let mut out = Vec::new();
    while queue.in_flight() > 0 {
        let before = out.len();
        queue.wait(&mut out, 20_000).expect("a working queue");
        assert!(out.len() > before, "nothing finished in 20 s; {} in flight", queue.in_flight());
    }
    out
}

fn one(queue: &mut dyn IoQueue, op: IoOp) -> Completion {
    queue.submit(77, op).expect("room");
    let mut out = finish(queue);
    assert_eq!(out.len(), 1);
    let completion = out.remove(0);
    assert_eq!(completion.token, 77);
    completion
}

#[test]
fn what_was_written_is_read() {
    for pair in pairs() {
        churn(&pair, Wake::Level, 3000);
        churn(&pair, Wake::Edge, 300);
    }
}

/// Random writes and reads of 1 to 16 pages, 64 at once, none overlapping another in flight, against a model.
fn churn(pair: &Pair, wake: Wake, operations: u64) {
    let mut queue = pair.open(QueueOptions { depth: 64, wake, ..QueueOptions::default() });
    let mut random = Random(42);
    let mut model: Vec<Vec<u8>> = pair.devices.iter().map(|device| vec![0; device.len() as usize]).collect();
    let mut busy: Vec<Vec<bool>> = model.iter().map(|bytes| vec![false; bytes.len() / PAGE_BYTES]).collect();
    // First make the bytes known: a reused file may hold anything.
    for (device, bytes) in model.iter_mut().enumerate() {
        random.fill(bytes);
        for (n, chunk) in bytes.chunks(1 << 20).enumerate() {
            let mut buf = IoBuf::zeroed(chunk.len());
            buf.copy_from_slice(chunk);
            queue.submit(0, write(device, (n as u64) << 20, buf)).expect("room");
        }
    }
    assert!(finish(&mut *queue).iter().all(|done| done.result.is_ok()), "{}", pair.name);

    let mut pending = HashMap::new();
    let (mut started, mut finished, mut out) = (0, 0, Vec::new());
    while finished < operations {
        while started < operations && queue.in_flight() < 64 {
            let device = random.below(model.len() as u64) as usize;
            let pages = if random.below(2) == 0 { 1 } else { 1 + random.below(16) as usize };
            let first = random.below((busy[device].len() - pages + 1) as u64) as usize;
            if busy[device][first..first + pages].contains(&true) {
                break;
            }
            busy[device][first..first + pages].fill(true);
            let offset = first as u64 * PAGE;
            let mut buf = queue.alloc(pages * PAGE_BYTES);
            let op = if random.below(2) == 0 {
                random.fill(&mut buf);
                model[device][first * PAGE_BYTES..][..buf.len()].copy_from_slice(&buf);
                write(device, offset, buf)
            } else {
                read(device, offset, buf)
            };
            pending.insert(started, (device, first, pages));
            queue.submit(started, op).expect("room");
            started += 1;
        }
        queue.wait(&mut out, 20_000).expect("a working queue");
        assert!(!out.is_empty(), "{}: nothing finished in 20 s", pair.name);
        for done in out.drain(..) {
            let (device, first, pages) = pending.remove(&done.token).expect("each token once");
            let len = pages * PAGE_BYTES;
            assert_eq!(done.result.expect("success"), len, "{}", pair.name);
            if let IoOp::Read { buf, .. } = &done.op {
                assert!(buf[..] == model[device][first * PAGE_BYTES..][..len], "{}: page {first}", pair.name);
            }
            busy[device][first..first + pages].fill(false);
            finished += 1;
        }
    }
    assert!(pending.is_empty() && queue.in_flight() == 0);
}

#[test]
fn a_full_queue_gives_the_operation_back() {
    for pair in pairs() {
        let mut queue = pair.depth(4);
        for token in 0..4 {
            let buf = queue.alloc(PAGE_BYTES);
            queue.submit(token, read(0, token * PAGE, buf)).expect("room");
        }
        let refused = queue.submit(4, read(1, 8 * PAGE, IoBuf::zeroed(PAGE_BYTES))).expect_err("no room");
        assert_eq!(refused.place(), (1, 8 * PAGE));
        assert_eq!((queue.in_flight(), queue.depth()), (4, 4));
        let mut tokens: Vec<u64> = finish(&mut *queue).iter().map(|done| done.token).collect();
        tokens.sort_unstable();
        assert_eq!(tokens, [0, 1, 2, 3], "{}", pair.name);
        queue.submit(4, refused).expect("room again");
        assert_eq!(finish(&mut *queue).len(), 1);
    }
}

#[test]
fn what_cannot_be_completes_as_invalid() {
    for pair in pairs() {
        let mut queue = pair.depth(8);
        let len = pair.devices[0].len();
        let page = || IoBuf::zeroed(PAGE_BYTES);
        let invalid = [
            read(9, 0, page()),
            read(0, 100, page()),
            write(0, len, page()),
            write(0, len - PAGE, IoBuf::zeroed(2 * PAGE_BYTES)),
            write(0, u64::MAX - PAGE + 1, page()),
            IoOp::Write { device: 0, offset: 0, source: Box::new(page()), len: 2 * PAGE_BYTES },
            IoOp::Write { device: 0, offset: 0, source: Box::new(page()), len: 100 },
        ];
        for op in invalid {
            let what = format!("{}: {op:?}", pair.name);
            let done = one(&mut *queue, op);
            let error = done.result.expect_err(&what);
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{what}: {error}");
        }
    }
}

#[test]
fn the_end_of_a_device_is_the_end_of_a_read() {
    for pair in pairs() {
        let mut queue = pair.depth(8);
        let len = pair.devices[0].len();
        for (offset, pages, expected) in [(len - PAGE, 2, PAGE_BYTES), (len, 1, 0), (len + 9 * PAGE, 1, 0)] {
            let done = one(&mut *queue, read(0, offset, IoBuf::zeroed(pages * PAGE_BYTES)));
            assert_eq!(done.result.expect("success"), expected, "{} at {offset}", pair.name);
        }
    }
}

#[test]
fn a_share_never_leaves_its_slice() {
    let scratch = Scratch::new();
    let share = |index| {
        let mut options = support::small(scratch.path("shared"), Some(12 * MIB));
        options.share = Some((index, 2));
        Arc::new(larder_device::FileDevice::open(&options).expect("a share")) as Arc<dyn Device>
    };
    let devices = vec![share(1), share(2)];
    for kind in [IoKind::Threads, IoKind::Auto] {
        let mut queue = open_queue(kind, &devices, QueueOptions::default()).expect("a queue").queue;
        for (device, byte) in [(0, 0xaa), (1, 0xbb)] {
            let mut buf = IoBuf::zeroed(devices[device].len() as usize);
            buf.fill(byte);
            one(&mut *queue, write(device, 0, buf)).result.expect("success");
        }
        for (device, byte) in [(0, 0xaa), (1, 0xbb)] {
            let done = one(&mut *queue, read(device, 0, IoBuf::zeroed(devices[device].len() as usize)));
            let IoOp::Read { buf, .. } = done.op else { panic!("a read came back as a write") };
            assert!(buf.iter().all(|&b| b == byte), "{kind:?}: share {device} was overwritten");
        }
    }
}

/// A descriptor as a device of 1 MiB.
struct Descriptor(OwnedFd);

impl Device for Descriptor {
    fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn discard(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> u64 {
        MIB
    }

    fn alignment(&self) -> usize {
        512
    }

    fn raw_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

fn ring_over(fd: impl Into<OwnedFd>) -> Option<Box<dyn IoQueue>> {
    if let Err(why) = probe_uring() {
        eprintln!("SKIPPED: {why}");
        return None;
    }
    let devices = [Arc::new(Descriptor(fd.into())) as Arc<dyn Device>];
    Some(open_queue(IoKind::Uring, &devices, QueueOptions::default()).expect("a ring").queue)
}

#[test]
fn a_ring_goes_on_after_a_short_read() {
    // A pipe gives what is in it, whatever the offset.
    let (near, mut far) = io::pipe().expect("a pipe");
    let Some(mut queue) = ring_over(near) else { return };
    let buf = queue.alloc(PAGE_BYTES);
    queue.submit(1, read(0, 0, buf)).expect("room");
    queue.flush().expect("a working ring");
    let mut out = Vec::new();
    for byte in 1..=8 {
        use std::io::Write;
        queue.reap(&mut out);
        assert!(out.is_empty(), "over after {} of 8 pieces", byte - 1);
        far.write_all(&[byte; 512]).expect("an open pipe");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    queue.wait(&mut out, 5000).expect("a working ring");
    let done = out.pop().expect("over");
    assert_eq!(done.result.expect("success"), PAGE_BYTES);
    let IoOp::Read { buf, .. } = done.op else { panic!("a read came back as a write") };
    assert!(buf.chunks(512).zip(1..).all(|(chunk, byte)| chunk.iter().all(|&b| b == byte)));
}

#[test]
fn a_ring_reports_errors() {
    let scratch = Scratch::new();
    let write_only = std::fs::File::create(scratch.path("write-only")).expect("a file");
    let Some(mut queue) = ring_over(write_only) else {
        return;
    };
    let done = one(&mut *queue, read(0, 0, IoBuf::zeroed(PAGE_BYTES)));
    assert_eq!(done.result.expect_err("no right to read").raw_os_error(), Some(libc::EBADF));
}

#[test]
fn a_pool_reports_errors_and_goes_on() {
    let device = Arc::new(FaultDevice::new(MemoryDevice::new(MIB), 1));
    device.inject(FaultRule::new(OpKind::Read, Fault::Error, When::Nth(2)));
    device.inject(FaultRule::new(OpKind::Write, Fault::Full, When::From(1)));
    let devices = [Arc::clone(&device) as Arc<dyn Device>];
    let mut queue = open_queue(IoKind::Auto, &devices, QueueOptions::default()).expect("a queue").queue;
    let results: Vec<_> = (0..3)
        .map(|_| one(&mut *queue, read(0, 0, IoBuf::zeroed(PAGE_BYTES))).result.map_err(|e| e.raw_os_error()))
        .collect();
    assert_eq!(results, [Ok(PAGE_BYTES), Err(Some(libc::EIO)), Ok(PAGE_BYTES)]);
    let done = one(&mut *queue, write(0, 0, IoBuf::zeroed(PAGE_BYTES)));
    assert_eq!(done.result.expect_err("a full device").raw_os_error(), Some(libc::ENOSPC));
    assert_eq!(device.counts().total(), 2);
}

#[test]
fn a_dropped_ring_waits_for_the_kernel() {
    use std::io::Write;
    use std::sync::atomic::AtomicBool;
    let (near, mut far) = io::pipe().expect("a pipe");
    let Some(mut queue) = ring_over(near) else { return };
    let buf = queue.alloc(PAGE_BYTES);
    queue.submit(1, read(0, 0, buf)).expect("room");
    queue.flush().expect("a working ring");
    let written = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            written.store(true, Ordering::SeqCst);
            far.write_all(&[1; 512]).expect("an open pipe");
        });
        drop(queue);
        assert!(written.load(Ordering::SeqCst), "dropped while the kernel could still write to the buffer");
    });
}

/// Counts itself out.
struct Counted(IoBuf, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        // Whoever still reads it would now read this.
        self.0.fill(0xdd);
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_queue_dropped_in_flight_frees_each_source_once_and_late_enough() {
    for pair in pairs() {
        for flushed in [0, 7, 48] {
            let freed = Arc::new(AtomicUsize::new(0));
            let mut queue = pair.depth(64);
            let kept = queue.alloc(PAGE_BYTES);
            for n in 0..48u64 {
                let mut buf = IoBuf::zeroed(16 * PAGE_BYTES);
                buf.fill(0x11);
                let len = buf.len();
                let source = Box::new(Counted(buf, Arc::clone(&freed)));
                queue.submit(n, IoOp::Write { device: 0, offset: n << 16, source, len }).expect("room");
                if n + 1 == flushed {
                    queue.flush().expect("a working queue");
                }
            }
            for n in 0..16 {
                let buf = queue.alloc(PAGE_BYTES);
                queue.submit(100 + n, read(1, n * PAGE, buf)).expect("room");
            }
            drop(queue);
            assert_eq!(freed.load(Ordering::SeqCst), 48, "{}", pair.name);
            assert_eq!(kept.len(), PAGE_BYTES);
            let mut page = IoBuf::zeroed(PAGE_BYTES);
            for n in 0..48u64 {
                while pair.devices[0].read_at(&mut page, n << 16).is_err() {}
                assert!(!page.contains(&0xdd), "{}: freed bytes were written", pair.name);
            }
        }
    }
}

#[test]
fn a_source_lives_until_its_completion_is_dropped() {
    for pair in pairs() {
        let freed = Arc::new(AtomicUsize::new(0));
        let mut queue = pair.depth(4);
        let source = Box::new(Counted(IoBuf::zeroed(PAGE_BYTES), Arc::clone(&freed)));
        let done = one(&mut *queue, IoOp::Write { device: 0, offset: 0, source, len: PAGE_BYTES });
        assert_eq!(freed.load(Ordering::SeqCst), 0, "{}", pair.name);
        drop(done);
        assert_eq!(freed.load(Ordering::SeqCst), 1, "{}", pair.name);
    }
}

#[test]
fn the_wake_up_descriptor_follows_the_completions() {
    use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
    let limit = Timespec { tv_sec: 10, tv_nsec: 0 };
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    for pair in pairs() {
        for wake in [Wake::Level, Wake::Edge] {
            let mut queue = pair.open(QueueOptions { depth: 8, wake, ..QueueOptions::default() });
            let epoll_fd = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
            let edge = if wake == Wake::Edge { epoll::EventFlags::ET } else { epoll::EventFlags::empty() };
            let data = epoll::EventData::new_u64(0);
            epoll::add(&epoll_fd, queue.wake_fd(), data, epoll::EventFlags::IN | edge).expect("an entry");
            let woken = |queue: &mut dyn IoQueue, limit: &Timespec| {
                if queue.is_ready() {
                    return true;
                }
                let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data }];
                loop {
                    match epoll::wait(&epoll_fd, &mut events, Some(limit)) {
                        Err(rustix::io::Errno::INTR) => {}
                        result => return result.expect("an epoll") == 1,
                    }
                }
            };
            for round in 0..50 {
                assert!(
                    !woken(&mut *queue, &now),
                    "{} {wake:?}: woken for nothing in round {round}",
                    pair.name
                );
                for token in 0..3 {
                    let buf = queue.alloc(PAGE_BYTES);
                    queue.submit(token, read(0, token * PAGE, buf)).expect("room");
                }
                queue.flush().expect("a working queue");
                let mut out = Vec::new();
                while out.len() < 3 {
                    assert!(woken(&mut *queue, &limit), "{} {wake:?}: not woken in round {round}", pair.name);
                    queue.reap(&mut out);
                    queue.flush().expect("a working queue");
                }
                // The last completion may be reaped before its wake-up arrives; take that one in.
                while woken(&mut *queue, &now) {
                    queue.reap(&mut out);
                }
            }
            if wake == Wake::Level {
                let mut fds = [PollFd::from_borrowed_fd(queue.wake_fd(), PollFlags::IN)];
                assert_eq!(poll(&mut fds, Some(&now)).expect("a poll"), 0, "{}: not cleared", pair.name);
            }
        }
    }
}

#[test]
fn buffers_come_from_the_slab_while_it_lasts() {
    for pair in pairs() {
        let mut queue = pair.open(QueueOptions { depth: 2, slab_slots: 4, ..QueueOptions::default() });
        let mut held: Vec<IoBuf> = (0..6).map(|_| queue.alloc(PAGE_BYTES)).collect();
        let from_slab = held.iter().filter(|buf| format!("{buf:?}").contains("slab")).count();
        assert_eq!(from_slab, 4, "{}", pair.name);
        // Both sorts can be read into.
        for buf in [held.remove(0), held.remove(4)] {
            assert_eq!(one(&mut *queue, read(0, 0, buf)).result.expect("success"), PAGE_BYTES);
        }
        held.clear();
        assert!(
            format!("{:?}", queue.alloc(PAGE_BYTES)).contains("slab"),
            "{}: no slot came back",
            pair.name
        );
    }
}

#[test]
fn a_slot_of_another_queue_can_be_read_into() {
    for pair in pairs() {
        let (mut owner, mut user) = (pair.depth(2), pair.depth(2));
        let mut pattern = IoBuf::zeroed(PAGE_BYTES);
        pattern.fill(0x5a);
        one(&mut *user, write(0, 0, pattern)).result.expect("success");
        let buf = owner.alloc(PAGE_BYTES);
        drop(owner);
        let done = one(&mut *user, read(0, 0, buf));
        let IoOp::Read { buf, .. } = done.op else { panic!("a read came back as a write") };
        assert!(buf.iter().all(|&b| b == 0x5a), "{}", pair.name);
    }
}

#[test]
fn memory_falls_back_to_threads_and_says_why() {
    let devices = [Arc::new(MemoryDevice::new(MIB)) as Arc<dyn Device>];
    let opened = open_queue(IoKind::Auto, &devices, QueueOptions::default()).expect("a queue");
    assert_eq!(opened.kind, IoKind::Threads);
    assert_eq!(opened.fallback, Some(UringUnavailable::NoDescriptor(0)));
    let Err(error) = open_queue(IoKind::Uring, &devices, QueueOptions::default()) else {
        panic!("a ring over memory");
    };
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}
