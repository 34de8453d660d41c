//! The order in which waiting connections get their turns.
//!
//! Connections with light turns and connections with heavy turns share alike: while both wait, each class is served
//! as many bytes as the other. So a light turn never waits for more than a heavy one or two. Within a class, turns
//! are given by start-time fair queueing (Goyal, Vin and Cheng, 1996), all connections alike: next is the turn that
//! would begin first if all connections with something to do were served at once, a byte each in turn. A connection
//! that had nothing to do is therefore ahead of those that always have.

use std::collections::BTreeMap;

use crate::budget::LIGHT_BYTES;

/// A connection's account, in bytes of service.
#[derive(Clone, Copy, Default)]
pub(super) struct Account {
    /// The virtual time up to which its service is paid for: its next turn begins then, if it waits.
    paid: u64,
    /// Its present turn has cost nothing yet.
    turn_is_new: bool,
    /// Bytes of its present turn that are paid for and not served yet.
    prepaid: u64,
    /// Bytes that one of its turns takes, estimated by the last ones.
    turn_bytes: u64,
    /// It has something to do.
    is_busy: bool,
}

/// The most bytes that one class can get ahead of the other.
const LEAD_BYTES_MAX: i64 = 2 << 20;

impl Account {
    /// Returns whether its turns are light.
    pub(super) fn is_light(&self) -> bool {
        self.turn_bytes <= LIGHT_BYTES
    }

    /// Notes that its next turn takes `bytes` at least, before it is charged with them.
    pub(super) fn expect(&mut self, bytes: u64) {
        self.turn_bytes = self.turn_bytes.max(bytes);
    }
}

/// The clock by which accounts are kept. It is one for all queues that the same connections wait in, so that
/// service from one of them counts in the others.
#[derive(Default)]
pub(super) struct VirtualClock {
    /// The virtual time: bytes served, divided by the connections that had something to do.
    now: u64,
    /// Connections that have something to do: they wait, or have reads under way.
    busy: u64,
    /// Bytes by which the light class was served more than the heavy one while others waited.
    lead_bytes: i64,
}

impl VirtualClock {
    fn make_busy(&mut self, account: &mut Account) {
        self.busy += u64::from(!std::mem::replace(&mut account.is_busy, true));
        account.paid = account.paid.max(self.now);
    }

    /// Notes that a connection can do nothing until its peer takes its replies. Others need not wait longer for it.
    pub(super) fn pause(&mut self, account: &mut Account) {
        self.busy -= u64::from(std::mem::replace(&mut account.is_busy, false));
    }

    /// Notes that a connection has nothing to do until its peer asks for more, and owes nothing: one that asks for
    /// no more than its share would otherwise owe for the times that it waits.
    pub(super) fn rest(&mut self, account: &mut Account) {
        self.pause(account);
        account.paid = 0;
    }

    fn pay(&mut self, account: &mut Account, bytes: u64) {
        account.paid += bytes;
        self.now += bytes / self.busy.max(1);
    }

    /// Notes that a turn of a connection begins.
    pub(super) fn begin_turn(&mut self, account: &mut Account) {
        self.make_busy(account);
        account.turn_is_new = true;
    }

    /// Notes that a connection was served `bytes` in its turn, and whether others waited meanwhile. All light turns
    /// cost alike: a connection with little to do in each of its turns cannot have more of them than another one.
    pub(super) fn charge(&mut self, account: &mut Account, bytes: u64, others_wait: bool) {
        if std::mem::take(&mut account.turn_is_new) {
            self.pay(account, LIGHT_BYTES);
            account.prepaid = LIGHT_BYTES;
        }
        let prepaid = bytes.min(account.prepaid);
        account.prepaid -= prepaid;
        self.pay(account, bytes - prepaid);
        let lead_bytes = if account.is_light() { bytes as i64 } else { -(bytes as i64) };
        self.lead_bytes = match others_wait {
            true => (self.lead_bytes + lead_bytes).clamp(-LEAD_BYTES_MAX, LEAD_BYTES_MAX),
            false => 0,
        };
        // One light turn does not make a heavy peer light.
        account.turn_bytes = bytes.max(account.turn_bytes / 2);
    }
}

