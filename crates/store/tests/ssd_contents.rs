//! Whatever bytes lie on the SSD, an item is what was stored or is not there, and nothing breaks.

#[path = "../../../fuzz/harness.rs"]
mod harness;
mod rig;
#[path = "fuzz/ssd.rs"]
mod ssd;

use std::cell::Cell;
use std::time::Duration;

use harness::for_a_while;

#[test]
fn whatever_lies_on_the_ssd_an_item_is_what_was_stored_or_not_there() {
    let (found, missed) = (Cell::new(0), Cell::new(0));
    for_a_while("ssd", Duration::from_secs(4), 30, 10_000, |data| {
        let (there, gone) = ssd::check(data);
        found.set(found.get() + there);
        missed.set(missed.get() + gone);
    });
    let (found, missed) = (found.get(), missed.get());
    println!("{found} found, {missed} missed");
    assert!(found > 100 && missed > 10, "{found} found, {missed} missed");
}
