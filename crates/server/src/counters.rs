//! The counters of each worker. Each has one writer, so an increment is a plain load and store.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! counters {
    ($($name:ident)*) => {
        /// One worker's counters, named as `stats` shows them.
        #[derive(Default)]
        #[expect(missing_docs, reason = "the names are memcached's")]
        pub struct Counters { $(pub $name: Counter,)* }

        /// The sum of all workers' counters.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the names are memcached's")]
        pub struct Totals { $(pub $name: u64,)* }

        impl Counters {
            /// Adds this worker's counts to `totals`.
            pub fn add_to(&self, totals: &mut Totals) {
                $(totals.$name += self.$name.get();)*
            }
        }

        impl Totals {
            /// Returns the counts since `earlier`.
            pub fn since(&self, earlier: &Totals) -> Totals {
                Totals { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    cmd_get cmd_set cmd_flush cmd_touch cmd_meta
    get_hits get_misses get_hits_ram get_hits_ssd
    delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits
    cas_misses cas_hits cas_badval touch_hits touch_misses
    store_too_large store_no_memory total_items auth_cmds auth_errors requests_denied
    bytes_read bytes_written total_connections rejected_connections
    listen_disabled_num time_in_listen_disabled_us conn_yields idle_kicks
    unread_kicks unsent_kicks login_kicks key_listings limits_allowed limits_denied
    ssl_handshake_errors ssl_proto_errors ssl_new_sessions
    ssd_device_reads ssd_bytes_read ssd_read_errors ssd_write_errors ssd_waits
}

/// A count with one writer and many readers.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    #[inline]
    pub fn up(&self) {
        self.add(1);
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    /// Returns the count.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
