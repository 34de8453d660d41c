//! A worker's reads and writes in flight: the sessions that asked for them, bounds on their number, and their
//! completion.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use larder_device::{Completion, IoBuf, IoOp, IoQueue};
use larder_store::{Loaded, ReadPlan, Seconds, WriteJob};

use super::Worker;
use crate::budget::LIGHT_BYTES;
use crate::config::Config;
use crate::session::{Memory, ReadBuffer, Ticket};
use crate::shared::Shared;

enum Operation {
    /// A session's read.
    Read {
        token: u64,
        wanted: WantedRead,
    },
    /// A read of the store's own, for the readmission of items that were read.
    Readmission(ReadPlan),
    Write(WriteJob),
}

/// One read of the device, and the gets of a session that wait for it.
struct WantedRead {
    ticket: Ticket,
    plan: ReadPlan,
    /// Gets of other items in the same page, by their tickets.
    others: Vec<(u64, ReadPlan)>,
}

impl WantedRead {
    /// Returns the bytes of the budget that were taken for it.
    fn bytes(&self) -> usize {
        self.plan.bytes() + self.others.iter().map(|(_, plan)| plan.bytes()).sum::<usize>()
    }

    /// Returns whether the read brings the page that another get asks for.
    fn serves(&self, (ticket, plan): &(Ticket, ReadPlan)) -> bool {
        let place = |plan: &ReadPlan| (plan.device(), plan.offset(), plan.bytes());
        matches!((self.ticket, ticket), (Ticket::Get(_), Ticket::Get(_))) && place(&self.plan) == place(plan)
    }
}

/// The I/O queue and its operations.
pub(super) struct InFlight {
    queue: Option<Box<dyn IoQueue>>,
    operations: Vec<Option<Operation>>,
    /// When each of them was submitted; `None` until the queue was flushed.
    started: Vec<Option<Instant>>,
    /// The places of those submitted since the queue was flushed.
    unflushed: Vec<u32>,
    free: Vec<u32>,
    /// Reads that a session asks for, between its call and their submission.
    wanted: Vec<(Ticket, ReadPlan)>,
    /// Reads that the queue had no place for.
    deferred: Vec<(u64, WantedRead)>,
    completions: Vec<Completion>,
    reads: usize,
    reads_max: usize,
    /// Bytes of light reads and of heavy ones.
    light_bytes: usize,
    heavy_bytes: usize,
    threads: usize,
    failures_logged: Option<Instant>,
}

/// Places in the queue that are kept for writes.
const WRITE_PLACES: usize = 8;
/// Reads of one SSD in flight over all workers. No SSD needs more to deliver all it can, and each read beyond makes
/// the next one wait.
const DEVICE_READS_MAX: usize = 128;
/// Reads that one worker may have in flight however many workers there are.
const WORKER_READS_MIN: usize = 32;
/// Bytes of light reads in flight over all workers, or one read each. This bounds the wait for a device, not
/// memory.
const LIGHT_BYTES_MAX: usize = 8 << 20;
/// The same for heavy ones: as many bytes are ahead of a light read, which a device delivers in one or two
/// milliseconds.
const HEAVY_BYTES_MAX: usize = 2 << 20;

impl InFlight {
    pub(super) fn new(queue: Option<Box<dyn IoQueue>>, config: &Config) -> InFlight {
        let threads = config.threads.max(1);
        let depth = queue.as_ref().map_or(0, |queue| queue.depth().saturating_sub(WRITE_PLACES));
        let reads_max = (DEVICE_READS_MAX * config.ssd.len() / threads).max(WORKER_READS_MIN).min(depth);
        InFlight {
            queue,
            operations: Vec::new(),
            started: Vec::new(),
            unflushed: Vec::new(),
            free: Vec::new(),
            wanted: Vec::new(),
            deferred: Vec::new(),
            completions: Vec::new(),
            reads: 0,
            reads_max,
            light_bytes: 0,
            heavy_bytes: 0,
            threads,
            failures_logged: None,
        }
    }

    /// Returns the number of reads that may still be asked for.
    pub(super) fn room(&self) -> usize {
        if self.light_bytes >= LIGHT_BYTES_MAX / self.threads {
            0
        } else {
            self.reads_max.saturating_sub(self.reads + self.deferred.len())
        }
    }

    /// Returns the bytes left for heavy reads. While they are not 0, another heavy read may be asked for.
    pub(super) fn heavy_room_bytes(&self) -> usize {
        (HEAVY_BYTES_MAX / self.threads).saturating_sub(self.heavy_bytes)
    }

    /// Returns the bytes in flight of the class of reads of this size.
    fn class_bytes(&mut self, bytes: usize) -> &mut usize {
        if bytes as u64 > LIGHT_BYTES { &mut self.heavy_bytes } else { &mut self.light_bytes }
    }

