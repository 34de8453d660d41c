//! The order in which waiting connections get their turns.
//!
//! Connections whose turns are light and those whose turns are heavy share alike: while both wait, each class is
//! served as many bytes as the other. So a light turn never waits for more than a heavy one or two. Within a
//! class, turns are given by weighted fair queueing (Demers, Keshav and Shenker, 1989), all connections alike:
//! next is the turn that would end first if all that wait were served at once, a byte each in turn.

use std::collections::BTreeMap;

/// A connection's account, in bytes of service.
#[derive(Clone, Copy, Default)]
pub(super) struct Account {
    /// The virtual time at which what it was served is paid for.
    paid: u64,
    /// What one of its turns takes, going by the last ones.
    turn_bytes: u64,
}

/// A turn of no more than this is light.
const LIGHT_BYTES: u64 = 64 << 10;
/// How far one class can get ahead of the other.
const LEAD_BYTES_MAX: i64 = 2 << 20;

impl Account {
    /// Whether its turns are light.
    pub(super) fn is_light(&self) -> bool {
        self.turn_bytes <= LIGHT_BYTES
    }
}

/// Connections that wait for one thing, by their tokens.
#[derive(Default)]
pub(super) struct FairQueue {
    /// Light ones and heavy ones, by the virtual time at which their turn would end, and then by arrival.
    classes: [BTreeMap<(u64, u64), u64>; 2],
    arrivals: u64,
    /// The virtual time: bytes served, divided by the connections that waited meanwhile.
    now: u64,
    /// How many bytes more the light class was served than the heavy one while both waited.
    lead_bytes: i64,
}

impl FairQueue {
    /// Connections that wait.
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(BTreeMap::len).sum()
    }

    /// A connection waits from now on.
    pub(super) fn push(&mut self, token: u64, account: &Account) {
        self.arrivals += 1;
        let end = account.paid.max(self.now) + account.turn_bytes;
        self.classes[usize::from(!account.is_light())].insert((end, self.arrivals), token);
    }

    fn next_class(&self) -> usize {
        match self.classes.each_ref().map(BTreeMap::is_empty) {
            [false, false] => usize::from(self.lead_bytes > 0),
            [is_empty, _] => usize::from(is_empty),
        }
    }

    /// The connection whose turn is next.
    pub(super) fn first(&self) -> Option<u64> {
        self.classes[self.next_class()].first_key_value().map(|(_, token)| *token)
    }

    /// Takes the connection whose turn is next.
    pub(super) fn pop(&mut self) -> Option<u64> {
        self.classes[self.next_class()].pop_first().map(|(_, token)| token)
    }

    /// Notes that a connection was served `bytes` in a turn.
    pub(super) fn charge(&mut self, account: &mut Account, bytes: u64) {
        let is_light = account.is_light();
        account.paid = account.paid.max(self.now) + bytes;
        // One light turn does not make a heavy peer light.
        account.turn_bytes = bytes.max(account.turn_bytes / 2);
        self.now += bytes / (self.len() as u64 + 1);
        let contended = self.classes.iter().any(|class| !class.is_empty());
        let lead_bytes = if is_light { bytes as i64 } else { -(bytes as i64) };
        self.lead_bytes = match contended {
            true => (self.lead_bytes + lead_bytes).clamp(-LEAD_BYTES_MAX, LEAD_BYTES_MAX),
            false => 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves the next one, which then waits again.
    fn serve(queue: &mut FairQueue, accounts: &mut [Account], bytes: impl Fn(usize) -> u64) -> usize {
        let next = queue.pop().expect("one waits") as usize;
        queue.charge(&mut accounts[next], bytes(next));
        queue.push(next as u64, &accounts[next]);
        next
    }

    fn all_wait(accounts: &[Account]) -> FairQueue {
        let mut queue = FairQueue::default();
        accounts.iter().enumerate().for_each(|(token, account)| queue.push(token as u64, account));
        queue
    }

    #[test]
    fn a_light_turn_waits_for_next_to_nothing_whatever_heavy_ones_are_queued() {
        let mut accounts = [Account::default(); 101];
        let mut queue = all_wait(&accounts[..100]);
        for _ in 0..300 {
            serve(&mut queue, &mut accounts, |_| 1 << 20);
        }
        for _ in 0..1000 {
            queue.push(100, &accounts[100]);
            let mut ahead = 0;
            while queue.first() != Some(100) {
                serve(&mut queue, &mut accounts, |_| 1 << 20);
                ahead += 1;
            }
            assert!(ahead <= 1, "{ahead} of a hundred are ahead");
            queue.pop();
            queue.charge(&mut accounts[100], 8192);
            serve(&mut queue, &mut accounts, |_| 1 << 20);
        }
    }

    #[test]
    fn a_heavy_turn_comes_however_many_light_ones_wait() {
        let mut accounts = [Account::default(); 101];
        let mut queue = all_wait(&accounts);
        let bytes = |token| if token == 100 { 1 << 20 } else { 4096 };
        let mut served = [0; 2];
        for _ in 0..10_000 {
            let next = serve(&mut queue, &mut accounts, bytes);
            served[usize::from(next == 100)] += bytes(next);
        }
        let [light, heavy] = served;
        assert!(heavy > light / 3 && heavy < light * 3, "{light} and {heavy} bytes");
    }

    #[test]
    fn connections_that_are_alike_take_turns() {
        for bytes in [4096, 1 << 20] {
            let mut accounts = [Account::default(); 5];
            let mut queue = all_wait(&accounts);
            let mut counts = [0; 5];
            for _ in 0..100 {
                counts[serve(&mut queue, &mut accounts, |_| bytes)] += 1;
            }
            assert!(counts.iter().all(|count| (19..=21).contains(count)), "{counts:?}");
        }
    }
}
