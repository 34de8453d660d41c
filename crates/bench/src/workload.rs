//! The requests to a server: keys, sizes, verbs, expiry. No sockets and no clocks.
//!
//! Everything is drawn from seeded streams, one a connection, that never meet; two runs of one seed ask the
//! same.

pub mod draw;
pub mod keys;
pub mod mix;
pub mod parse;
pub mod pattern;
pub mod preset;
pub mod sizes;
pub mod trace;
pub mod values;
pub mod verb;
pub mod zipf;

pub use draw::{Asked, Draw, Shared};
pub use mix::Mix;
pub use pattern::Pattern;
pub use preset::Preset;
pub use sizes::Sizes;
pub use trace::{Record, Trace};

use verb::Verb;

/// The requests to a server.
#[derive(Clone, Debug)]
pub struct Workload {
    /// How many keys there are.
    pub keys: u64,
    /// Which of them is asked for next.
    pub pattern: Pattern,
    /// What every key begins with.
    pub prefix: String,
    /// Bytes of a key with its prefix; by default as many as the longest number needs.
    pub key_bytes: Option<usize>,
    /// How large values are.
    pub sizes: Sizes,
    /// Seconds that a value lives, from and to (both can come); 0 is for ever.
    pub expiry_s: (u32, u32),
    /// Which verbs.
    pub mix: Mix,
    /// Keys in one get.
    pub multi_get: u32,
    /// Sets in a row of which only the last is answered; 1 is a reply to each.
    pub quiet_sets: u32,
    /// Whether a get that misses is followed by a set of the key.
    pub look_aside: bool,
    /// Where the random streams begin.
    pub seed: u64,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            keys: 1_000_000,
            pattern: Pattern::Uniform,
            prefix: "key:".to_string(),
            key_bytes: None,
            sizes: Sizes::Fixed(100),
            expiry_s: (0, 0),
            mix: Mix::ratio(1, 10),
            multi_get: 1,
            quiet_sets: 1,
            look_aside: false,
            seed: 1,
        }
    }
}

impl Workload {
    /// The names of keys, and those of counters.
    ///
    /// # Errors
    /// The number does not fit into the size asked for, or a key becomes longer than any server takes.
    pub fn names(&self) -> Result<(keys::Names, keys::Names), String> {
        let items = keys::Names::new(self.prefix.as_bytes(), self.key_bytes, self.keys)?;
        let counters = items.counters()?;
        Ok((items, counters))
    }

    /// The workload is impossible, in one line.
    ///
    /// # Errors
    /// That line.
    pub fn check(&self) -> Result<(), String> {
        self.names()?;
        if self.keys == 0 {
            return Err("--keys: there has to be at least one".to_string());
        }
        if self.multi_get == 0 || self.multi_get > 10_000 {
            return Err("--multi-key-get: 1 to 10000 keys in one get".to_string());
        }
        if self.quiet_sets == 0 || self.quiet_sets > 10_000 {
            return Err("--noreply: 1 to 10000 sets in a row, of which the last is answered".to_string());
        }
        if self.quiet_sets > 1 && self.mix.weight(Verb::Set) == 0 {
            return Err("--noreply: there are no sets (--ratio, --mix)".to_string());
        }
        if self.expiry_s.0 > self.expiry_s.1 {
            return Err("--expiry-range: the first number is the smaller one, as in 60-600".to_string());
        }
        if self.expiry_s.1 > trace::EXPIRY_MAX_S {
            return Err("--expiry-range: at most 2592000 (30 days): beyond, servers read a date".to_string());
        }
        let needs_expiry = [Verb::Touch, Verb::Gat].into_iter().find(|verb| self.mix.weight(*verb) > 0);
        if let Some(verb) = needs_expiry.filter(|_| self.expiry_s.0 == 0) {
            return Err(format!("--mix {} needs an --expiry-range to give", verb.name()));
        }
        if self.mix.has(|verb| verb == Verb::Connect) && self.mix.has(|verb| verb != Verb::Connect) {
            let message = "--mix connect: it is a load of its own; with other verbs, see --reconnect";
            return Err(message.to_string());
        }
        self.check_additions()?;
        self.pattern.check()
    }

    /// An append or prepend adds a value of its own to a value, so that each can be told from the others.
    fn check_additions(&self) -> Result<(), String> {
        let Some(verb) = Verb::ALL.into_iter().find(|verb| verb.is_addition() && self.mix.weight(*verb) > 0)
        else {
            return Ok(());
        };
        let name = verb.name();
        if self.sizes.least() < values::HEADER as u32 {
            return Err(format!("--mix {name} needs values of at least {} bytes", values::HEADER));
        }
        if self.mix.weight(Verb::Set) == 0 {
            return Err(format!("--mix {name} needs sets too, which make values short again"));
        }
        Ok(())
    }

    /// The workload in words, one line.
    pub fn words(&self) -> String {
        let mut words = format!(
            "{} over {} keys of {}, values {}, {}",
            self.pattern,
            crate::show::count(self.keys),
            self.names().map_or_else(|e| e, |(items, _)| format!("{} B", items.bytes())),
            self.sizes,
            self.mix
        );
        if self.multi_get > 1 {
            words += &format!(", {} keys a get", self.multi_get);
        }
        if self.quiet_sets > 1 {
            words += &format!(", {} sets a reply", self.quiet_sets);
        }
        match self.expiry_s {
            (0, 0) => {}
            (from, to) if from == to => words += &format!(", expiry {from} s"),
            (from, to) => words += &format!(", expiry {from} to {to} s"),
        }
        if self.look_aside {
            words += ", a miss is followed by a set";
        }
        words
    }
}