    /// Returns the bytes of the reads that a session asked for and that are not submitted yet.
    pub(super) fn wanted_bytes(&self) -> usize {
        self.wanted.iter().map(|(_, plan)| plan.bytes()).sum()
    }

    pub(super) fn wanted(&mut self) -> &mut Vec<(Ticket, ReadPlan)> {
        &mut self.wanted
    }

    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty() && self.queue.as_ref().is_some_and(|queue| queue.in_flight() == 0)
    }

    /// Returns whether an operation has finished already: asked before sleeping.
    pub(super) fn is_ready(&mut self) -> bool {
        self.queue.as_mut().is_some_and(|queue| queue.is_ready())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.as_ref().is_none_or(|queue| queue.in_flight() == 0)
    }

    /// Submits the reads that a session asked for: gets of one page as one read.
    pub(super) fn submit_wanted(&mut self, token: u64, shared: &Shared, now: Seconds) {
        if self.wanted.len() > 1 {
            self.wanted.sort_by_key(|(_, plan)| (plan.device(), plan.offset()));
        }
        while let Some((ticket, plan)) = self.wanted.pop() {
            let mut wanted = WantedRead { ticket, plan, others: Vec::new() };
            while let Some((Ticket::Get(ticket), plan)) = self.wanted.pop_if(|other| wanted.serves(other)) {
                wanted.others.push((ticket, plan));
            }
            self.submit_read(Operation::Read { token, wanted }, shared, now);
        }
    }

    fn put(&mut self, operation: Operation) -> u32 {
        let place = self.free.pop().unwrap_or(self.operations.len() as u32);
        if place as usize == self.operations.len() {
            self.operations.push(None);
            self.started.push(None);
        }
        self.operations[place as usize] = Some(operation);
        self.started[place as usize] = None;
        self.unflushed.push(place);
        place
    }

    fn take(&mut self, place: u64) -> Option<Operation> {
        let operation = self.operations.get_mut(place as usize)?.take()?;
        self.free.push(place as u32);
        Some(operation)
    }

    fn submit_read(&mut self, operation: Operation, shared: &Shared, now: Seconds) {
        let (Operation::Read { wanted: WantedRead { plan, .. }, .. } | Operation::Readmission(plan)) =
            &operation
        else {
            return;
        };
        let (device, offset, bytes) = (plan.device(), plan.offset(), plan.bytes());
        let Some(queue) = &mut self.queue else { return };
        let op = IoOp::Read { device, offset, buf: queue.alloc(bytes) };
        let place = self.put(operation);
        let Some(queue) = &mut self.queue else { return };
        if queue.submit(u64::from(place), op).is_err() {
            match self.take(u64::from(place)) {
                Some(Operation::Read { token, wanted }) => self.deferred.push((token, wanted)),
                // No request waits for it, but the store must be told its outcome.
                Some(Operation::Readmission(plan)) => {
                    shared.store.readmit(Loaded { plan: &plan, bytes: None }, now)
                }
                _ => {}
            }
            return;
        }
        self.reads += 1;
        *self.class_bytes(bytes) += bytes;
        shared.reads_in_flight.fetch_add(1, Relaxed);
    }

    /// Submits the reads that the queue had no place for.
    fn submit_deferred(&mut self, shared: &Shared, now: Seconds) {
        for (token, wanted) in std::mem::take(&mut self.deferred) {
            self.submit_read(Operation::Read { token, wanted }, shared, now);
        }
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.unflushed.is_empty() {
            let now = Instant::now();
            for place in self.unflushed.drain(..) {
                self.started[place as usize] = Some(now);
            }
        }
        self.queue.as_mut().map_or(Ok(()), |queue| queue.flush())
    }

    /// Returns how long an operation was under way that is taken back now.
    fn time_of(&mut self, place: u64, now: Instant) -> Option<Duration> {
        let started = self.started.get_mut(place as usize)?.take()?;
        Some(now.saturating_duration_since(started))
    }

    fn reap(&mut self) -> Vec<Completion> {
        let mut completions = std::mem::take(&mut self.completions);
        if let Some(queue) = self.queue.as_mut().filter(|queue| queue.in_flight() > 0) {
            queue.reap(&mut completions);
        }
        completions
    }

    /// Returns whether a failure may be logged now: one a second.
    fn may_log(&mut self, now: Instant) -> bool {
        let quiet = self.failures_logged.is_none_or(|last| now.duration_since(last).as_secs() >= 1);
        if quiet {
            self.failures_logged = Some(now);
        }
        quiet
    }
}

