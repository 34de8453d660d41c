//! What the server had when: each value's tenure, against which reads are judged.

use std::collections::BTreeMap;

/// A moment of an execution: moments are ordered by `seq`, and many have the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    pub seq: u64,
    pub ms: u64,
}

impl Moment {
    pub const FIRST: Moment = Moment { seq: 0, ms: 0 };
    pub const NEVER: Moment = Moment { seq: u64::MAX, ms: u64::MAX };
}

/// From when until when the server had a value under a key, or none.
#[derive(Clone, Debug)]
pub struct Tenure {
    pub value: Option<Vec<u8>>,
    pub from: Moment,
    pub until: Moment,
}

/// The tenures of all keys, in order.
#[derive(Debug, Default)]
pub struct History {
    keys: BTreeMap<Vec<u8>, Vec<Tenure>>,
}

/// What a read may return.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// The read began after all this.
    pub begin: Moment,
    /// The read returned before all that.
    pub end: Moment,
    /// A value may be older than the beginning by so much.
    pub age_ms: u64,
    /// The value must not have been replaced before, or by, what took effect at this moment.
    pub newest_own: Moment,
}

impl History {
    /// Notes that the server has another value from now on.
    pub fn change(&mut self, key: &[u8], value: Option<Vec<u8>>, now: Moment) {
        let tenures = self.keys.entry(key.to_vec()).or_insert_with(|| vec![Tenure::nothing()]);
        let last = tenures.last_mut().expect("there is one from the beginning");
        if last.value != value {
            last.until = now;
            tenures.push(Tenure { value, from: now, until: Moment::NEVER });
        }
    }

    /// Returns since when the server has the value that it has.
    pub fn stored(&self, key: &[u8]) -> Option<Moment> {
        let last = self.keys.get(key)?.last()?;
        last.value.is_some().then_some(last.from)
    }

    /// Returns why a read should not have returned `value`.
    pub fn fault_of(&self, key: &[u8], value: Option<&[u8]>, allowed: Allowed) -> Option<String> {
        let Allowed { begin, end, age_ms, newest_own } = allowed;
        let nothing = [Tenure::nothing()];
        let tenures = self.keys.get(key).map_or(&nothing[..], Vec::as_slice);
        let mut known: Vec<_> =
            tenures.iter().filter(|tenure| tenure.value.as_deref() == value && tenure.from < end).collect();
        if known.is_empty() {
            return Some("the server never had it".into());
        }
        known.retain(|tenure| tenure.until > begin || tenure.until.ms + age_ms > begin.ms);
        if known.is_empty() {
            return Some(format!("it is older than {age_ms} ms"));
        }
        known.retain(|tenure| tenure.until > newest_own);
        known.is_empty().then(|| "its own host had changed it before".into())
    }
}

impl Tenure {
    fn nothing() -> Tenure {
        Tenure { value: None, from: Moment::FIRST, until: Moment::NEVER }
    }
}
