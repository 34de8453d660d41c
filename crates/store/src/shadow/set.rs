//! The shadows of a cache: other sizes of its RAM, and other sizes of its SSD, within a bound on memory.

use std::sync::Arc;

use super::choice::{Choice, Chosen};
use super::prefixes::{PrefixReport, Prefixes};
use super::scale::Scale;
use super::trial::{Changes, Trial, Tried};
use super::{Counts, Estimate, Real, Rules, Seen, Shadow, State};
use crate::error::OpenError;
use crate::policy::admission::Admission;
use crate::sample::{Event, PrefixNames, is_sampled};
use crate::store::{Config, Store};

/// Sizes of RAM and of the SSD, in quarters of the cache's own; the first is its own. The largest take most of the
/// memory, and those of the SSD have many more items.
const QUARTERS: f64 = 4.0;
const RAM_QUARTERS: [u64; 6] = [4, 1, 2, 3, 8, 16];
const SSD_QUARTERS: [u64; 6] = [4, 1, 2, 3, 6, 8];
/// Parts of the memory: one is for a trial, so many for the choice of the admission, and the axes share the others.
const PARTS_OF_MEMORY: usize = 8;
const CHOICE_PARTS: usize = 2;
/// How long a window is: an estimate is of one to two of them.
const WINDOW_SECONDS: u32 = 3600;
/// Items in RAM that the shadow of the cache itself must hold before anything is estimated: with fewer, estimates are
/// off by points.
const RAM_ITEMS_MIN: u64 = 500;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// The memory limit.
    Ram,
    /// The SSD.
    Ssd,
}

impl Axis {
    /// Returns a word for it.
    pub fn name(self) -> &'static str {
        match self {
            Axis::Ram => "ram",
            Axis::Ssd => "ssd",
        }
    }

    fn quarters(self) -> [u64; 6] {
        match self {
            Axis::Ram => RAM_QUARTERS,
            Axis::Ssd => SSD_QUARTERS,
        }
    }
}

/// What a cache of another size would do.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Which size differs from the cache's own.
    pub axis: Axis,
    /// How many times the cache's own that size is.
    pub times: f64,
    /// The memory limit, in bytes.
    pub memory_bytes: u64,
    /// The SSD, in bytes.
    pub ssd_bytes: u64,
    /// What it would miss; `None` while the sample tells too little.
    pub estimate: Option<Estimate>,
    /// Bytes that it would have written to the SSD in the time of the estimate.
    pub ssd_bytes_written: u64,
    /// Whether its shadow has filled. If not, the estimate is too high for a cache that had filled.
    pub is_full: bool,
}

/// The sample along one axis.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The axis.
    pub axis: Axis,
    /// One of so many keys is in it.
    pub scale: u32,
    /// Items of the shadow of the cache's own size.
    pub items: u64,
    /// What it tells.
    pub state: State,
    /// What the shadow of the cache's own size has missed in the time of an estimate, multiplied by its scale: beside
    /// the real misses of that time, it tells how well the sample and the rules are met.
    pub misses: u64,
}

struct Sized {
    quarters: u64,
    memory_bytes: u64,
    ssd_bytes: u64,
    shadow: Shadow,
    /// What it had seen when the last two windows began, the earlier one first.
    begun: [Counts; 2],
}

/// Shadows along one axis, with one sample.
struct Line {
    axis: Axis,
    scale: Scale,
    /// The first one has the cache's own size.
    shadows: Vec<Sized>,
}

/// The shadows of a cache.
pub struct Shadows {
    config: Config,
    lines: Vec<Line>,
    /// What chooses the admission, if anything does.
    choice: Option<Choice>,
    /// The admission that the cache has.
    admission: Admission,
    trial: Option<Trial>,
    trial_bytes_max: usize,
    /// What accounts for prefixes, by the first axis's shadow of the cache's own size.
    prefixes: Option<Prefixes>,
    /// What the real cache had done when the last two windows began, the earlier one first.
    begun: [Real; 2],
    /// Whether the shadows of the cache's own size had filled when that was looked at last.
    are_full: bool,
}

