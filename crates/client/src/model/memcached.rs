//! A memcached of one thread, as far as the client uses one: meta requests in, replies out.

use std::collections::BTreeMap;

use super::history::{History, Moment};
use crate::simulation::Fault;

#[derive(Clone, Debug)]
struct Item {
    value: Vec<u8>,
    flags: String,
    cas: u64,
    expires_ms: u64,
    is_stale: bool,
    /// One client was told to renew or create the item.
    is_leased: bool,
    /// Nothing was stored: it stands for a value that a client creates.
    is_vivified: bool,
}

/// The server: its items, and what it had when.
#[derive(Debug, Default)]
pub struct Memcached {
    items: BTreeMap<Vec<u8>, Item>,
    cas: u64,
    pub history: History,
    pub fault: Option<Fault>,
    /// The number of the last subscription; none is given out twice.
    subscription: u64,
    subscriptions: Vec<u64>,
    leases: Vec<Lease>,
    /// Leases that a server notes too late.
    late: Vec<Lease>,
    /// What is to be told to subscribers, in order.
    pub announcements: Vec<Announcement>,
}

/// A key whose next change is announced.
#[derive(Clone, Debug)]
struct Lease {
    key: Vec<u8>,
    subscription: u64,
    token: u64,
}

/// A change, to be told to a subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    pub subscription: u64,
    pub token: u64,
    /// When the change took effect.
    pub changed: Moment,
}

/// A request line.
struct Line<'a> {
    verb: &'a str,
    key: &'a str,
    flags: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Line<'a> {
        let mut words = line.split(' ');
        let (verb, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        Line { verb, key, flags: words.collect() }
    }

    fn number(&self, letter: char) -> Option<i64> {
        let argument = |flag: &&str| flag.strip_prefix(letter).map(str::to_string);
        self.flags.iter().find_map(argument)?.parse().ok()
    }

    /// The subscription and the token by which a change is to be announced.
    fn announce(&self) -> Option<(u64, u64)> {
        let (subscription, token) =
            self.flags.iter().find_map(|flag| flag.strip_prefix('A'))?.split_once(':')?;
        Some((subscription.parse().ok()?, token.parse().ok()?))
    }

    fn has(&self, letter: &str) -> bool {
        self.flags.contains(&letter)
    }

    /// The flags of a reply: what was asked for, in its order.
    fn facts(&self, item: &Item, now: Moment) -> String {
        let mut facts = String::new();
        for flag in &self.flags {
            let fact = match flag.chars().next() {
                Some('c') => format!(" c{}", item.cas),
                Some('f') => format!(" f{}", item.flags),
                Some('t') if item.expires_ms == u64::MAX => " t-1".to_string(),
                Some('t') => format!(" t{}", item.expires_ms.saturating_sub(now.ms) / 1000),
                Some('O') => format!(" {flag}"),
                _ => continue,
            };
            facts.push_str(&fact);
        }
        facts
    }

    fn opaque(&self) -> String {
        self.flags.iter().filter(|flag| flag.starts_with('O')).map(|flag| format!(" {flag}")).collect()
    }
}

fn expires_ms(exptime: i64, now: Moment) -> u64 {
    match exptime {
        0 => u64::MAX,
        ..0 => 0,
        seconds => now.ms + seconds.unsigned_abs() * 1000,
    }
}

/// Returns the length of the request at the front, if it is whole, and where its line ends.
pub fn whole_request(inbox: &[u8]) -> Option<(usize, usize)> {
    let line = inbox.windows(2).position(|end| end == b"\r\n")?;
    let text = std::str::from_utf8(&inbox[..line]).expect("a request of text");
    let value = match text.split(' ').collect::<Vec<_>>()[..] {
        ["ms", _, len, ..] => len.parse::<usize>().expect("a length") + 2,
        _ => 0,
    };
    (inbox.len() >= line + 2 + value).then_some((line + 2 + value, line))
}

