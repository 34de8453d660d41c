//! The lines that `watch` shows, in memcached's form: `ts=<second>.<microsecond> gid=<number> type=...`. Programs that
//! read them match the names, so none of them is Larder's to choose.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use super::uri_encode;

/// An item as a line shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchedItem {
    /// The store's counterpart of memcached's slab class; 0 for an item that is not there.
    pub class: u32,
    /// The length of its value, in bytes.
    pub value_len: u32,
}

/// How an item leaves memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// It is gone.
    Evicted,
    /// It was written to the SSD.
    Written,
}

/// What one line shows. `connection` is the descriptor of the client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent<'a> {
    /// `item_get`: a command has looked for an item; None: it was not there.
    Get {
        /// Its key.
        key: &'a [u8],
        /// What was found.
        item: Option<WatchedItem>,
        /// The client.
        connection: i32,
    },
    /// `item_store`: a command has stored an item, or tried to.
    Store {
        /// Its key.
        key: &'a [u8],
        /// memcached's word for what came of it.
        status: &'static str,
        /// The command's name.
        command: &'static str,
        /// Seconds to live; 0 for ever.
        ttl_s: u32,
        /// The item that was to be stored.
        item: WatchedItem,
        /// The client.
        connection: i32,
    },
    /// `deleted`: a command has removed an item.
    Delete {
        /// Its key.
        key: &'a [u8],
        /// The command's name.
        command: &'static str,
        /// The item that was there.
        item: WatchedItem,
    },
    /// `eviction` or `extwrite`: an item has left memory.
    Leave {
        /// Its key.
        key: &'a [u8],
        /// Where it went.
        to: Departure,
        /// Whether it had been read.
        fetched: bool,
        /// Seconds left to live; None for ever.
        ttl_s: Option<u32>,
        /// Seconds since it was last read or stored.
        idle_s: u32,
        /// The item.
        item: WatchedItem,
    },
    /// The daemon has something to tell.
    System {
        /// Its type, and names with values behind it.
        text: &'a str,
    },
    /// `conn_new`, or `conn_close` with the reason.
    Connection {
        /// The client's address; None on a Unix socket.
        peer: Option<SocketAddr>,
        /// memcached's word for why it was closed; None for a new one.
        closed: Option<&'static str>,
        /// The client.
        connection: i32,
    },
}

/// Appends the line of an event. `unix` is the time since 1970, and `number` counts the events of all watchers.
pub fn watch_line(out: &mut Vec<u8>, unix: Duration, number: u64, event: &WatchEvent<'_>) {
    put(out, format_args!("ts={}.{} gid={number} type=", unix.as_secs(), unix.subsec_micros()));
    match *event {
        WatchEvent::Get { key, item, connection } => {
            put_key(out, "item_get", key);
            let status = if item.is_some() { "found" } else { "not_found" };
            let WatchedItem { class, value_len } = item.unwrap_or_default();
            put(out, format_args!(" status={status} clsid={class} cfd={connection} size={value_len}\n"));
        }
        WatchEvent::Store { key, status, command, ttl_s, item, connection } => {
            put_key(out, "item_store", key);
            put(out, format_args!(" status={status} cmd={command} ttl={ttl_s} clsid={}", item.class));
            put(out, format_args!(" cfd={connection} size={}\n", item.value_len));
        }
        WatchEvent::Delete { key, command, item } => {
            put_key(out, "deleted", key);
            put(out, format_args!(" cmd={command} clsid={} size={}\n", item.class, item.value_len));
        }
        WatchEvent::Leave { key, to, fetched, ttl_s, idle_s, item } => {
            put_key(out, if to == Departure::Evicted { "eviction" } else { "extwrite" }, key);
            let ttl = ttl_s.map_or(-1, i64::from);
            let fetched = if fetched { "yes" } else { "no" };
            put(out, format_args!(" fetch={fetched} ttl={ttl} la={idle_s} clsid={}", item.class));
            match to {
                Departure::Evicted => put(out, format_args!(" size={}\n", item.value_len)),
                Departure::Written => put(out, format_args!(" bucket=0\n")),
            }
        }
        WatchEvent::System { text } => put(out, format_args!("{text}\n")),
        WatchEvent::Connection { peer, closed, connection } => {
            put(out, format_args!("conn_{}", if closed.is_some() { "close" } else { "new" }));
            match peer {
                Some(peer) => {
                    put(out, format_args!(" rip={} rport={} transport=tcp", peer.ip(), peer.port()));
                }
                None => put(out, format_args!(" rip=unix rport=0 transport=local")),
            }
            if let Some(reason) = closed {
                put(out, format_args!(" reason={reason}"));
            }
            put(out, format_args!(" cfd={connection}\n"));
        }
    }
}

/// Appends the line that counts the lines which a slow watcher has missed.
pub fn skipped_line(out: &mut Vec<u8>, lines: u64) {
    put(out, format_args!("skipped={lines}\n"));
}

fn put_key(out: &mut Vec<u8>, kind: &str, key: &[u8]) {
    put(out, format_args!("{kind} key="));
    uri_encode(out, key);
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector does not fail.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(event: &WatchEvent<'_>) -> String {
        let mut out = Vec::new();
        watch_line(&mut out, Duration::new(1_795_379_027, 72_490_999), 7, event);
        let line = String::from_utf8(out).expect("keys are encoded");
        line.strip_prefix("ts=1795379027.72490 gid=7 type=").expect("time and number come first").to_string()
    }

    #[test]
    fn lines_have_memcacheds_form() {
        let item = WatchedItem { class: 1, value_len: 3 };
        let (key, connection) = (&b"a%20\x01b"[..], 15);
        let get = |item| line(&WatchEvent::Get { key, item, connection });
        assert_eq!(get(Some(item)), "item_get key=a%2520%01b status=found clsid=1 cfd=15 size=3\n");
        assert_eq!(get(None), "item_get key=a%2520%01b status=not_found clsid=0 cfd=15 size=0\n");
        let store =
            WatchEvent::Store { key: b"k", status: "stored", command: "set", ttl_s: 100, item, connection };
        assert_eq!(line(&store), "item_store key=k status=stored cmd=set ttl=100 clsid=1 cfd=15 size=3\n");
        let delete = WatchEvent::Delete { key: b"k", command: "md", item };
        assert_eq!(line(&delete), "deleted key=k cmd=md clsid=1 size=3\n");
        let leave =
            |to, ttl_s| line(&WatchEvent::Leave { key: b"k", to, fetched: true, ttl_s, idle_s: 9, item });
        let evicted = leave(Departure::Evicted, None);
        assert_eq!(evicted, "eviction key=k fetch=yes ttl=-1 la=9 clsid=1 size=3\n");
        let written = leave(Departure::Written, Some(5));
        assert_eq!(written, "extwrite key=k fetch=yes ttl=5 la=9 clsid=1 bucket=0\n");
    }

    #[test]
    fn connections_are_shown_with_their_addresses() {
        let event = |peer: Option<&str>, closed| {
            let peer = peer.map(|address| address.parse().expect("an address"));
            line(&WatchEvent::Connection { peer, closed, connection: 15 })
        };
        let tcp = Some("127.0.0.1:45722");
        assert_eq!(event(tcp, None), "conn_new rip=127.0.0.1 rport=45722 transport=tcp cfd=15\n");
        assert_eq!(
            event(Some("[::1]:9"), Some("idle_timeout")),
            "conn_close rip=::1 rport=9 transport=tcp reason=idle_timeout cfd=15\n"
        );
        assert_eq!(event(None, None), "conn_new rip=unix rport=0 transport=local cfd=15\n");
    }
}
