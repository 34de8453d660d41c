//! Checks a value together with what was appended and prepended to it.
//!
//! ```text
//!   set 4      |---|                                  acknowledged before 5 began: 5 is added to 4
//!   append 5           |----|
//!   append 6                    |----------|
//!   get                           |---|               [4 5] or [4 5 6]; [4] and [4 6] have lost 5
//! ```
//!
//! An addition counts as sure when no replacing write was under way while it was. A get that returns the write it was
//! added to, or one before that, has to have all that were sure when it began.

use super::{BadRow, Kind, Known, Ledger, Stale};

impl Ledger {
    /// Checks the versions of a value of `bytes` bytes, in the order in which they stand in it.
    ///
    /// # Errors
    /// A get before which `known` was known may not return it.
    pub fn check_row(&self, key: u64, known: Known, versions: &[u64], bytes: usize) -> Result<(), BadRow> {
        if versions.iter().any(|version| !self.is_ours(*version)) {
            // What an earlier run stored may have been added to by this one.
            return if known.floor == 0 { Ok(()) } else { Err(BadRow::Stale(Stale::OtherRun)) };
        }
        let kind = |version: &u64| (version >> 32) as u32 & 3;
        let base = versions.iter().position(|version| kind(version) == Kind::Base as u32);
        let base = base.ok_or(BadRow::Order)?;
        let (front, behind) = (&versions[..base], &versions[base + 1..]);
        let is_in_order = front.iter().all(|version| kind(version) == Kind::Prepended as u32)
            && behind.iter().all(|version| kind(version) == Kind::Appended as u32);
        if !is_in_order {
            return Err(BadRow::Order);
        }
        self.check(key, known, versions[base], bytes).map_err(BadRow::Stale)?;
        if versions.len() > 1 {
            self.check_additions(key, versions)?;
        }
        let (replaced_by, added) = known.row;
        let found = versions.len() as u32 - 1;
        if versions[base] as u32 <= replaced_by && found < added {
            return Err(BadRow::Lost(found, added));
        }
        Ok(())
    }

    /// Each was begun, and none is there twice.
    fn check_additions(&self, key: u64, versions: &[u64]) -> Result<(), BadRow> {
        let mut writes: Vec<u32> = versions.iter().map(|version| *version as u32).collect();
        writes.sort_unstable();
        if let Some(pair) = writes.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BadRow::Again(pair[0]));
        }
        let begun = self.entry(key, |entry, _| entry.begun);
        match (writes.last(), begun) {
            (Some(last), Some(begun)) if *last > begun => Err(BadRow::Stale(Stale::Unwritten(*last))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, Write, WriteMark};
    use super::*;

    const KEY: u64 = 3;

    fn begin(ledger: &Ledger, write: Write) -> (WriteMark, u64) {
        ledger.begin(KEY, write).expect("it is followed")
    }

    fn done(ledger: &Ledger, write: Write) -> u64 {
        let (mark, version) = begin(ledger, write);
        ledger.end(KEY, mark, Outcome::Done).expect("it is right");
        version
    }

    fn check(ledger: &Ledger, known: Known, versions: &[u64]) -> Result<(), BadRow> {
        ledger.check_row(KEY, known, versions, 100 * versions.len())
    }

    #[test]
    fn an_acknowledged_addition_is_there_once_and_on_its_side() {
        let ledger = Ledger::new(8, 10, true, true);
        let set = done(&ledger, Write::Set);
        let append = done(&ledger, Write::Append);
        let prepend = done(&ledger, Write::Prepend);
        let known = ledger.known(KEY);
        assert_eq!(check(&ledger, known, &[prepend, set, append]), Ok(()));
        assert_eq!(check(&ledger, known, &[prepend, set]), Err(BadRow::Lost(1, 2)));
        assert_eq!(check(&ledger, known, &[set, append, prepend]), Err(BadRow::Order));
        assert_eq!(check(&ledger, known, &[append, prepend]), Err(BadRow::Order));
        let again = check(&ledger, known, &[prepend, set, append, append]);
        assert_eq!(again, Err(BadRow::Again(append as u32)));
        let unwritten = check(&ledger, known, &[prepend, set, append, append + 9]);
        assert!(matches!(unwritten, Err(BadRow::Stale(Stale::Unwritten(_)))), "{unwritten:?}");
    }

    #[test]
    fn an_addition_that_is_under_way_may_be_there_or_not() {
        let ledger = Ledger::new(8, 10, true, true);
        let set = done(&ledger, Write::Set);
        let (mark, append) = begin(&ledger, Write::Append);
        let known = ledger.known(KEY);
        assert_eq!(check(&ledger, known, &[set]), Ok(()));
        assert_eq!(check(&ledger, known, &[set, append]), Ok(()));
        ledger.end(KEY, mark, Outcome::Done).expect("it is right");
        assert_eq!(check(&ledger, known, &[set]), Ok(()));
        assert!(check(&ledger, ledger.known(KEY), &[set]).is_err());
    }

    #[test]
    fn a_set_beside_an_addition_may_have_replaced_it() {
        let ledger = Ledger::new(8, 10, true, true);
        let first = done(&ledger, Write::Set);
        let append = done(&ledger, Write::Append);
        let before = ledger.known(KEY);
        let (mark, second) = begin(&ledger, Write::Set);
        let beside = done(&ledger, Write::Append);
        ledger.end(KEY, mark, Outcome::Done).expect("it is right");
        let known = ledger.known(KEY);
        assert_eq!(check(&ledger, known, &[second]), Ok(()));
        assert_eq!(check(&ledger, known, &[second, beside]), Ok(()));
        // Who began to read before may see either, and never the first without what was added to it.
        assert_eq!(check(&ledger, before, &[second]), Ok(()));
        assert_eq!(check(&ledger, before, &[first, append]), Ok(()));
        assert_eq!(check(&ledger, before, &[first]), Err(BadRow::Lost(0, 1)));
        assert!(check(&ledger, known, &[first, append]).is_err());
    }

    #[test]
    fn what_an_earlier_run_stored_may_be_added_to() {
        let ledger = Ledger::new(8, 10, true, true);
        let append = done(&ledger, Write::Append);
        let other = 77 << 34 | 5;
        assert_eq!(check(&ledger, ledger.known(KEY), &[other, append]), Ok(()));
        done(&ledger, Write::Set);
        assert!(check(&ledger, ledger.known(KEY), &[other, append]).is_err());
    }
}