/// The connections that a turn can be given to now.
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
    /// Light ones and heavy ones, by the virtual time at which their turn would begin, and then by arrival.
    classes: [BTreeMap<(u64, u64), u64>; 2],
    arrivals: u64,
}

impl FairQueue {
    /// Returns the number of connections that wait.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(BTreeMap::len).sum()
    }

    /// Queues a connection.
    pub(super) fn push(&mut self, clock: &mut VirtualClock, token: u64, account: &mut Account) {
        self.arrivals += 1;
        clock.make_busy(account);
        self.classes[usize::from(!account.is_light())].insert((account.paid, self.arrivals), token);
    }

    fn next_class(&self, clock: &VirtualClock, among: Among) -> usize {
        match self.classes.each_ref().map(BTreeMap::is_empty) {
            _ if among == Among::Light => 0,
            [false, false] => usize::from(clock.lead_bytes > 0),
            [is_empty, _] => usize::from(is_empty),
        }
    }

    /// Returns the connection whose turn is next.
    pub(super) fn first(&self, clock: &VirtualClock, among: Among) -> Option<u64> {
        self.classes[self.next_class(clock, among)].first_key_value().map(|(_, token)| *token)
    }

    /// Takes the connection whose turn is next.
    pub(super) fn pop(&mut self, clock: &VirtualClock, among: Among) -> Option<u64> {
        self.classes[self.next_class(clock, among)].pop_first().map(|(_, token)| token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the next one, which then waits again.
    fn serve(
        clock: &mut VirtualClock,
        queue: &mut FairQueue,
        accounts: &mut [Account],
        bytes: impl Fn(usize) -> u64,
    ) -> usize {
        let next = queue.pop(clock, Among::All).expect("one waits") as usize;
        clock.begin_turn(&mut accounts[next]);
        clock.charge(&mut accounts[next], bytes(next), queue.len() > 0);
        queue.push(clock, next as u64, &mut accounts[next]);
        next
    }

    fn all_wait(accounts: &mut [Account]) -> (VirtualClock, FairQueue) {
        let (mut clock, mut queue) = (VirtualClock::default(), FairQueue::default());
        accounts
            .iter_mut()
            .enumerate()
            .for_each(|(token, account)| queue.push(&mut clock, token as u64, account));
        (clock, queue)
    }

    #[test]
    fn a_light_turn_waits_for_next_to_nothing_whatever_heavy_ones_are_queued() {
        let mut accounts = [Account::default(); 101];
        let (mut clock, mut queue) = all_wait(&mut accounts[..100]);
        for _ in 0..300 {
            serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
        }
        for _ in 0..1000 {
            queue.push(&mut clock, 100, &mut accounts[100]);
            let mut ahead = 0;
            while queue.first(&clock, Among::All) != Some(100) {
                serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
                ahead += 1;
            }
            assert!(ahead <= 1, "{ahead} of a hundred are ahead");
            queue.pop(&clock, Among::All);
            clock.begin_turn(&mut accounts[100]);
            clock.charge(&mut accounts[100], 8192, queue.len() > 0);
            clock.rest(&mut accounts[100]);
            serve(&mut clock, &mut queue, &mut accounts, |_| 1 << 20);
        }
    }

    #[test]
    fn a_peer_that_asks_now_and_then_is_ahead_of_those_that_always_do() {
        let mut accounts = [Account::default(); 601];
        let (mut clock, mut queue) = all_wait(&mut accounts[..600]);
        for round in 0..1000 {
            // It takes two turns for each of theirs, and more bytes: more than its share of all.
            queue.push(&mut clock, 600, &mut accounts[600]);
            let mut ahead = 0;
            while queue.first(&clock, Among::All) != Some(600) {
                serve(&mut clock, &mut queue, &mut accounts, |_| 8192);
                ahead += 1;
            }
            assert!(ahead <= 60 || round == 0, "{ahead} of 600 are ahead");
            queue.pop(&clock, Among::All);
            for _ in 0..2 {
                clock.begin_turn(&mut accounts[600]);
                clock.charge(&mut accounts[600], 20_000, true);
            }
            clock.rest(&mut accounts[600]);
            for _ in 0..600 {
                serve(&mut clock, &mut queue, &mut accounts, |_| 8192);
            }
        }
    }

    #[test]
    fn peers_that_take_nothing_slow_nobody_down() {
        let mut accounts = [Account::default(); 1002];
        let (mut clock, mut queue) = all_wait(&mut accounts[..1001]);
        for _ in 0..1001 {
            serve(&mut clock, &mut queue, &mut accounts, |_| 8192);
        }
        accounts[1..1001].iter_mut().for_each(|stuck| clock.pause(stuck));
        let mut queue = FairQueue::default();
        queue.push(&mut clock, 0, &mut accounts[0]);
        // A peer that asks again after each answer, and one that always has something to do.
        let mut served = [0; 2];
        for _ in 0..2000 {
            queue.push(&mut clock, 1001, &mut accounts[1001]);
            while let Some(next) = queue.pop(&clock, Among::All) {
                clock.begin_turn(&mut accounts[next as usize]);
                clock.charge(&mut accounts[next as usize], 8192, true);
                served[usize::from(next == 1001)] += 1;
                if next == 1001 {
                    clock.rest(&mut accounts[1001]);
                    break;
                }
                queue.push(&mut clock, 0, &mut accounts[0]);
            }
        }
        assert!(served[0] * 3 > served[1], "{served:?}");
    }

    #[test]
    fn a_peer_with_little_in_each_turn_has_no_more_turns_than_others() {
        let mut accounts = [Account::default(); 10];
        let (mut clock, mut queue) = all_wait(&mut accounts);
        let mut counts = [0; 10];
        for _ in 0..1000 {
            counts[serve(&mut clock, &mut queue, &mut accounts, |token| 1 << (token + 6))] += 1;
        }
        assert!(counts.iter().all(|count| (99..=101).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_heavy_turn_comes_however_many_light_ones_wait() {
        let mut accounts = [Account::default(); 101];
        let (mut clock, mut queue) = all_wait(&mut accounts);
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
            let (mut clock, mut queue) = all_wait(&mut accounts);
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
        let mut clock = VirtualClock::default();
        let mut queues = [FairQueue::default(), FairQueue::default()];
        let mut served = [0; 32];
        for (token, account) in accounts.iter_mut().enumerate() {
            queues[token % 2].push(&mut clock, token as u64, account);
        }
        // The queues are served by turns of different lengths; a connection waits now in one, now in the other.
        for turn in 0..30_000_usize {
            let from = usize::from(turn % 100 < 60);
            let Some(next) =
                queues[from].pop(&clock, Among::All).or_else(|| queues[1 - from].pop(&clock, Among::All))
            else {
                break;
            };
            clock.begin_turn(&mut accounts[next as usize]);
            clock.charge(&mut accounts[next as usize], 8192, true);
            served[next as usize] += 1;
            let to = turn.wrapping_mul(0x9E37_79B9) >> 16 & 1;
            queues[to].push(&mut clock, next, &mut accounts[next as usize]);
        }
        let (least, most) = (served.iter().min(), served.iter().max());
        assert!(least.zip(most).is_some_and(|(least, most)| least * 10 >= most * 9), "{served:?}");
    }

    #[test]
    fn a_connection_that_waits_for_much_is_heavy_before_its_first_turn() {
        let (mut clock, mut queue) = (VirtualClock::default(), FairQueue::default());
        for token in 0..600 {
            let mut account = Account::default();
            account.expect(1 << 20);
            queue.push(&mut clock, token, &mut account);
        }
        assert!(queue.first(&clock, Among::Light).is_none());
        queue.push(&mut clock, 600, &mut Account::default());
        assert_eq!(queue.pop(&clock, Among::All), Some(600));
    }

    #[test]
    fn light_turns_go_on_while_there_is_nothing_for_heavy_ones() {
        let mut accounts = [Account::default(); 2];
        accounts[1].expect(1 << 20);
        let (mut clock, mut queue) = all_wait(&mut accounts);
        for _ in 0..1000 {
            assert_eq!(queue.pop(&clock, Among::Light), Some(0));
            clock.begin_turn(&mut accounts[0]);
            clock.charge(&mut accounts[0], 8192, queue.len() > 0);
            queue.push(&mut clock, 0, &mut accounts[0]);
        }
        assert_eq!(queue.pop(&clock, Among::All), Some(1), "the heavy one is owed a turn");
    }
}
