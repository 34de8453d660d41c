//! Where a randomised test takes its seed from.

/// What `make test` runs: the same everywhere and each time, so that a change is judged by what it changes.
const USUAL: u64 = 1_795_275_066_044_668_918;

/// The seed that the environment's `variable` gives: a number, or `random` for a new one each time, as `make
/// torture` does. Printed, so that a failure can be had again.
pub fn seed(variable: &str) -> u64 {
    let seed = match std::env::var(variable).as_deref() {
        Err(_) => USUAL,
        Ok("random") => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.expect("a clock that was set").as_nanos() as u64
        }
        Ok(number) => {
            number.parse().unwrap_or_else(|_| panic!("{variable} is {number}, not a number or random"))
        }
    };
    println!("{variable}={seed}");
    seed
}
