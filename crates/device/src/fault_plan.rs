//! Which operations of a faulty device go wrong, and how: rules, luck and counts. Never touches a byte.

use std::collections::HashMap;
use std::ops::Range;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// [`Device::read_at`](super::Device::read_at).
    Read,
    /// [`Device::write_at`](super::Device::write_at).
    Write,
    /// [`Device::discard`](super::Device::discard).
    Discard,
}

/// A way to misbehave. One that makes no sense for an operation (a stale write) leaves it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Fails with `EIO`; a write may have left any part of it.
    Error,
    /// Fails with `ENOSPC`, having done nothing.
    Full,
    /// Fails with `EINTR`, having done nothing.
    Interrupted,
    /// Moves only a part, a multiple of the alignment and not nothing, and says so.
    Short,
    /// Writes only the first few sectors of 512 bytes, and says all.
    Torn,
    /// Writes nothing, and says all.
    Lost,
    /// Writes to or reads from another page.
    Misdirected,
    /// Reads each page as it was before its last write.
    Stale,
    /// Flips one bit on the way.
    FlippedBit,
    /// Takes this many ticks, told to the hook, and is otherwise well.
    Slow(u64),
}

/// Which operations of a kind are hit, counted from the moment the rule was added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// The n-th, from 1.
    Nth(u64),
    /// The n-th, from 1, and all after it.
    From(u64),
    /// Each with this probability, 0 to 1.
    Chance(f64),
}

/// One rule. Of several that hit the same operation the earliest added acts.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// The operations it is about.
    pub kind: OpKind,
    /// What happens to them.
    pub fault: Fault,
    /// To which of them.
    pub when: When,
    /// Only to those that touch this range of bytes, and only those are counted.
    pub within: Option<Range<u64>>,
}

impl FaultRule {
    /// A rule for the whole device.
    pub fn new(kind: OpKind, fault: Fault, when: When) -> Self {
        FaultRule { kind, fault, when, within: None }
    }
}

/// How many operations there were and how many were hit. A rule that could not act is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// All operations, hit or not: reads, writes, discards.
    pub operations: [u64; 3],
    faults: HashMap<(OpKind, Fault), u64>,
}

impl FaultCounts {
    /// Faults of one sort injected.
    pub fn of(&self, kind: OpKind, fault: Fault) -> u64 {
        self.faults.get(&(kind, fault)).copied().unwrap_or(0)
    }

    /// Faults injected in all.
    pub fn total(&self) -> u64 {
        self.faults.values().sum()
    }
}

/// The rules in force, and the randomness that they draw on.
#[derive(Debug)]
pub(super) struct FaultPlan {
    random: u64,
    rules: Vec<(FaultRule, u64)>,
    counts: FaultCounts,
}

impl FaultPlan {
    pub(super) fn new(seed: u64) -> Self {
        FaultPlan { random: seed, rules: Vec::new(), counts: FaultCounts::default() }
    }

    pub(super) fn add(&mut self, rule: FaultRule) {
        self.rules.push((rule, 0));
    }

    pub(super) fn clear(&mut self) {
        self.rules.clear();
    }

    pub(super) fn counts(&self) -> &FaultCounts {
        &self.counts
    }

    /// Whether any rule is about this fault.
    pub(super) fn knows(&self, fault: Fault) -> bool {
        self.rules.iter().any(|(rule, _)| rule.fault == fault)
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The fault for the next operation of a kind on a range, among those that `can` act on it, and a random
    /// number to shape it. It is counted as injected.
    pub(super) fn draw(
        &mut self,
        kind: OpKind,
        range: Range<u64>,
        can: impl Fn(Fault) -> bool,
    ) -> Option<(Fault, u64)> {
        self.counts.operations[kind as usize] += 1;
        // One number an operation for each purpose, whatever the rules: adding one does not shift the others'
        // luck.
        let (luck, shape) = (self.next_random(), self.next_random());
        let mut drawn = None;
        for (number, (rule, seen)) in self.rules.iter_mut().enumerate() {
            let touches = rule.within.as_ref().is_none_or(|w| w.start < range.end && range.start < w.end);
            if rule.kind != kind || !touches {
                continue;
            }
            *seen += 1;
            let hit = match rule.when {
                When::Nth(n) => *seen == n,
                When::From(n) => *seen >= n,
                When::Chance(p) => unit(luck.rotate_left(13 * number as u32)) < p,
            };
            if hit && drawn.is_none() && can(rule.fault) {
                drawn = Some(rule.fault);
            }
        }
        let fault = drawn?;
        *self.counts.faults.entry((kind, fault)).or_default() += 1;
        Some((fault, shape))
    }
}

/// A random number as a fraction of 1.
fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}
