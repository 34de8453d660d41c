//! A device that misbehaves on demand, reproducibly from a seed. Never misbehaves unasked.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::fault_plan::FaultPlan;
use super::{Device, Fault, FaultCounts, FaultRule, IoBuf, OpKind, PAGE_BYTES, check_range};

/// Pages whose former content is kept for stale reads.
const HISTORY_PAGES_MAX: usize = 16_384;

/// What a disk writes in one piece even when the power fails.
const SECTOR_BYTES: usize = 512;

/// A device around another one, with faults. Which operations are hit, and how, follows from the seed and the
/// order of operations alone.
pub struct FaultDevice<D> {
    inner: D,
    state: Mutex<State>,
    slow_hook: Option<Box<dyn Fn(u64) + Send + Sync>>,
}

struct State {
    plan: FaultPlan,
    history: HashMap<u64, IoBuf>,
    history_order: VecDeque<u64>,
}

impl<D: Device> FaultDevice<D> {
    /// A well-behaved device until rules are added.
    pub fn new(inner: D, seed: u64) -> Self {
        let state =
            State { plan: FaultPlan::new(seed), history: HashMap::new(), history_order: VecDeque::new() };
        FaultDevice { inner, state: Mutex::new(state), slow_hook: None }
    }

    /// Told each slow operation's ticks before it is performed.
    pub fn with_slow_hook(mut self, hook: impl Fn(u64) + Send + Sync + 'static) -> Self {
        self.slow_hook = Some(Box::new(hook));
        self
    }

    /// Adds a rule. Stale reads show only bytes overwritten after the rule was added.
    pub fn inject(&self, rule: FaultRule) {
        self.state().plan.add(rule);
    }

    /// Takes all rules back. Damage done stays.
    pub fn heal(&self) {
        let mut state = self.state();
        state.plan.clear();
        state.history.clear();
        state.history_order.clear();
    }

    /// What has been done so far.
    pub fn counts(&self) -> FaultCounts {
        self.state().plan.counts().clone()
    }

    /// The device inside.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault for the next operation, and a random number to shape it. It is counted as injected.
    fn draw(&self, kind: OpKind, range: Range<u64>, can: impl Fn(Fault) -> bool) -> Option<(Fault, u64)> {
        let drawn = self.state().plan.draw(kind, range, can);
        if let (Some((Fault::Slow(ticks), _)), Some(hook)) = (drawn, &self.slow_hook) {
            hook(ticks);
        }
        drawn
    }

    /// Keeps the pages a write is about to overwrite, if a rule may want them.
    fn remember(&self, offset: u64, len: usize) {
        let mut state = self.state();
        if !state.plan.knows(Fault::Stale) {
            return;
        }
        let page_bytes = PAGE_BYTES as u64;
        for page in offset / page_bytes..(offset + len as u64).div_ceil(page_bytes) {
            let mut content = IoBuf::zeroed(PAGE_BYTES);
            if self.inner.read_at(&mut content, page * page_bytes).is_err() {
                continue;
            }
            if state.history.insert(page, content).is_none() {
                state.history_order.push_back(page);
            }
            if state.history.len() > HISTORY_PAGES_MAX
                && let Some(oldest) = state.history_order.pop_front()
            {
                state.history.remove(&oldest);
            }
        }
    }

    fn recall(&self, buf: &mut [u8], offset: u64) {
        let state = self.state();
        let page_bytes = PAGE_BYTES as u64;
        for page in offset / page_bytes..(offset + buf.len() as u64).div_ceil(page_bytes) {
            let Some(content) = state.history.get(&page) else {
                continue;
            };
            let from = (page * page_bytes).max(offset);
            let to = ((page + 1) * page_bytes).min(offset + buf.len() as u64);
            let within = (from - page * page_bytes) as usize..(to - page * page_bytes) as usize;
            buf[(from - offset) as usize..(to - offset) as usize].copy_from_slice(&content[within]);
        }
    }

    /// Another place for `len` bytes, a whole number of pages away.
    fn elsewhere(&self, offset: u64, len: usize, random: u64) -> u64 {
        let page_bytes = PAGE_BYTES as u64;
        let within = offset % page_bytes;
        let places = (self.inner.len() - len as u64 - within) / page_bytes + 1;
        (offset / page_bytes + 1 + random % (places - 1)) % places * page_bytes + within
    }

    fn has_elsewhere(&self, offset: u64, len: usize) -> bool {
        let beside = PAGE_BYTES as u64 + offset % PAGE_BYTES as u64;
        len > 0 && (len as u64).checked_add(beside).is_some_and(|bytes| bytes <= self.inner.len())
    }