impl Worker {
    /// Takes finished reads and writes, and continues the sessions that waited for them.
    pub(super) fn complete_io(&mut self) -> io::Result<()> {
        self.received_bytes = 0;
        let mut completions = self.in_flight.reap();
        if !completions.is_empty() {
            self.instant = Instant::now();
        }
        for completion in completions.drain(..) {
            let Some(operation) = self.in_flight.take(completion.token) else { continue };
            self.record_time(completion.token, completion.op.is_write());
            if let Err(error) = &completion.result {
                self.report(&completion.op, error);
            }
            match (operation, completion.op) {
                (Operation::Write(job), op) => {
                    // A write that failed may have been performed.
                    self.shared.note_written(job.device, op.byte_len() as u64);
                    drop(op);
                    let ok = completion.result.is_ok();
                    if !ok {
                        self.counters().ssd_write_errors.up();
                    }
                    self.shared.store.complete_write(job, ok, self.now);
                }
                (operation, IoOp::Read { buf, .. }) => self.complete_read(operation, buf, completion.result),
                (_, IoOp::Write { .. }) => unreachable!("a read was submitted as a read"),
            }
        }
        self.in_flight.completions = completions;
        // Several replies of one connection are sent together.
        let mut answered = std::mem::take(&mut self.answered);
        for token in answered.drain(..) {
            self.drive(token);
        }
        self.answered = answered;
        self.in_flight.submit_deferred(&self.shared, self.now);
        Ok(())
    }

    /// Records how long an operation took the device.
    fn record_time(&mut self, place: u64, is_write: bool) {
        let Some(time) = self.in_flight.time_of(place, self.instant) else { return };
        let latencies = &self.shared.latencies[self.number];
        let histogram = if is_write { &latencies.ssd_writes } else { &latencies.ssd_reads };
        histogram.record(time);
    }

    fn complete_read(&mut self, operation: Operation, buffer: IoBuf, result: io::Result<usize>) {
        self.in_flight.reads -= 1;
        *self.in_flight.class_bytes(buffer.len()) -= buffer.len();
        self.shared.reads_in_flight.fetch_sub(1, Relaxed);
        let counters = self.counters();
        counters.ssd_device_reads.up();
        let bytes = match result {
            Ok(bytes) => {
                counters.ssd_bytes_read.add(bytes as u64);
                Some(bytes)
            }
            Err(_) => {
                counters.ssd_read_errors.up();
                self.shared.store.count_read_error();
                None
            }
        };
        match operation {
            Operation::Read { token, wanted } => {
                let is_last = self.lend_output_for_last(token);
                let read_bytes = wanted.bytes();
                let WantedRead { ticket, plan, others } = wanted;
                self.with_finished_read(token, |session, ctx| {
                    for (ticket, plan) in others {
                        let read = ReadBuffer { memory: Memory::Shared(&buffer), bytes };
                        session.get_done(ctx, ticket, &plan, read);
                    }
                    session.read_done(ctx, ticket, plan, buffer, bytes);
                });
                // The reply needs no more memory than was taken for the read.
                self.settle(token, read_bytes);
                if is_last {
                    self.drive(token);
                } else {
                    self.answered.push(token);
                }
            }
            Operation::Readmission(plan) => {
                let loaded = Loaded { plan: &plan, bytes: bytes.map(|bytes| &buffer[..bytes]) };
                self.shared.store.readmit(loaded, self.now);
            }
            Operation::Write(_) => {}
        }
    }

    /// Logs a failed operation, at most one a second.
    fn report(&mut self, op: &IoOp, error: &io::Error) {
        if self.in_flight.may_log(self.instant) {
            let off =
                if self.shared.store.ssd_is_off() { "; the SSD tier is off, RAM serves alone" } else { "" };
            tracing::error!(?op, %error, "an SSD operation failed{off}");
        }
    }

    /// Starts the writes and the upkeep reads that may start now.
    pub(super) fn start_writes(&mut self) {
        if self.in_flight.queue.is_none() {
            return;
        }
        loop {
            let reads_wait = self.shared.reads_in_flight.load(Relaxed) > 0;
            let Some(job) = self.shared.store.next_write(reads_wait) else { break };
            let (device, offset, len) = (job.device, job.offset, job.data().len());
            let op = IoOp::Write { device, offset, source: Box::new(job.share()), len };
            let place = self.in_flight.put(Operation::Write(job));
            let Some(queue) = &mut self.in_flight.queue else { break };
            if let Err(op) = queue.submit(u64::from(place), op) {
                drop(op);
                if let Some(Operation::Write(job)) = self.in_flight.take(u64::from(place)) {
                    self.shared.store.put_back(job);
                }
                break;
            }
        }
        if self.in_flight.room() > 0 {
            while let Some(plan) = self.shared.store.next_readmission() {
                self.in_flight.submit_read(Operation::Readmission(plan), &self.shared, self.now);
            }
        }
    }
}
