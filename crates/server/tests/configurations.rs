//! Whatever stands on the command line, in the environment and in the file, the configuration is one that can be served
//! with, or refused with words for the operator. Nothing breaks.

#[path = "fuzz/configuration.rs"]
mod configuration;
#[path = "../../../fuzz/harness.rs"]
mod harness;

use std::cell::Cell;
use std::time::Duration;

use harness::for_a_while;

#[test]
fn whatever_is_configured_is_served_with_or_refused_in_words() {
    let (served, count) = (Cell::new(0), Cell::new(0));
    for_a_while("configuration", Duration::from_secs(3), 5_000, 400, |data| {
        count.set(count.get() + 1);
        served.set(served.get() + u64::from(configuration::check(data)));
    });
    println!("{} of them valid", served.get());
    assert!(served.get() > count.get() / 50, "{} of {}", served.get(), count.get());
}