    fn write_damaged(&self, buf: &[u8], offset: u64, random: u64) -> io::Result<usize> {
        let mut copy = IoBuf::zeroed(buf.len().next_multiple_of(PAGE_BYTES));
        copy[..buf.len()].copy_from_slice(buf);
        flip(&mut copy[..buf.len()], random);
        self.inner.write_at(&copy[..buf.len()], offset)
    }
}

fn flip(buf: &mut [u8], random: u64) {
    let bit = random % (buf.len() as u64 * 8);
    buf[(bit / 8) as usize] ^= 1 << (bit % 8);
}

/// A length below `len`, above 0, and a multiple of `unit`; `len` is more than one unit.
fn part(len: usize, unit: usize, random: u64) -> usize {
    (1 + random as usize % (len / unit - 1)) * unit
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl<D: Device> Device for FaultDevice<D> {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (len, unit) = (buf.len(), self.inner.alignment());
        let can = |fault| match fault {
            Fault::Torn | Fault::Lost => false,
            Fault::Short => len >= 2 * unit,
            Fault::Misdirected => self.has_elsewhere(offset, len),
            Fault::FlippedBit => len > 0 && offset < self.inner.len(),
            _ => true,
        };
        let range = offset..offset.saturating_add(len as u64);
        let Some((fault, random)) = self.draw(OpKind::Read, range, can) else {
            return self.inner.read_at(buf, offset);
        };
        match fault {
            Fault::Error => Err(errno(libc::EIO)),
            Fault::Full => Err(errno(libc::ENOSPC)),
            Fault::Interrupted => Err(errno(libc::EINTR)),
            Fault::Short => self.inner.read_at(&mut buf[..part(len, unit, random)], offset),
            Fault::Misdirected => self.inner.read_at(buf, self.elsewhere(offset, len, random)),
            Fault::Stale => {
                let n = self.inner.read_at(buf, offset)?;
                self.recall(&mut buf[..n], offset);
                Ok(n)
            }
            Fault::FlippedBit => {
                let n = self.inner.read_at(buf, offset)?;
                flip(&mut buf[..n], random);
                Ok(n)
            }
            Fault::Torn | Fault::Lost | Fault::Slow(_) => self.inner.read_at(buf, offset),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let (len, unit) = (buf.len(), self.inner.alignment());
        check_range(self.inner.len(), offset, len as u64)?;
        self.remember(offset, len);
        let can = |fault| match fault {
            Fault::Stale => false,
            Fault::Short => len >= 2 * unit,
            Fault::Torn => len >= 2 * SECTOR_BYTES.max(unit),
            Fault::Misdirected => self.has_elsewhere(offset, len),
            Fault::Lost | Fault::FlippedBit => len > 0,
            _ => true,
        };
        let range = offset..offset + len as u64;
        let Some((fault, random)) = self.draw(OpKind::Write, range, can) else {
            return self.inner.write_at(buf, offset);
        };
        match fault {
            Fault::Error => {
                if len >= 2 * unit {
                    self.inner.write_at(&buf[..part(len, unit, random)], offset)?;
                }
                Err(errno(libc::EIO))
            }
            Fault::Full => Err(errno(libc::ENOSPC)),
            Fault::Interrupted => Err(errno(libc::EINTR)),
            Fault::Short => self.inner.write_at(&buf[..part(len, unit, random)], offset),
            Fault::Torn => {
                self.inner.write_at(&buf[..part(len, SECTOR_BYTES.max(unit), random)], offset)?;
                Ok(len)
            }
            Fault::Lost => Ok(len),
            Fault::Misdirected => self.inner.write_at(buf, self.elsewhere(offset, len, random)),
            Fault::FlippedBit => self.write_damaged(buf, offset, random),
            Fault::Stale | Fault::Slow(_) => self.inner.write_at(buf, offset),
        }
    }

    fn discard(&self, offset: u64, len: u64) -> io::Result<()> {
        let range = offset..offset.saturating_add(len);
        let can = |fault| {
            matches!(fault, Fault::Error | Fault::Full | Fault::Interrupted | Fault::Lost | Fault::Slow(_))
        };
        match self.draw(OpKind::Discard, range, can) {
            Some((Fault::Error, _)) => Err(errno(libc::EIO)),
            Some((Fault::Full, _)) => Err(errno(libc::ENOSPC)),
            Some((Fault::Interrupted, _)) => Err(errno(libc::EINTR)),
            Some((Fault::Lost, _)) => Ok(()),
            _ => self.inner.discard(offset, len),
        }
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn alignment(&self) -> usize {
        self.inner.alignment()
    }
}
