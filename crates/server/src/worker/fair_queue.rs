//! The order in which waiting connections get their turns.
//!
//! Connections whose turns are light and those whose turns are heavy share alike: while both wait, each class is
//! served as many bytes as the other. So a light turn never waits for more than a heavy one or two. Within a
//! class, turns are given by weighted fair queueing (Demers, Keshav and Shenker, 1989), all connections alike:
//! next is the turn that would end first if all that wait were served at once, a byte each in turn.

use std::collections::BTreeMap;

use crate::budget::LIGHT_BYTES;

/// A connection's account, in bytes of service.
#[derive(Clone, Copy, Default)]
pub(super) struct Account {
    /// The virtual time at which what it was served is paid for.
    paid: u64,
    /// What one of its turns takes, going by the last ones.
    turn_bytes: u64,
}

/// How far one class can get ahead of the other.
const LEAD_BYTES_MAX: i64 = 2 << 20;

impl Account {
    /// Whether its turns are light.
    pub(super) fn is_light(&self) -> bool {
        self.turn_bytes <= LIGHT_BYTES
    }

    /// Notes that its next turn takes `bytes` at least, before it is charged with them.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.turn_bytes = self.turn_bytes.max(bytes);
    }
}

/// What accounts are kept by: one for all queues that the same connections wait in, so that what is served from
/// one of them counts in the others.
#[derive(Default)]
pub(super) struct Clock {
    /// The virtual time: bytes served, divided by the connections that waited meanwhile.
    now: u64,
    /// How many bytes more the light class was served than the heavy one while others waited.
    lead_bytes: i64,
}

impl Clock {
    /// Notes that a connection was served `bytes` in a turn while `waiting` others waited.
    pub(super) fn charge(&mut self, account: &mut Account, bytes: u64, waiting: usize) {
        let lead_bytes = if account.is_light() { bytes as i64 } else { -(bytes as i64) };
        account.paid = account.paid.max(self.now) + bytes;
        // One light turn does not make a heavy peer light.
        account.turn_bytes = bytes.max(account.turn_bytes / 2);
        self.now += bytes / (waiting as u64 + 1);
        self.lead_bytes = match waiting {
            0 => 0,
            _ => (self.lead_bytes + lead_bytes).clamp(-LEAD_BYTES_MAX, LEAD_BYTES_MAX),
        };
    }
}

/// Which connections a turn can be given to now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// Those whose turns are light, since there is nothing for heavy ones.
    Light,
    /// All.
    All,
}

/// Connections that wait for one thing, by their tokens.
#[derive(Default)]
pub(super) struct FairQueue {
    /// Light ones and heavy ones, by the virtual time at which their turn would end, and then by arrival.
    classes: [BTreeMap<(u64, u64), u64>; 2],
    arrivals: u64,
}