impl Shadows {
    /// Cold shadows of a cache with these options, which take at most `memory_bytes_max` bytes.
    ///
    /// # Errors
    /// As [`Store::check_sizes`]. A size that would be refused has no shadow, but for the cache's own.
    pub fn new(config: &Config, memory_bytes_max: u64) -> Result<Shadows, OpenError> {
        Shadows::with(config, memory_bytes_max, false)
    }

    /// The same, with shadows that choose the admission, if there is an SSD.
    ///
    /// # Errors
    /// As [`Shadows::new`].
    pub fn choosing(config: &Config, memory_bytes_max: u64) -> Result<Shadows, OpenError> {
        Shadows::with(config, memory_bytes_max, !config.ssd.is_empty())
    }

    fn with(config: &Config, memory_bytes_max: u64, chooses: bool) -> Result<Shadows, OpenError> {
        let part = memory_bytes_max as usize / PARTS_OF_MEMORY;
        let (trial_bytes_max, of_choice) = (part, if chooses { CHOICE_PARTS * part } else { 0 });
        let axes = if config.ssd.is_empty() { &[Axis::Ram][..] } else { &[Axis::Ram, Axis::Ssd] };
        let each = (memory_bytes_max as usize - trial_bytes_max - of_choice) / axes.len();
        let lines = axes.iter().map(|axis| Line::new(*axis, config, each)).collect::<Result<_, _>>()?;
        let choice = chooses.then(|| Choice::bounded(config, of_choice)).transpose()?;
        Ok(Shadows {
            config: config.clone(),
            lines,
            choice,
            admission: config.first_admission(),
            trial: None,
            trial_bytes_max,
            prefixes: None,
            begun: Default::default(),
            are_full: false,
        })
    }

    /// Returns the admission that suits the traffic: the cache's first one, if none is chosen.
    pub fn admission(&self) -> Admission {
        self.admission
    }

    /// Returns what speaks for it; `None` if none is chosen.
    pub fn chosen(&self) -> Option<Chosen> {
        self.choice.as_ref().map(Choice::chosen)
    }

    /// Begins to try other options on the traffic from now on, in place of those that are tried.
    ///
    /// # Errors
    /// As [`Store::check_sizes`] of the cache with these options.
    pub fn begin_trial(&mut self, changes: Changes, real: Real) -> Result<(), OpenError> {
        let trial = Trial::new(&self.config, self.admission, changes, self.trial_bytes_max, real)?;
        self.trial = Some(trial);
        Ok(())
    }

    /// Ends the trial, if there is one.
    pub fn end_trial(&mut self) {
        self.trial = None;
    }

    /// Returns what the trial has found; `None` without one.
    pub fn tried(&self, real: Real) -> Option<Tried> {
        self.trial.as_ref().map(|trial| trial.tried(real))
    }

    /// Accounts for prefixes from now on, in at most `memory_bytes_max` bytes more, or what the least takes.
    pub fn account(&mut self, names: Arc<PrefixNames>, memory_bytes_max: u64) {
        self.prefixes = Some(Prefixes::new(names, memory_bytes_max as usize));
        self.settle_prefixes();
    }

    /// Brings what is known of prefixes up to date. To be called now and then: it looks at all items of a shadow.
    pub fn settle_prefixes(&mut self) {
        if let (Some(prefixes), Some(own)) = (&mut self.prefixes, own(&mut self.lines)) {
            prefixes.settle(own);
        }
    }

    /// Returns what prefixes cost and give, as of the last [settlement](Self::settle_prefixes); `None` if they are not
    /// accounted for.
    pub fn prefixes(&self) -> Option<PrefixReport> {
        let line = self.lines.first()?;
        let own = &line.shadows.first()?.shadow;
        self.prefixes.as_ref().map(|prefixes| prefixes.report(own, line.sample().state))
    }

    /// Returns the scale of the largest sample: events of other keys are not needed.
    pub fn scale(&self) -> u32 {
        let lines = self.lines.iter().map(|line| line.scale.keys);
        let others = [self.choice.as_ref().map(Choice::scale), self.trial.as_ref().map(Trial::scale)];
        lines.chain(others.into_iter().flatten()).min().unwrap_or(1)
    }

