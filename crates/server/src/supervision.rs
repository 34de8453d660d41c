//! Tells the service manager that the daemon serves, that it stops, and, as a watchdog wants to hear again and again,
//! that all of its event loops run. Workers are not asked: each counts the rounds of its loop, of which it makes ten
//! a second and more.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use crate::histogram::Times;
use crate::service::Service;
use crate::shared::Shared;

/// The daemon looks at its loops this often within the time of the watchdog, so that one late look does not end it.
const LOOKS: u32 = 4;
/// The time between two looks at whether the daemon stops, if there is no watchdog.
const IDLE: Duration = Duration::from_secs(3600);

/// The longest that a daemon which ends waits for its last message to be sent.
const LAST: Duration = Duration::from_secs(1);

/// The thread that tells the service manager.
pub struct Supervision {
    /// Disconnected once the thread has ended.
    ended: mpsc::Receiver<()>,
}

impl Supervision {
    /// Tells the service manager that the daemon serves, and `status`; and goes on until the daemon stops.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn begin(
        shared: &Arc<Shared>,
        service: Service,
        status: Option<&str>,
    ) -> Result<Supervision, String> {
        let (end, ended) = mpsc::channel::<()>();
        let supervision = Supervision { ended };
        if !service.is_there() {
            return Ok(supervision);
        }
        let ready = match status {
            Some(status) => format!("READY=1\nSTATUS={status}"),
            None => "READY=1".to_string(),
        };
        service.tell(&ready).map_err(|error| {
            format!("the service manager cannot be told that the daemon serves: {error}; check NOTIFY_SOCKET")
        })?;
        let shared = shared.clone();
        let work = move || {
            let _end = end;
            watch(&shared, &service);
        };
        let thread = thread::Builder::new().name("larder-service".into()).spawn(work);
        thread.map(|_| supervision).map_err(|error| format!("cannot start a thread: {error}"))
    }

    /// Waits until the service manager has been told that the daemon stops.
    pub fn end(self) {
        let _ = self.ended.recv_timeout(LAST);
    }
}

fn watch(shared: &Shared, service: &Service) {
    let every = service.watchdog().map_or(IDLE, |time| time / LOOKS);
    let mut rounds = vec![0; shared.latencies.len()];
    while !shared.wait_for_stop_within(every) {
        if service.watchdog().is_none() {
            continue;
        }
        match first_idle(shared, &mut rounds) {
            // A service manager that cannot be reached ends the daemon, which nothing here could mend.
            None => drop(service.tell("WATCHDOG=1")),
            Some(worker) => tracing::error!(
                worker,
                "an event loop has stood still for {} ms; if it goes on, the service manager ends the daemon",
                every.as_millis()
            ),
        }
    }
    let _ = service.tell("STOPPING=1");
}

/// Returns the first worker whose loop made no round since the last look, and notes the rounds of all.
fn first_idle(shared: &Shared, rounds: &mut [u64]) -> Option<usize> {
    let mut idle = None;
    for (worker, (latencies, before)) in shared.latencies.iter().zip(rounds).enumerate() {
        let mut times = Times::default();
        latencies.loops.add_to(&mut times);
        let now = times.count();
        if now == *before && idle.is_none() {
            idle = Some(worker);
        }
        *before = now;
    }
    idle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::config::Config;
    use crate::startup::memory;
    use larder_store::Store;

    #[test]
    fn a_loop_that_stands_still_is_named() {
        let args = ["larder", "-t", "3", "-m", "16", "--ssd", "none"];
        let config = Config::from_args(args).expect("valid options");
        let store = Store::open(&memory::store_config(&config, Vec::new(), 1)).expect("it fits");
        let shared = Shared::new(store, Clock::new(), config, "none");
        let mut rounds = vec![0; 3];
        let turn = |worker: usize| shared.latencies[worker].loops.record(Duration::from_micros(3));
        (0..3).for_each(turn);
        assert_eq!(first_idle(&shared, &mut rounds), None);
        turn(0);
        turn(2);
        assert_eq!(first_idle(&shared, &mut rounds), Some(1));
        (0..3).for_each(turn);
        assert_eq!(first_idle(&shared, &mut rounds), None);
        assert_eq!(first_idle(&shared, &mut rounds), Some(0));
    }
}
