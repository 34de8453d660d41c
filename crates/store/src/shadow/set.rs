//! The shadows of a cache: other sizes of its RAM, and other sizes of its SSD, within a bound on memory.

use super::{Counts, Estimate, Rules, Seen, Shadow};
use crate::clock::Seconds;
use crate::error::OpenError;
use crate::sample::{Event, is_sampled};
use crate::store::{Config, Store};

/// Sizes of RAM and of the SSD, in quarters of the cache's own; the first is its own. The largest take most of the
/// memory, and those of the SSD have many more items.
const QUARTERS: f64 = 4.0;
const RAM_QUARTERS: [u64; 6] = [4, 1, 2, 3, 8, 16];
const SSD_QUARTERS: [u64; 6] = [4, 1, 2, 3, 6, 8];
/// What a shadow's item takes, and the size of an item that the first sample is chosen for: large, since a sample that
/// is too large becomes smaller, and none becomes larger.
const SHADOW_ITEM_BYTES: u64 = 48;
const ITEM_BYTES: u64 = 16 << 10;
/// The scale up to which a sample becomes smaller, as a multiple of its first one.
const SCALES: u32 = 1 << 16;
/// How long a window is: an estimate is of one to two of them.
const WINDOW_SECONDS: u32 = 3600;
/// Items in RAM that the shadow of the cache itself must hold before anything is estimated: with fewer, estimates are
/// off by points.
const RAM_ITEMS_MIN: u64 = 500;
/// Events between two looks at the memory taken.
const EVENTS_A_LOOK: u32 = 64;

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

/// What a sample tells as yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The shadow of the cache's own size has not filled since the start or the last flush: a larger cache would miss
    /// no less yet.
    Filling,
    /// It has too few items in RAM, or has missed too little.
    Few,
    /// It tells enough.
    Ready,
}

impl State {
    /// Returns a word for it.
    pub fn name(self) -> &'static str {
        match self {
            State::Filling => "filling",
            State::Few => "few",
            State::Ready => "ready",
        }
    }
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

/// What the real cache has done until some moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Real {
    /// Gets.
    pub gets: u64,
    /// Those of them that missed.
    pub misses: u64,
    /// When.
    pub at: Seconds,
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
    scale: u32,
    first_scale: u32,
    /// The first one has the cache's own size.
    shadows: Vec<Sized>,
    memory_bytes_max: usize,
    events: u32,
}

/// The shadows of a cache.
pub struct Shadows {
    lines: Vec<Line>,
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
        let axes = if config.ssd.is_empty() { &[Axis::Ram][..] } else { &[Axis::Ram, Axis::Ssd] };
        let each = memory_bytes_max as usize / axes.len();
        let lines = axes.iter().map(|axis| Line::new(*axis, config, each)).collect::<Result<_, _>>()?;
        Ok(Shadows { lines, begun: Default::default(), are_full: false })
    }

    /// Returns the scale of the largest sample: events of other keys are not needed.
    pub fn scale(&self) -> u32 {
        self.lines.iter().map(|line| line.scale).min().unwrap_or(1)
    }

    /// Returns the memory that they take, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.lines.iter().map(Line::memory_bytes).sum()
    }

    /// Takes a request into account.
    pub fn feed(&mut self, event: &Event) {
        self.lines.iter_mut().for_each(|line| line.feed(event));
    }

    /// Halves the samples, if they bring too many requests.
    pub fn halve(&mut self) {
        self.lines.iter_mut().for_each(Line::halve);
    }

    /// Forgets all items, as a flush does.
    pub fn flush(&mut self) {
        let shadows = self.lines.iter_mut().flat_map(|line| &mut line.shadows);
        shadows.for_each(|sized| sized.shadow.flush());
    }

    /// Begins another window when it is time: an hour after the last one, and as soon as the shadows of the cache's own
    /// size have filled, since what came before tells of an empty cache. To be called now and then.
    pub fn note(&mut self, real: Real) {
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
    }

    /// Returns the samples, one an axis.
    pub fn samples(&self) -> Vec<Sample> {
        self.lines.iter().map(Line::sample).collect()
    }

    /// Returns what the real cache has done, and in how many seconds, in the time that an estimate is of.
    pub fn window(&self, real: Real) -> Real {
        let begun = self.begun[0];
        Real {
            gets: real.gets - begun.gets,
            misses: real.misses - begun.misses,
            at: Seconds(real.at.0.saturating_sub(begun.at.0)),
        }
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

fn ssd_bytes(config: &Config) -> u64 {
    config.ssd.iter().map(|span| span.bytes).sum()
}

impl Line {
    fn new(axis: Axis, config: &Config, memory_bytes_max: usize) -> Result<Line, OpenError> {
        let rules = Rules { admission: config.ssd_admission, ssd_live_percent: config.ssd_live_percent };
        let sizes: Vec<Config> =
            axis.quarters().into_iter().map(|quarters| resized(config, axis, quarters)).collect();
        let bytes: u64 = sizes.iter().map(|config| config.memory_bytes + ssd_bytes(config)).sum();
        let items = (bytes / ITEM_BYTES).max(1);
        let most = (memory_bytes_max as u64 / 2 / SHADOW_ITEM_BYTES).max(1);
        let scale = items.div_ceil(most).next_power_of_two().min(1 << 30) as u32;
        let mut shadows = Vec::new();
        for (nth, (config, quarters)) in sizes.iter().zip(axis.quarters()).enumerate() {
            match Store::geometry(config) {
                Ok(geometry) => shadows.push(Sized {
                    quarters,
                    memory_bytes: config.memory_bytes,
                    ssd_bytes: ssd_bytes(config),
                    shadow: Shadow::new(geometry, rules, scale),
                    begun: Default::default(),
                }),
                Err(error) if nth == 0 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(Line { axis, scale, first_scale: scale, shadows, memory_bytes_max, events: 0 })
    }

    fn memory_bytes(&self) -> usize {
        self.shadows.iter().map(|sized| sized.shadow.memory_bytes()).sum()
    }

    fn feed(&mut self, event: &Event) {
        if !is_sampled(event.hash, self.scale) {
            return;
        }
        self.shadows.iter_mut().for_each(|sized| sized.shadow.feed(event));
        self.events += 1;
        // Half of the bound, since a table that grows doubles.
        if self.events.is_multiple_of(EVENTS_A_LOOK) && self.memory_bytes() > self.memory_bytes_max / 2 {
            self.halve();
        }
    }

    fn halve(&mut self) {
        if self.scale / self.first_scale < SCALES {
            self.scale *= 2;
            self.shadows.iter_mut().for_each(|sized| sized.shadow.halve());
        }
    }

    fn is_full(&self) -> bool {
        self.shadows.first().is_some_and(|own| own.shadow.is_full())
    }

    fn sample(&self) -> Sample {
        let Line { axis, scale, .. } = *self;
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
        let estimates = if is_ready { Estimate::of_all(&seen, self.scale, gets, misses) } else { vec![] };
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
