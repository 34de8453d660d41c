//! A stream of requests, look-aside through the real store: what a get misses is stored. The clock is the
//! stream's, the device is memory and completes at once.

use larder_device::{Device, IoBuf, MemoryDevice};
use larder_store::sample::EventReceiver;
use larder_store::shadow::{Choice, Rules};
use larder_store::{
    Admission, Call, Config, Expiry, Fetch, Found, Loaded, OnFull, Payload, Put, PutMode, PutResult,
    ReadPlan, Remove, SEGMENT_BYTES, Seconds, Span, Step, Store, Tier,
};

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Reads, and stores what was missed.
    Get,
    /// Stores in any case.
    Set,
    /// Deletes.
    Delete,
}

/// One request of a stream.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Whole seconds since the stream's beginning, never less than the request's before.
    pub at_s: u32,
    /// Which key: a number, of which the name is made.
    pub key: u64,
    /// Bytes of the name, raised to what the number needs and cut to memcached's 250.
    pub key_bytes: usize,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// Seconds to live of what is stored; 0 for ever.
    pub ttl_s: u32,
    /// What is done.
    pub op: Op,
}

/// What came of the requests so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Gets.
    pub gets: u64,
    /// Gets that were answered from RAM.
    pub hits_ram: u64,
    /// Gets that were answered from the SSD or a buffer on its way there.
    pub hits_ssd: u64,
    /// Values stored, by the stream or after a miss.
    pub sets: u64,
    /// Values that found no room.
    pub refused: u64,
    /// Reads of the device.
    pub device_reads: u64,
    /// Of these, reads that no request has asked for.
    pub readmission_reads: u64,
}

impl Counts {
    /// Hits as a share of gets, in percent.
    pub fn hit_percent(&self) -> f64 {
        percent(self.hits_ram + self.hits_ssd, self.gets)
    }
}

/// A part of a whole, in percent; 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

/// What is called with written bytes.
pub type OnWrite = Box<dyn FnMut(&[u8])>;

/// A store and all that stands around it.
pub struct LookAside {
    /// The store.
    pub store: Store,
    /// What came of the requests.
    pub counts: Counts,
    /// When the item expires that the last get has found; `None` after a miss.
    pub found_expiry: Option<Expiry>,
    /// What chooses the admission, if anything does.
    pub choice: Option<Choice>,
    /// Called with all that is written to the device.
    pub on_write: Option<OnWrite>,
    receivers: Vec<EventReceiver>,
    device: MemoryDevice,
    now: Seconds,
    since_upkeep: u32,
    zeros: Vec<u8>,
}

/// The stream's second 0 on the store's clock, where 0 is no moment.
const START_S: u32 = 1_000;
/// The daemon looks after its store some times a second: so many requests are no longer than that.
const UPKEEP_REQUESTS: u32 = 4096;
/// Events that a shard may be ahead of the shadows.
const RING_SLOTS: usize = 256;
/// The longest value, memcached's usual bound of an item.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// Returns the options of such a store: see [`LookAside::new`].
pub fn config(
    ram_bytes: u64,
    ssd_segments: u64,
    item_bytes: u32,
    admission: Admission,
    live_percent: u32,
) -> Config {
    let span = Span { device: 0, offset: 0, bytes: ssd_segments * SEGMENT_BYTES };
    Config {
        memory_bytes: ram_bytes,
        ssd: if ssd_segments == 0 { vec![] } else { vec![span] },
        item_bytes,
        index_bytes: None,
        ssd_write_limit: None,
        ssd_admission: admission,
        ssd_live_percent: live_percent,
        shadow_bytes: Some(0),
        evict: true,
        memory_file: None,
        seed: 1,
        first_cas: 1 << 20,
    }
}

impl LookAside {
    /// A store of `ram_bytes` in all, over `ssd_segments` of [`SEGMENT_BYTES`], made for items of
    /// `item_bytes`.
    ///
    /// # Errors
    /// The store's own words, when the sizes do not fit each other.
    pub fn new(
        ram_bytes: u64,
        ssd_segments: u64,
        item_bytes: u32,
        admission: Admission,
        live_percent: u32,
    ) -> Result<Self, String> {
        LookAside::of(&config(ram_bytes, ssd_segments, item_bytes, admission, live_percent))
    }

    /// A store with these options.
    ///
    /// # Errors
    /// The store's own words, when the sizes do not fit each other.
    pub fn of(config: &Config) -> Result<Self, String> {
        let ssd_bytes: u64 = config.ssd.iter().map(|span| span.bytes).sum();
        Ok(LookAside {
            store: Store::open(config).map_err(|error| error.to_string())?,
            counts: Counts::default(),
            found_expiry: None,
            choice: None,
            on_write: None,
            receivers: Vec::new(),
            device: MemoryDevice::new(ssd_bytes.max(SEGMENT_BYTES)),
            now: Seconds(START_S),
            since_upkeep: 0,
            zeros: vec![0; VALUE_BYTES_MAX],
        })
    }

    /// Lets two shadows of one key of `scale` choose the admission from now on. The options are those of the store.
    ///
    /// # Errors
    /// The store's own words, when the sizes do not fit each other.
    #[allow(dead_code, reason = "not all programs that share this file choose")]
    pub fn choose_admission(&mut self, config: &Config, scale: u32) -> Result<(), String> {
        let geometry = Store::geometry(config).map_err(|error| error.to_string())?;
        self.choice = Some(Choice::new(geometry, Rules::of(config), scale));
        self.receivers = self.store.sample(scale, RING_SLOTS);
        Ok(())
    }

