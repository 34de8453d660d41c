//! Connections that have something to send which their workers do not know of yet, as announcements and watched events.

use std::sync::{Mutex, PoisonError};

/// For each worker, its connections with news.
pub struct Mail {
    boxes: Vec<Mutex<Vec<u64>>>,
}

impl Mail {
    /// Returns empty boxes for so many workers.
    pub fn new(workers: usize) -> Mail {
        Mail { boxes: (0..workers).map(|_| Mutex::default()).collect() }
    }

    /// Notes that a connection of a worker has news. The caller wakes the worker.
    pub fn put(&self, worker: usize, connection: u64) {
        if let Some(connections) = self.boxes.get(worker) {
            connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }

    /// Takes the connections of a worker that have news.
    pub fn take(&self, worker: usize) -> Vec<u64> {
        self.boxes.get(worker).map_or_else(Vec::new, |connections| {
            std::mem::take(&mut *connections.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}