    /// Returns the memory that they take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of_choice = self.choice.as_ref().map_or(0, Choice::memory_bytes);
        let of_trial = self.trial.as_ref().map_or(0, Trial::memory_bytes);
        let of_prefixes = self.prefixes.as_ref().map_or(0, Prefixes::memory_bytes);
        self.lines.iter().map(Line::memory_bytes).sum::<usize>() + of_choice + of_trial + of_prefixes
    }

    /// Takes a request into account.
    pub fn feed(&mut self, event: &Event) {
        self.lines.iter_mut().for_each(|line| line.feed(event));
        if let (Some(prefixes), Some(own)) = (&mut self.prefixes, own(&mut self.lines))
            && is_sampled(event.hash, own.scale())
        {
            prefixes.feed(event, own);
        }
        if let Some(trial) = &mut self.trial {
            trial.feed(event);
        }
        let Some(choice) = &mut self.choice else { return };
        choice.feed(event);
        let admission = choice.admission();
        if std::mem::replace(&mut self.admission, admission) != admission {
            let shadows = self.lines.iter_mut().flat_map(|line| &mut line.shadows);
            shadows.for_each(|sized| sized.shadow.set_admission(admission));
            if let Some(trial) = &mut self.trial {
                trial.set_admission(admission);
            }
        }
    }

    /// Halves the samples, if they bring too many requests.
    pub fn halve(&mut self) {
        self.lines.iter_mut().for_each(Line::halve);
        self.choice.iter_mut().for_each(Choice::halve);
        self.trial.iter_mut().for_each(Trial::halve);
    }

    /// Forgets all items, as a flush does.
    pub fn flush(&mut self) {
        self.choice.iter_mut().for_each(Choice::flush);
        self.trial.iter_mut().for_each(Trial::flush);
        let shadows = self.lines.iter_mut().flat_map(|line| &mut line.shadows);
        shadows.for_each(|sized| sized.shadow.flush());
    }

    /// Begins another window when it is time: an hour after the last one, and as soon as the shadows of the cache's own
    /// size have filled, since what came before tells of an empty cache. To be called now and then.
    pub fn note(&mut self, real: Real) {
        self.trial.iter_mut().for_each(|trial| trial.note(real));
        let were_full = std::mem::replace(&mut self.are_full, self.lines.iter().all(Line::is_full));
        if self.are_full && !were_full {
            self.forget(real);
        } else if real.at.0.saturating_sub(self.begun[1].at.0) >= WINDOW_SECONDS {
            self.turn(real);
        }
    }

    /// Begins two windows at once: what came before tells nothing any more.
    pub fn forget(&mut self, real: Real) {
        self.turn(real);
        self.turn(real);
    }

    fn turn(&mut self, real: Real) {
        self.begun = [self.begun[1], real];
        for sized in self.lines.iter_mut().flat_map(|line| &mut line.shadows) {
            sized.begun = [sized.begun[1], sized.shadow.counts()];
        }
        if let (Some(prefixes), Some(own)) = (&mut self.prefixes, own(&mut self.lines)) {
            prefixes.turn(own);
        }
    }

    /// Returns the samples, one an axis.
    pub fn samples(&self) -> Vec<Sample> {
        self.lines.iter().map(Line::sample).collect()
    }

    /// Returns what the real cache has done, and in how many seconds, in the time that an estimate is of.
    pub fn window(&self, real: Real) -> Real {
        real.since(&self.begun[0])
    }

    /// Returns what caches of other sizes would do, of the cache's own first on each axis.
    pub fn points(&self, real: Real) -> Vec<Point> {
        let Real { gets, misses, .. } = self.window(real);
        self.lines.iter().flat_map(|line| line.points(gets, misses)).collect()
    }
}

/// Returns the options of a cache that has so many quarters of the memory, or of the SSD.
fn resized(config: &Config, axis: Axis, quarters: u64) -> Config {
    let mut config = config.clone();
    match axis {
        Axis::Ram => config.memory_bytes = config.memory_bytes / 4 * quarters,
        Axis::Ssd => config.ssd.iter_mut().for_each(|span| span.bytes = span.bytes / 4 * quarters),
    }
    config
}