impl Memcached {
    /// Takes the request at the front, and returns its reply and whether what the server has is the request's doing.
    pub fn take(&mut self, request: &[u8], line: usize, now: Moment) -> (Vec<u8>, bool) {
        self.expire(now);
        let text = std::str::from_utf8(&request[..line]).expect("a request of text");
        let line_parsed = Line::parse(text);
        let reply = match line_parsed.verb {
            "mg" => self.get(&line_parsed, now),
            "ms" => {
                let value = request[line + 2..request.len() - 2].to_vec();
                self.store(&line_parsed, value, now)
            }
            "md" => self.delete(&line_parsed, now),
            "ma" => self.count(&line_parsed, now),
            other => panic!("the model knows no {other}"),
        };
        let late = std::mem::take(&mut self.late);
        if line_parsed.verb == "mg" {
            self.late = late;
        } else {
            self.leases.extend(late);
        }
        let is_done = match line_parsed.verb {
            "ms" => reply.starts_with(b"HD"),
            verb => verb == "md" && !reply.starts_with(b"EX"),
        };
        (reply, is_done)
    }

    /// Forgets items whose time is over.
    pub fn expire(&mut self, now: Moment) {
        let is_over = |item: &Item| item.expires_ms <= now.ms;
        let over: Vec<_> =
            self.items.iter().filter(|(_, item)| is_over(item)).map(|(key, _)| key.clone()).collect();
        for key in over {
            self.evict(&key, now);
        }
    }

    /// Forgets an item. Returns whether there was one.
    pub fn evict(&mut self, key: &[u8], now: Moment) -> bool {
        let was_there = self.items.remove(key).is_some();
        if was_there {
            self.history.change(key, None, now);
        }
        was_there
    }

    /// Begins another life, in which cas uniques begin again.
    pub fn restart(&mut self, now: Moment) {
        for key in self.items.keys().cloned().collect::<Vec<_>>() {
            self.evict(&key, now);
        }
        self.cas = 0;
        self.subscriptions.clear();
        self.leases.clear();
        self.late.clear();
        self.announcements.clear();
    }

    /// Begins a subscription, and returns its number.
    pub fn subscribe(&mut self) -> u64 {
        self.subscription += 1;
        self.subscriptions.push(self.subscription);
        self.subscription
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, subscription: u64) {
        self.subscriptions.retain(|one| *one != subscription);
        self.leases.retain(|lease| lease.subscription != subscription);
    }

    /// Notes what a request leases, before the item is read. Returns whether that is so.
    fn lease(&mut self, line: &Line<'_>) -> bool {
        let Some((subscription, token)) = line.announce() else { return false };
        if !self.subscriptions.contains(&subscription) {
            return false;
        }
        let lease = Lease { key: line.key.into(), subscription, token };
        match self.fault {
            Some(Fault::LeaseAfterRead) => self.late.push(lease),
            _ => self.leases.push(lease),
        }
        true
    }