impl FairQueue {
    /// Connections that wait.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(BTreeMap::len).sum()
    }

    /// A connection waits from now on.
    pub(super) fn push(&mut self, clock: &Clock, token: u64, account: &Account) {
        self.arrivals += 1;
        let end = account.paid.max(clock.now) + account.turn_bytes;
        self.classes[usize::from(!account.is_light())].insert((end, self.arrivals), token);
    }

    fn next_class(&self, clock: &Clock, among: Among) -> usize {
        match self.classes.each_ref().map(BTreeMap::is_empty) {
            _ if among == Among::Light => 0,
            [false, false] => usize::from(clock.lead_bytes > 0),
            [is_empty, _] => usize::from(is_empty),
        }
    }

    /// The connection whose turn is next.
    pub(super) fn first(&self, clock: &Clock, among: Among) -> Option<u64> {
        self.classes[self.next_class(clock, among)].first_key_value().map(|(_, token)| *token)
    }

    /// Takes the connection whose turn is next.
    pub(super) fn pop(&mut self, clock: &Clock, among: Among) -> Option<u64> {
        self.classes[self.next_class(clock, among)].pop_first().map(|(_, token)| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the next one, which then waits again.
    fn serve(
        clock: &mut Clock,
        queue: &mut FairQueue,
        accounts: &mut [Account],
        bytes: impl Fn(usize) -> u64,
    ) -> usize {
        let next = queue.pop(clock, Among::All).expect("one waits") as usize;
        clock.charge(&mut accounts[next], bytes(next), queue.len());
        queue.push(clock, next as u64, &accounts[next]);
        next
    }

    fn all_wait(accounts: &[Account]) -> (Clock, FairQueue) {
        let (clock, mut queue) = (Clock::default(), FairQueue::default());
        accounts.iter().enumerate().for_each(|(token, account)| queue.push(&clock, token as u64, account));
        (clock, queue)
    }

    #[test]
    fn a_light_turn_waits_for_next_to_nothing_whatever_heavy_ones_are_queued() {
        let mut accounts = [Account::default(); 101];
        let (mut clock, mut queue) = all_wait(&accounts[..100]);
        for _ in 0..300 {
            serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
        }
        for _ in 0..1000 {
            queue.push(&clock, 100, &accounts[100]);
            let mut ahead = 0;
            while queue.first(&clock, Among::All) != Some(100) {
                serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
                ahead += 1;
            }
            assert!(ahead <= 1, "{ahead} of a hundred are ahead");
            queue.pop(&clock, Among::All);
            clock.charge(&mut accounts[100], 8192, queue.len());
            serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
        }
    }

    #[test]
    fn a_heavy_turn_comes_however_many_light_ones_wait() {
        let mut accounts = [Account::default(); 101];
        let (mut clock, mut queue) = all_wait(&accounts);
        let bytes = |token| if token == 100 { 1 << 20 } else { 4096 };
        let mut served = [0; 2];
        for _ in 0..10_000 {
            let next = serve(&mut clock, &mut queue, &mut accounts, bytes);
            served[usize::from(next == 100)] += bytes(next);
        }
        let [light, heavy] = served;
        assert!(heavy > light / 3 && heavy < light * 3, "{light} and {heavy} bytes");
    }

    #[test]
    fn connections_that_are_alike_take_turns() {
        for bytes in [4096, 1 << 20] {
            let mut accounts = [Account::default(); 5];
            let (mut clock, mut queue) = all_wait(&accounts);
            let mut counts = [0; 5];
            for _ in 0..100 {
                counts[serve(&mut clock, &mut queue, &mut accounts, |_| bytes)] += 1;
            }
            assert!(counts.iter().all(|count| (19..=21).contains(count)), "{counts:?}");
        }
    }

    #[test]
    fn connections_that_are_alike_are_served_alike_whichever_queue_they_wait_in() {
        let mut accounts = [Account::default(); 32];
        let mut clock = Clock::default();
        let mut queues = [FairQueue::default(), FairQueue::default()];
        let mut served = [0; 32];
        for (token, account) in accounts.iter().enumerate() {
            queues[token % 2].push(&clock, token as u64, account);
        }
        // The queues are served by turns of different lengths; a connection waits now in one, now in the other.
        for turn in 0..30_000_usize {
            let from = usize::from(turn % 100 < 60);
            let Some(next) =
                queues[from].pop(&clock, Among::All).or_else(|| queues[1 - from].pop(&clock, Among::All))
            else {
                break;
            };
            let waiting = queues.iter().map(FairQueue::len).sum();
            clock.charge(&mut accounts[next as usize], 8192, waiting);
            served[next as usize] += 1;
            let to = turn.wrapping_mul(0x9E37_79B9) >> 16 & 1;
            queues[to].push(&clock, next, &accounts[next as usize]);
        }
        let (least, most) = (served.iter().min(), served.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| least * 10 >= most * 9), "{served:?}");
    }

    #[test]
    fn a_connection_that_waits_for_much_is_heavy_before_its_first_turn() {
        let (clock, mut queue) = (Clock::default(), FairQueue::default());
        for token in 0..600 {
            let mut account = Account::default();
            account.expect(1 << 20);
            queue.push(&clock, token, &account);
        }
        assert!(queue.first(&clock, Among::Light).is_none());
        queue.push(&clock, 600, &Account::default());
        assert_eq!(queue.pop(&clock, Among::All), Some(600));
    }

    #[test]
    fn light_turns_go_on_while_there_is_nothing_for_heavy_ones() {
        let mut accounts = [Account::default(); 2];
        accounts[1].expect(1 << 20);
        let (mut clock, mut queue) = all_wait(&accounts);
        for _ in 0..1000 {
            assert_eq!(queue.pop(&clock, Among::Light), Some(0));
            clock.charge(&mut accounts[0], 8192, queue.len());
            queue.push(&clock, 0, &accounts[0]);
        }
        assert_eq!(queue.pop(&clock, Among::All), Some(1), "the heavy one is owed a turn");
    }
}