/// Returns the first axis's shadow of the cache's own size.
fn own(lines: &mut [Line]) -> Option<&mut Shadow> {
    Some(&mut lines.first_mut()?.shadows.first_mut()?.shadow)
}

fn ssd_bytes(config: &Config) -> u64 {
    config.ssd.iter().map(|span| span.bytes).sum()
}

impl Line {
    fn new(axis: Axis, config: &Config, memory_bytes_max: usize) -> Result<Line, OpenError> {
        let rules = Rules::of(config);
        let sizes: Vec<Config> =
            axis.quarters().into_iter().map(|quarters| resized(config, axis, quarters)).collect();
        let bytes = sizes.iter().map(Config::cache_bytes).sum();
        let scale = Scale::of_caches(bytes, memory_bytes_max);
        let mut shadows = Vec::new();
        for (nth, (config, quarters)) in sizes.iter().zip(axis.quarters()).enumerate() {
            match Store::geometry(config) {
                Ok(geometry) => shadows.push(Sized {
                    quarters,
                    memory_bytes: config.memory_bytes,
                    ssd_bytes: ssd_bytes(config),
                    shadow: Shadow::new(geometry, rules, scale.keys),
                    begun: Default::default(),
                }),
                Err(error) if nth == 0 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Line { axis, scale, shadows })
    }

    fn memory_bytes(&self) -> usize {
        self.shadows.iter().map(|sized| sized.shadow.memory_bytes()).sum()
    }

    fn feed(&mut self, event: &Event) {
        if !is_sampled(event.hash, self.scale.keys) {
            return;
        }
        for sized in &mut self.shadows {
            sized.shadow.feed(event);
        }
        let memory_bytes = || self.shadows.iter().map(|sized| sized.shadow.memory_bytes()).sum();
        if self.scale.is_too_large(memory_bytes) {
            self.halve();
        }
    }

    fn halve(&mut self) {
        if self.scale.halve() {
            self.shadows.iter_mut().for_each(|sized| sized.shadow.halve());
        }
    }

    fn is_full(&self) -> bool {
        self.shadows.first().is_some_and(|own| own.shadow.is_full())
    }

    fn sample(&self) -> Sample {
        let (axis, scale) = (self.axis, self.scale.keys);
        let own = self.shadows.first();
        let (items, in_ram) = own.map_or((0, 0), |own| (own.shadow.items(), own.shadow.items_in_ram()));
        let has_missed = own.is_some_and(|own| Estimate::is_told_by(&own.counts(), scale));
        let state = match self.is_full() {
            false => State::Filling,
            true if in_ram < RAM_ITEMS_MIN || !has_missed => State::Few,
            true => State::Ready,
        };
        let misses = own.map_or(0, |own| own.counts().misses.iter().sum());
        Sample { axis, scale, items, state, misses }
    }

    fn points(&self, gets: u64, misses: u64) -> Vec<Point> {
        let seen: Vec<Seen> = self.shadows.iter().map(|sized| sized.seen(self.axis)).collect();
        let is_ready = self.sample().state == State::Ready;
        let estimates =
            if is_ready { Estimate::of_all(&seen, self.scale.keys, gets, misses) } else { vec![] };
        let point = |(nth, sized): (usize, &Sized)| Point {
            axis: self.axis,
            times: sized.quarters as f64 / QUARTERS,
            memory_bytes: sized.memory_bytes,
            ssd_bytes: sized.ssd_bytes,
            estimate: estimates.get(nth).copied(),
            ssd_bytes_written: seen[nth].counts.ssd_bytes_written,
            is_full: sized.shadow.is_full(),
        };
        self.shadows.iter().enumerate().map(point).collect()
    }
}

impl Sized {
    fn seen(&self, axis: Axis) -> Seen {
        let bytes = match axis {
            Axis::Ram => self.memory_bytes,
            Axis::Ssd => self.ssd_bytes,
        };
        Seen { bytes, counts: self.counts(), doubt: self.shadow.doubt() }
    }

    /// Returns what its shadow has seen since the earlier of the last two windows began.
    fn counts(&self) -> Counts {
        self.shadow.counts().since(&self.begun[0])
    }
}