    /// Announces a change of a key, and ends its leases.
    fn announce(&mut self, key: &[u8], changed: Moment) {
        let (ended, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.leases).into_iter().partition(|lease| lease.key == key);
        self.leases = left;
        if self.fault != Some(Fault::AnnouncementLost) {
            let told = |Lease { subscription, token, .. }| Announcement { subscription, token, changed };
            self.announcements.extend(ended.into_iter().map(told));
        }
    }

    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.items.keys().cloned().collect()
    }

    fn next_cas(&mut self) -> u64 {
        self.cas += 1;
        self.cas
    }

    fn put(&mut self, key: &[u8], item: Item, now: Moment) {
        let value = (!item.is_vivified).then(|| item.value.clone());
        self.history.change(key, value, now);
        self.items.insert(key.to_vec(), item);
        self.announce(key, now);
    }

    fn get(&mut self, line: &Line<'_>, now: Moment) -> Vec<u8> {
        let key = line.key.as_bytes();
        let announced = if self.lease(line) { " A" } else { "" };
        if !self.items.contains_key(key) {
            let Some(exptime) = line.number('N') else { return b"EN\r\n".to_vec() };
            let cas = self.next_cas();
            let item = Item {
                value: Vec::new(),
                flags: "0".into(),
                cas,
                expires_ms: expires_ms(exptime, now),
                is_stale: false,
                is_leased: true,
                is_vivified: true,
            };
            let reply = format!("VA 0{}{announced} W\r\n\r\n", line.facts(&item, now));
            self.put(key, item, now);
            return reply.into_bytes();
        }
        let item = self.items.get_mut(key).expect("it is there");
        let mut lease = String::new();
        if item.is_stale {
            lease.push_str(" X");
        }
        if item.is_leased {
            lease.push_str(" Z");
        } else if item.is_stale {
            item.is_leased = true;
            lease.push_str(" W");
        }
        let facts = line.facts(item, now);
        if line.number('C').is_some_and(|cas| cas.unsigned_abs() == item.cas) || !line.has("v") {
            return format!("HD{facts}{announced}{lease}\r\n").into_bytes();
        }
        let mut reply = format!("VA {}{facts}{announced}{lease}\r\n", item.value.len()).into_bytes();
        reply.extend_from_slice(&item.value);
        reply.extend_from_slice(b"\r\n");
        reply
    }

    fn store(&mut self, line: &Line<'_>, value: Vec<u8>, now: Moment) -> Vec<u8> {
        let key = line.key.as_bytes();
        let mut is_stale = false;
        if let Some(cas) = line.number('C') {
            match self.items.get(key).map(|item| item.cas) {
                None => return format!("NF{}\r\n", line.opaque()).into_bytes(),
                Some(own) if own == cas.unsigned_abs() => {}
                Some(own) if own > cas.unsigned_abs() && line.has("I") => {
                    is_stale = true;
                }
                Some(_) => return format!("EX{}\r\n", line.opaque()).into_bytes(),
            }
        }
        let item = Item {
            value,
            flags: line.number('F').unwrap_or(0).to_string(),
            cas: self.next_cas(),
            expires_ms: expires_ms(line.number('T').unwrap_or(0), now),
            is_stale,
            is_leased: false,
            is_vivified: false,
        };
        let reply = format!("HD{}\r\n", line.facts(&item, now).replace(&format!(" f{}", item.flags), ""));
        self.put(key, item, now);
        reply.into_bytes()
    }

    fn delete(&mut self, line: &Line<'_>, now: Moment) -> Vec<u8> {
        let key = line.key.as_bytes();
        let found = self.items.get(key).map(|item| item.cas);
        if line.number('C').is_some_and(|cas| found.is_some_and(|found| found != cas.unsigned_abs())) {
            return format!("EX{}\r\n", line.opaque()).into_bytes();
        }
        if line.has("I") && found.is_some() {
            let cas = self.next_cas();
            let item = self.items.get_mut(key).expect("it is there");
            (item.is_stale, item.is_leased, item.cas) = (true, false, cas);
            if let Some(exptime) = line.number('T') {
                item.expires_ms = expires_ms(exptime, now);
            }
            self.announce(key, now);
            return format!("HD{}\r\n", line.opaque()).into_bytes();
        }
        let word = if self.evict(key, now) { "HD" } else { "NF" };
        self.announce(key, now);
        format!("{word}{}\r\n", line.opaque()).into_bytes()
    }

    fn count(&mut self, line: &Line<'_>, now: Moment) -> Vec<u8> {
        let key = line.key.as_bytes();
        let delta = line.number('D').unwrap_or(1).unsigned_abs();
        let (number, expires_ms) = match (self.items.get(key), line.number('N')) {
            (None, None) => return format!("NF{}\r\n", line.opaque()).into_bytes(),
            (None, Some(exptime)) => (line.number('J').unwrap_or(0).unsigned_abs(), expires_ms(exptime, now)),
            (Some(item), _) => {
                let number = std::str::from_utf8(&item.value).ok().and_then(|text| text.parse::<u64>().ok());
                (number.expect("a counter").wrapping_add(delta), item.expires_ms)
            }
        };
        let value = number.to_string().into_bytes();
        let item = Item {
            value,
            flags: "0".into(),
            cas: self.next_cas(),
            expires_ms,
            is_stale: false,
            is_leased: false,
            is_vivified: false,
        };
        let mut reply = format!("VA {}{}\r\n", item.value.len(), line.facts(&item, now)).into_bytes();
        reply.extend_from_slice(&item.value);
        reply.extend_from_slice(b"\r\n");
        self.put(key, item, now);
        reply
    }
}