    /// Feeds the shadows with what has come, and follows what they choose.
    fn follow_choice(&mut self) {
        let Some(choice) = &mut self.choice else { return };
        for receiver in &mut self.receivers {
            std::iter::from_fn(|| receiver.take()).for_each(|event| choice.feed(&event));
        }
        self.store.set_admission(choice.admission());
    }

    /// One request, and all the I/O that follows from it.
    pub fn request(&mut self, request: &Request) {
        let key = format!("{:01$}", request.key, request.key_bytes.min(250)).into_bytes();
        self.request_of(&key, request);
    }

    /// The same, on a key of this name.
    pub fn request_of(&mut self, key: &[u8], request: &Request) {
        let now = Seconds(START_S.saturating_add(request.at_s)).max(self.now);
        self.since_upkeep += 1;
        if now > self.now || self.since_upkeep >= UPKEEP_REQUESTS {
            self.store.upkeep(now);
            self.since_upkeep = 0;
        }
        self.now = now;
        match request.op {
            Op::Get => {
                self.counts.gets += 1;
                match self.get(key) {
                    Some(Tier::Ram) => self.counts.hits_ram += 1,
                    Some(Tier::Ssd) => self.counts.hits_ssd += 1,
                    None => self.set(key, request),
                }
            }
            Op::Set => self.set(key, request),
            Op::Delete => drop(self.run(key, |store, call| store.remove(call, &Remove::default()))),
        }
        while self.write_one() || self.rescue_one() {}
        self.follow_choice();
    }

    /// Returns where an item is, if it is anywhere, without counting an access.
    #[allow(dead_code, reason = "not all programs that share this file look")]
    pub fn tier_of(&mut self, key: &[u8]) -> Option<Tier> {
        let fetch = Fetch { no_bump: true, ..Fetch::default() };
        self.run(key, |store, call| store.fetch(call, &fetch, |found| found.map(|found| found.tier)))
            .flatten()
    }

    fn get(&mut self, key: &[u8]) -> Option<Tier> {
        let fetch = Fetch::default();
        let seen = |found: Option<&Found<'_>>| found.map(|found| (found.tier, found.expiry));
        let found = self.run(key, |store, call| store.fetch(call, &fetch, seen)).flatten();
        self.found_expiry = found.map(|(_, expiry)| expiry);
        found.map(|(tier, _)| tier)
    }

    fn set(&mut self, key: &[u8], request: &Request) {
        let expiry = match request.ttl_s {
            0 => Expiry::Never,
            ttl => Expiry::At(Seconds(self.now.0.saturating_add(ttl))),
        };
        let put = Put {
            mode: PutMode::Set,
            client_flags: 0,
            expiry,
            compare: None,
            new_cas: None,
            invalidate: false,
            vivify: None,
            key_is_binary: false,
            item_bytes_max: VALUE_BYTES_MAX,
        };
        let zeros = std::mem::take(&mut self.zeros);
        let value = &zeros[..request.value_bytes.min(VALUE_BYTES_MAX)];
        let stored = self.run(key, |store, call| {
            let mut payload = Payload::Bytes(value);
            // No record's header is longer.
            if key.len() + value.len() + 64 > store.large_bytes() {
                match store.reserve(call, value.len()) {
                    Step::Done(mut incoming) => {
                        while incoming.missing() > 0 {
                            let come = value.len() - incoming.missing();
                            match store.receive(call, &mut incoming, &value[come..]) {
                                Step::Done(()) | Step::Again => {}
                                Step::Busy => return Step::Busy,
                                _ => return Step::NoMemory,
                            }
                        }
                        payload = Payload::Incoming(incoming);
                    }
                    Step::Busy => return Step::Busy,
                    _ => return Step::NoMemory,
                }
            }
            store.put(call, &put, &mut payload)
        });
        self.zeros = zeros;
        self.counts.sets += 1;
        self.counts.refused += u64::from(!matches!(stored, Some(PutResult::Stored(_))));
    }

    /// Runs an operation to its end; `None` when there was no room for it.
    fn run<R>(&mut self, key: &[u8], mut operation: impl FnMut(&Store, &Call<'_>) -> Step<R>) -> Option<R> {
        let hash = self.store.hash(key);
        let mut read: Option<(ReadPlan, Option<IoBuf>)> = None;
        let mut on_full = OnFull::Wait;
        loop {
            let loaded = read.as_ref().map(|(plan, bytes)| Loaded { plan, bytes: bytes.as_deref() });
            match operation(&self.store, &Call { key, hash, now: self.now, loaded, on_full }) {
                Step::Done(result) => return Some(result),
                Step::NoMemory => return None,
                Step::Read(plan) => {
                    let bytes = self.read(&plan);
                    read = Some((plan, bytes));
                }
                Step::Again => {}
                Step::Busy => {
                    if !self.write_one() && !self.rescue_one() {
                        on_full = OnFull::Drop;
                    }
                }
            }
        }
    }

    fn read(&mut self, plan: &ReadPlan) -> Option<IoBuf> {
        self.counts.device_reads += 1;
        let mut bytes = IoBuf::zeroed(plan.bytes());
        self.device.read_at(&mut bytes, plan.offset()).ok().map(|_| bytes)
    }

    fn write_one(&mut self) -> bool {
        let Some(job) = self.store.next_write(false) else { return false };
        if let Some(on_write) = &mut self.on_write {
            on_write(job.data());
        }
        let ok = self.device.write_at(job.data(), job.offset).is_ok();
        self.store.complete_write(job, ok, self.now);
        true
    }

    fn rescue_one(&mut self) -> bool {
        let Some(plan) = self.store.next_readmission() else { return false };
        self.counts.readmission_reads += 1;
        let bytes = self.read(&plan);
        self.store.readmit(Loaded { plan: &plan, bytes: bytes.as_deref() }, self.now);
        true
    }
}
