//! What caches of other sizes would miss, as it was estimated last: for those who ask, without waiting.

use std::sync::{Arc, Mutex, PoisonError};

use larder_store::shadow::{Point, Real, Sample};

/// The estimates of one moment.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The samples, one an axis.
    pub samples: Vec<Sample>,
    /// The sizes: the cache's own first on each axis.
    pub points: Vec<Point>,
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
pub struct Curves(Mutex<Option<Arc<Curve>>>);

impl Curves {
    /// Returns the last ones; `None` while there are none, and without shadows.
    pub fn latest(&self) -> Option<Arc<Curve>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces them.
    pub fn publish(&self, curve: Curve) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(curve));
    }
}
