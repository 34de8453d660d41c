//! The thread that feeds the shadows with sampled requests, and publishes what they estimate.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use larder_store::Config as StoreConfig;
use larder_store::sample::{EventReceiver, ring_bytes};
use larder_store::shadow::{Real, Shadows};

use crate::curves::{Curve, Order, Trial};
use crate::shared::Shared;

/// The part of the shadows' memory that the rings have, and what accounts for prefixes: rings are powers of two.
const RING_PART: u64 = 8;
/// Pauses between two looks at the rings: while requests come, and the longest while none do.
const PAUSE: Duration = Duration::from_millis(4);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The interval at which estimates are published.
const EVERY: Duration = Duration::from_secs(1);
/// Of the requests of one interval, one in so many may be dropped before the sample halves.
const DROPPED_PART: u64 = 20;

/// The thread.
pub struct Feeder {
    /// Disconnected to end the thread.
    run: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    /// Begins to feed shadows of a store with these options, in the memory that is set aside for them; none, if it is
    /// none.
    ///
    /// # Errors
    /// The system has no thread for it, or the store's own sizes are refused.
    pub fn start(shared: &Arc<Shared>, config: &StoreConfig) -> Result<Feeder, String> {
        let bytes = config.shadow_bytes();
        let chooses = shared.config.chooses_admission && !config.ssd.is_empty();
        if bytes == 0 {
            if chooses {
                tracing::warn!(
                    "--ssd-admission auto: there are no shadows to choose by, so all items are admitted; \
                     give --shadow-memory"
                );
            }
            return Ok(Feeder { run: None, thread: None });
        }
        let slots = (bytes / RING_PART) as usize / ring_bytes(1);
        let slots = slots.next_power_of_two() / 2;
        let for_prefixes = (bytes / RING_PART).saturating_sub(ring_bytes(slots) as u64);
        let for_shadows = bytes - bytes / RING_PART;
        let shadows = match chooses {
            true => Shadows::choosing(config, for_shadows),
            false => Shadows::new(config, for_shadows),
        };
        let mut shadows = shadows.map_err(|error| error.to_string())?;
        let delimiter = shared.config.prefix_delimiter;
        let (receivers, names) = shared.store.sample_by_prefix(shadows.scale(), slots, delimiter);
        shadows.account(names, for_prefixes);
        let mut feed = Feed {
            shared: shared.clone(),
            receivers,
            slots: slots as u64,
            scale: shadows.scale(),
            shadows,
            flushes: shared.store.flushes(),
            events: 0,
            noted: (0, 0),
            trial: Trial::default(),
        };
        feed.shadows.forget(feed.real());
        feed.publish();
        let (run, runs) = mpsc::channel();
        let work = move || feed.run(&runs);
        let thread = thread::Builder::new().name("larder-shadows".into()).spawn(work);
        let thread = thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Feeder { run: Some(run), thread: Some(thread) })
    }

    /// Ends the thread, and waits for it.
    pub fn end(mut self) {
        drop(self.run.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's own state.
struct Feed {
    shared: Arc<Shared>,
    receivers: Vec<EventReceiver>,
    /// The events that all rings together have room for.
    slots: u64,
    shadows: Shadows,
    /// The scale that the store samples with.
    scale: u32,
    /// The flushes that the shadows know of.
    flushes: u32,
    events: u64,
    /// Events and dropped ones at the last look.
    noted: (u64, u64),
    trial: Trial,
}

impl Feed {
    fn run(mut self, runs: &mpsc::Receiver<()>) {
        let (mut pause, mut published) = (PAUSE, Instant::now());
        loop {
            let taken = self.take();
            if published.elapsed() >= EVERY {
                published = Instant::now();
                self.follow_orders();
                self.note();
                self.publish();
            }
            pause = match taken {
                0 => (pause * 2).min(PAUSE_MAX),
                few if few < self.slots / 4 => PAUSE,
                // More have come meanwhile.
                _ => Duration::ZERO,
            };
            if runs.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
    }

    /// Feeds the shadows with what has come, and returns how much that was.
    fn take(&mut self) -> u64 {
        let before = self.events;
        let each = (self.slots as usize / self.receivers.len()).max(1);
        for receiver in &mut self.receivers {
            // No more than a ring holds, so that one busy shard does not keep it from the others.
            for event in std::iter::from_fn(|| receiver.take()).take(each) {
                self.shadows.feed(&event);
                self.events += 1;
            }
        }
        let flushes = self.shared.store.flushes();
        if std::mem::replace(&mut self.flushes, flushes) != flushes {
            self.shadows.flush();
        }
        self.follow_scale();
        self.follow_admission();
        self.events - before
    }

    /// Lets the store admit to the SSD what the shadows have found to be better.
    fn follow_admission(&self) {
        let (store, admission) = (&self.shared.store, self.shadows.admission());
        if store.admission() == admission {
            return;
        }
        store.set_admission(admission);
        if let Some(chosen) = self.shadows.chosen() {
            let saved = format!("{:+.1} %", chosen.gain * 100.0);
            tracing::info!(
                admission = admission.name(),
                returning_saves = saved,
                changes = chosen.switches,
                "the shadows chose another admission to the SSD"
            );
        }
    }

    /// Lets the store sample what the shadows look at.
    fn follow_scale(&mut self) {
        let scale = self.shadows.scale();
        if std::mem::replace(&mut self.scale, scale) != scale {
            self.shared.store.set_sample_scale(scale);
        }
    }

    fn dropped(&self) -> u64 {
        self.receivers.iter().map(EventReceiver::dropped).sum()
    }

    /// Begins another window if it is time, and halves the samples if they bring more than the thread can take.
    fn note(&mut self) {
        let real = self.real();
        self.shadows.note(real);
        let now = (self.events, self.dropped());
        let (before, before_dropped) = std::mem::replace(&mut self.noted, now);
        let (events, dropped) = (now.0 - before, now.1 - before_dropped);
        if dropped * DROPPED_PART > events + dropped {
            self.shadows.halve();
            self.follow_scale();
        }
    }

    /// Begins or ends a trial, if that was ordered.
    fn follow_orders(&mut self) {
        let Some((order, number)) = self.shared.curves.take_order() else { return };
        let real = self.real();
        self.shadows.end_trial();
        let begun = match order {
            Order::Begin(changes) => self.shadows.begin_trial(changes, real),
            Order::End => Ok(()),
        };
        self.trial = Trial { number, tried: None, refused: begun.err().map(|error| error.to_string()) };
        self.follow_scale();
    }

    fn real(&self) -> Real {
        let totals = self.shared.lifetime();
        Real { gets: totals.cmd_get, misses: totals.get_misses, at: self.shared.clock.now() }
    }

    fn publish(&mut self) {
        let real = self.real();
        self.shadows.settle_prefixes();
        let Some(prefixes) = self.shadows.prefixes() else { return };
        self.shared.curves.publish(Curve {
            samples: self.shadows.samples(),
            points: self.shadows.points(real),
            chosen: self.shadows.chosen(),
            prefixes,
            trial: Trial { tried: self.shadows.tried(real), ..self.trial.clone() },
            window: self.shadows.window(real),
            memory_bytes: self.shadows.memory_bytes() as u64,
            events: self.events,
            events_dropped: self.dropped(),
        });
    }
}
