//! What caches of other sizes would miss, as it was estimated last: for those who ask, without waiting.

use std::sync::{Arc, Mutex, PoisonError};

use larder_store::shadow::{Changes, Chosen, Point, PrefixReport, Real, Sample, Tried};

/// A trial of other options.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// The number of the order that it follows from; 0 before the first one.
    pub number: u64,
    /// What it has found; `None` if nothing is tried.
    pub tried: Option<Tried>,
    /// Why the options are refused, if they are.
    pub refused: Option<String>,
}

/// What the shadows are to try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A cache with these options, in place of what is tried.
    Begin(Changes),
    /// Nothing any more.
    End,
}

/// The estimates of one moment.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The samples, one an axis.
    pub samples: Vec<Sample>,
    /// The sizes: the cache's own first on each axis.
    pub points: Vec<Point>,
    /// What speaks for the admission; `None` if none is chosen.
    pub chosen: Option<Chosen>,
    /// What prefixes of keys cost and give.
    pub prefixes: PrefixReport,
    /// The present trial.
    pub trial: Trial,
    /// What the real cache has done in the time that they are of, with the seconds of that time.
    pub window: Real,
    /// The memory that the shadows take, in bytes.
    pub memory_bytes: u64,
    /// Requests that the shadows were told of, and those that they were too slow for.
    pub events: u64,
    /// The latter.
    pub events_dropped: u64,
}

/// The last estimates.
#[derive(Default)]
pub struct Curves {
    last: Mutex<Option<Arc<Curve>>>,
    /// The order that was not taken yet, and how many were given.
    orders: Mutex<(Option<Order>, u64)>,
}

impl Curves {
    /// Returns the last ones; `None` while there are none, and without shadows.
    pub fn latest(&self) -> Option<Arc<Curve>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them.
    pub fn publish(&self, curve: Curve) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(curve));
    }

    /// Gives the shadows an order, in place of one that they have not taken, and returns its number.
    pub fn give_order(&self, order: Order) -> u64 {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        *orders = (Some(order), orders.1 + 1);
        orders.1
    }

    /// Takes the order that was given, with its number.
    pub fn take_order(&self) -> Option<(Order, u64)> {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let number = orders.1;
        orders.0.take().map(|order| (order, number))
    }
}
