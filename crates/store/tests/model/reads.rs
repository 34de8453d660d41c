//! Reads of the model: plain ones overlap with everything else, those that change an item do not.

use larder_device::IoBuf;
use larder_store::*;

use super::Sim;
use super::item::{Item, Observed, key_bytes};

/// A plain read that waits for the device.
pub(super) struct Waiting {
    key: u64,
    fetch: Fetch,
    pub(super) began: u64,
    began_at: Seconds,
    plan: ReadPlan,
    bytes: Option<IoBuf>,
}

impl Sim {
    /// A read that changes something: it is answered for the moment it completes.
    pub(super) fn touching_read(&mut self, key: u64) {
        let fetch = Fetch {
            touch: self.random.one_in(2).then(|| self.expiry()),
            vivify: self.random.one_in(3).then_some(Expiry::Never),
            recache_seconds: Some(self.random.below(4000) as i32),
            may_win: true,
            without_value: self.random.one_in(3),
            ..Fetch::default()
        };
        let present = self.present(key).cloned();
        self.attempt(
            key,
            vec![Vec::new(), present.as_ref().map_or_else(Vec::new, |item| item.value.clone())],
        );
        let now = self.now;
        let observed = |found: &Found<'_>| Observed::new(found, &fetch);
        let found = self.complete(key, |store, call| store.fetch(call, &fetch, |found| found.map(observed)));
        let Some(found) = found else { return };
        match (found, present) {
            (None, _) => self.set_model(key, None),
            (Some(found), Some(truth)) if found.shows(&truth) => {
                let (won, after) = (found.won, found.expiry_after);
                let soon = truth.expiry.seconds_left(now).zip(fetch.recache_seconds);
                let soon = soon.is_some_and(|(left, limit)| i64::from(left) < i64::from(limit));
                if won != (!truth.win_sent && (truth.stale || soon)) {
                    self.fail(key, "the right to recache went wrong");
                }
                if after != fetch.touch.unwrap_or(truth.expiry) {
                    self.fail(key, "a touch went wrong");
                }
                let win_sent = truth.win_sent || won;
                self.set_model(key, Some(Item { expiry: after, win_sent, ..truth }));
            }
            (Some(Observed { item, value_len, won, .. }), _) => {
                if !won || fetch.vivify.is_none() || value_len > 0 || item.client_flags != 0 {
                    self.fail(key, "found what is not there");
                }
                self.set_model(key, Some(Item { win_sent: true, ..item }));
            }
        }
    }

    pub(super) fn start_read(&mut self, key: u64) {
        let bytes = key_bytes(key);
        let hash = self.store.hash(&bytes);
        let call = Call { key: &bytes, hash, now: self.now, loaded: None, on_full: OnFull::Wait };
        let fetch = Fetch { without_value: self.random.one_in(4), ..Fetch::default() };
        let observed = |found: &Found<'_>| (Observed::new(found, &fetch), found.tier);
        match self.store.fetch(&call, &fetch, |found| found.map(observed)) {
            Step::Done(Some((found, tier))) => {
                self.count_hit(key, self.operation, tier);
                self.judge(key, self.operation, self.now, Some(found));
            }
            Step::Done(None) => self.judge(key, self.operation, self.now, None),
            Step::Read(plan) => {
                self.trace(key, || format!("reads {plan:?}"));
                let bytes = self.read(&plan);
                let (began, began_at) = (self.operation, self.now);
                self.seen.header_reads += u64::from(fetch.without_value && plan.bytes() == 4096);
                self.waiting.push(Waiting { key, fetch, began, began_at, plan, bytes });
            }
            Step::Again | Step::Busy | Step::NoMemory => self.fail(key, "a plain read needs no room"),
        }
    }

    pub(super) fn complete_read(&mut self, read: Waiting) {
        let bytes = key_bytes(read.key);
        let hash = self.store.hash(&bytes);
        // Sometimes the device took its time and answers what is there now.
        let late = if self.random.one_in(2) { self.read(&read.plan) } else { read.bytes };
        let loaded = Some(Loaded { plan: &read.plan, bytes: late.as_deref() });
        let call = Call { key: &bytes, hash, now: self.now, loaded, on_full: OnFull::Wait };
        let observed = |found: &Found<'_>| (Observed::new(found, &read.fetch), found.tier);
        match self.store.fetch(&call, &read.fetch, |found| found.map(observed)) {
            Step::Done(found) => {
                if let Some((_, tier)) = found {
                    self.count_hit(read.key, read.began, tier);
                }
                self.judge(read.key, read.began, read.began_at, found.map(|(found, _)| found));
            }
            Step::Read(_) => self.fail(read.key, "a plain read asks for one read"),
            Step::Again | Step::Busy | Step::NoMemory => self.fail(read.key, "a plain read needs no room"),
        }
    }

    fn count_hit(&mut self, key: u64, began: u64, tier: Tier) {
        match tier {
            Tier::Ram => self.seen.ram_hits += 1,
            Tier::Ssd => self.seen.ssd_hits += 1,
        }
        if tier == Tier::Ssd && self.seen.off_at.is_some_and(|off_at| off_at <= began) {
            self.fail(key, "answered from an SSD that is off");
        }
    }

    /// Whether a plain read that began at operation `began` may answer `found`.
    fn judge(&mut self, key: u64, began: u64, began_at: Seconds, found: Option<Observed>) {
        let Some(found) = found else {
            self.seen.misses += 1;
            return;
        };
        let (now, operation) = (self.now, self.operation);
        let history = self.model.entry(key).or_default();
        let truths = history.before.iter().filter(|(ended, _)| *ended >= began && operation != began);
        let mut truths = truths.map(|(_, item)| item).chain(std::iter::once(&history.now)).flatten();
        let right = truths.any(|truth| found.shows(truth) && !truth.expiry.has_passed(began_at));
        if !right || found.item.expiry.has_passed(now) {
            let truth = self.present(key).map(|item| (item.value.len(), item.cas, item.expiry));
            let got = (found.value_len, found.item.cas, found.item.expiry);
            self.fail(key, &format!("answered {got:?} (length, cas, expiry), the truth is {truth:?}"));
        }
    }
}
