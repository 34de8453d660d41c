//! A cache over 64 MiB of RAM and 1 GiB of a file, in a program of one's own:
//! `cargo run --release -p larder-store --example embed -- /var/tmp/embed.larder`.

use larder_device::{Device, FileDevice, FileOptions, IoBuf};
use larder_store::{Call, Config, Fetch, Loaded, OnFull, Payload, Put, PutMode, Seconds, Span, Step, Store};

const ITEMS: u32 = 200_000;
const NOW: Seconds = Seconds(1);

struct Cache {
    store: Store,
    device: FileDevice,
}

impl Cache {
    fn call<'a>(&self, key: &'a [u8]) -> Call<'a> {
        Call { key, hash: self.store.hash(key), now: NOW, loaded: None, on_full: OnFull::Wait }
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        let (call, put) = (self.call(key), Put::new(PutMode::Set));
        loop {
            match self.store.put(&call, &put, &mut Payload::Bytes(value)) {
                Step::Again => {}
                Step::Busy => self.write(),
                _ => return,
            }
        }
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let read = |call: &Call<'_>| {
            self.store.fetch(call, &Fetch::default(), |found| found.map(|found| found.value.to_vec()))
        };
        let call = self.call(key);
        let Step::Read(plan) = read(&call) else { return read(&call).done()? };
        let mut buffer = IoBuf::zeroed(plan.bytes());
        let len = self.device.read_at(&mut buffer, plan.offset()).ok();
        let loaded = Some(Loaded { plan: &plan, bytes: len.map(|len| &buffer[..len]) });
        read(&Call { loaded, ..call }).done()?
    }

    /// Performs the writes that wait.
    fn write(&self) {
        while let Some(job) = self.store.next_write(false) {
            let is_ok = self.device.write_at(job.data(), job.offset).is_ok_and(|len| len == job.data().len());
            self.store.complete_write(job, is_ok, NOW);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: embed FILE")?;
    let device = FileDevice::open(&FileOptions { size_bytes: Some(1 << 30), ..FileOptions::new(path) })?;
    let ssd = vec![Span { device: 0, offset: 0, bytes: device.len() }];
    let store = Store::open(&Config { ssd, ..Config::new(64 << 20) })?;
    let cache = Cache { store, device };
    (0..ITEMS).for_each(|n| cache.set(format!("key:{n}").as_bytes(), &n.to_le_bytes().repeat(250)));
    let found = (0..ITEMS).filter(|n| cache.get(format!("key:{n}").as_bytes()).is_some()).count();
    println!("{found} of {ITEMS} items found, {} of them on the SSD", cache.store.stats().ssd_items);
    Ok(())
}
