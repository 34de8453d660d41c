//! Events on their way from threads that serve requests, one at a time, to the one that learns from them: a bounded
//! ring. One that is full drops what comes, and counts it: no request waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use super::prefix::{NUMBER_BITS, PrefixNumber};
use super::{Event, Op};
use crate::clock::{Expiry, Seconds};
use crate::index::hash::KeyHash;

/// An event as it lies in the ring: the hash, and two words.
///
/// ```text
///  63                               32 31                                0
/// +-----------------------------------+-----------------------------------+
/// |              expiry               |               bytes               |
/// +--------------------+----+---------+-----------------------------------+
/// |  prefix, 28 bits   |read| op, 3   |              second               |
/// +--------------------+----+---------+-----------------------------------+
/// ```
type Words = [AtomicU64; 3];

const OP_SHIFT: u32 = 32;
const READ_SHIFT: u32 = OP_SHIFT + 3;
const PREFIX_SHIFT: u32 = READ_SHIFT + 1;
const _: () = assert!(PREFIX_SHIFT + NUMBER_BITS == u64::BITS && Op::ALL.len() <= 8);

struct Ring {
    slots: Box<[Words]>,
    /// Events taken, and events put; modulo 2^32.
    taken: AtomicU32,
    put: AtomicU32,
    dropped: AtomicU64,
}

/// The end of a ring that belongs to the threads which serve requests: one at a time.
pub struct EventSender(Arc<Ring>);

/// The end of a ring that belongs to the thread which takes the events.
pub struct EventReceiver(Arc<Ring>);

/// Returns the memory that a ring of so many events takes, in bytes.
pub const fn ring_bytes(slots: usize) -> usize {
    slots * size_of::<Words>()
}

/// Returns the two ends of a ring for `slots` events, a power of two.
///
/// # Panics
/// If it is none.
pub fn event_ring(slots: usize) -> (EventSender, EventReceiver) {
    assert!(slots.is_power_of_two(), "slots are counted modulo 2^32");
    let ring = Arc::new(Ring {
        slots: (0..slots).map(|_| Words::default()).collect(),
        taken: AtomicU32::new(0),
        put: AtomicU32::new(0),
        dropped: AtomicU64::new(0),
    });
    (EventSender(ring.clone()), EventReceiver(ring))
}

impl EventSender {
    /// Sends an event. It is dropped if the ring is full.
    pub fn send(&mut self, event: &Event) {
        self.send_with(|| *event);
    }

    /// The same of an event that is only made if there is room for it.
    #[inline]
    pub(super) fn send_with(&mut self, event: impl FnOnce() -> Event) {
        let ring = &*self.0;
        let put = ring.put.load(Relaxed);
        if put.wrapping_sub(ring.taken.load(Acquire)) as usize >= ring.slots.len() {
            ring.dropped.fetch_add(1, Relaxed);
            return;
        }
        let event = event();
        let [key, item, what] = &ring.slots[put as usize & (ring.slots.len() - 1)];
        key.store(event.hash.bits(), Relaxed);
        item.store(u64::from(event.expiry.to_raw()) << 32 | u64::from(event.bytes), Relaxed);
        let prefix = event.prefix.map_or(0, PrefixNumber::bits);
        let about = u64::from(prefix) << PREFIX_SHIFT | u64::from(event.has_read) << READ_SHIFT;
        what.store(about | (event.op as u64) << OP_SHIFT | u64::from(event.now.0), Relaxed);
        ring.put.store(put.wrapping_add(1), Release);
    }
}

impl EventReceiver {
    /// Takes the oldest event.
    pub fn take(&mut self) -> Option<Event> {
        let ring = &*self.0;
        let taken = ring.taken.load(Relaxed);
        if taken == ring.put.load(Acquire) {
            return None;
        }
        let [hash, item, what] =
            ring.slots[taken as usize % ring.slots.len()].each_ref().map(|word| word.load(Relaxed));
        ring.taken.store(taken.wrapping_add(1), Release);
        Some(Event {
            hash: KeyHash(hash),
            op: Op::ALL[(what >> OP_SHIFT & 7) as usize % Op::ALL.len()],
            bytes: item as u32,
            expiry: Expiry::from_raw((item >> 32) as u32),
            now: Seconds(what as u32),
            has_read: what >> READ_SHIFT & 1 != 0,
            prefix: PrefixNumber::from_bits((what >> PREFIX_SHIFT) as u32),
        })
    }

    /// Returns how many events found no room.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(number: u32) -> Event {
        Event {
            hash: KeyHash(u64::from(number) << 16),
            op: Op::ALL[number as usize % Op::ALL.len()],
            bytes: number.wrapping_mul(7),
            expiry: if number.is_multiple_of(3) { Expiry::Never } else { Expiry::At(Seconds(number)) },
            now: Seconds(number + 1),
            has_read: number.is_multiple_of(2),
            prefix: PrefixNumber::from_bits(number.wrapping_mul(99) % (1 << NUMBER_BITS)),
        }
    }

    #[test]
    fn events_come_out_as_they_went_in_and_what_finds_no_room_is_counted() {
        let (mut sender, mut receiver) = event_ring(4);
        assert!(receiver.take().is_none());
        for number in 0..6 {
            sender.send(&event(number));
        }
        assert_eq!(receiver.dropped(), 2);
        (0..4).for_each(|number| assert_eq!(receiver.take(), Some(event(number))));
        assert!(receiver.take().is_none());
        sender.send(&event(9));
        assert_eq!(receiver.take(), Some(event(9)));
    }

    #[test]
    fn between_two_threads_no_event_is_torn_or_comes_twice() {
        const EVENTS: u32 = 300_000;
        let (mut sender, mut receiver) = event_ring(256);
        let sending = std::thread::spawn(move || (0..EVENTS).for_each(|number| sender.send(&event(number))));
        let (mut last, mut count) = (None, 0);
        loop {
            let is_over = sending.is_finished();
            let Some(taken) = receiver.take() else {
                if is_over {
                    break;
                }
                std::thread::yield_now();
                continue;
            };
            assert_eq!(taken, event(taken.now.0 - 1));
            assert!(last < Some(taken.now.0), "{last:?}, then {taken:?}");
            last = Some(taken.now.0);
            count += 1;
        }
        assert_eq!(count + receiver.dropped(), u64::from(EVENTS));
        sending.join().expect("it sends");
    }
}
