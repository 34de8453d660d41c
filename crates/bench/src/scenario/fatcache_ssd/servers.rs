//! The servers of one arrangement, and the SSD file that they share.

use super::{Arrangement, MIB};
use crate::engine::{Address, Plan};
use crate::scenario::cgroup::Cgroup;
use crate::scenario::folder::Folder;
use crate::scenario::server::{Make, Server, Setup, Ssd};
use crate::scenario::{Halt, Stage};
use crate::watch::counters;
use crate::wire::Protocol;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What memcached calls the gets that its SSD answered.
const EXTSTORE_GETS: &str = "get_extstore";

/// Servers that share a file, or the one that runs already. Those that were started end before the file and the limit
/// of their memory do.
pub(super) struct Servers {
    /// One a share of the file.
    servers: Vec<Server>,
    /// The one that runs already.
    given: Option<Address>,
    _limits: Vec<Cgroup>,
    folder: Folder,
}

impl Servers {
    /// Starts the servers of an arrangement, or takes the one that runs already.
    ///
    /// # Errors
    /// A server does not start, or a stop was asked for.
    pub fn start(stage: &mut Stage<'_>, one: Arrangement) -> Result<Self, Halt> {
        let folder = stage.new_folder()?;
        let mut all = Self { servers: Vec::new(), given: None, _limits: Vec::new(), folder };
        let Some(make) = one.make else {
            all.given = stage.options.wanted.server.clone();
            return Ok(all);
        };
        for share in 1..=one.servers {
            let mut setup = Setup::new(make);
            setup.memory_mib = one.memory_mib;
            setup.threads = 1;
            setup.item_bytes = Some(one.item_bytes());
            setup.ssd = Some(Ssd { path: all.file(), bytes: one.ssd_mib * MIB, share: (share, one.servers) });
            let server = stage.start(setup)?;
            if make == Make::Extstore {
                // It reads its file through the page cache, which has to count as RAM.
                match Cgroup::limit(server.pid(), (one.memory_mib * 2 + 32) * MIB) {
                    Ok(limit) => all._limits.push(limit),
                    Err(why) => stage.part.note(format!(
                        "{}: the page cache is not limited ({why}), so that its reads may come from RAM",
                        one.name
                    )),
                }
            }
            all.servers.push(server);
        }
        Ok(all)
    }

    /// Plans a load against each server.
    pub fn plans(&self, stage: &Stage<'_>, label: &str) -> Vec<Plan> {
        let ours = self.servers.iter().map(|server| stage.plan(label, server));
        let given = self.given.iter().map(|address| stage.plan_of_peer(label, address.clone()));
        ours.chain(given).collect()
    }

    /// Returns the path of the file that the servers share.
    fn file(&self) -> PathBuf {
        self.folder.path().join("ssd")
    }

    /// Returns what is on the device to watch; where a server that runs already keeps its items is not known.
    pub fn device(&self) -> Option<String> {
        self.given.is_none().then(|| self.file().display().to_string())
    }

    /// Waits until writes to the SSD have ended, so that gets are measured alone.
    pub fn settle(&self, stage: &Stage<'_>) {
        if self.counters().iter().any(|values| values.contains_key(EXTSTORE_GETS)) {
            // extstore moves items that are a second old, and has no counter of those left to move.
            std::thread::sleep(Duration::from_secs(3));
        }
        for _ in 0..20 {
            if self.sum("larder.ssd_writes_pending").unwrap_or(0.0) == 0.0 || stage.is_stopped() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Drops the file from the page cache, where Larder keeps nothing of it and others do.
    pub fn forget(&self) {
        let Ok(file) = std::fs::File::open(self.file()) else { return };
        let _ = file.sync_all();
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
    }

    /// Returns the gets that were answered from RAM, and from the SSD; none if a server does not tell.
    pub fn hits(&self) -> Option<(f64, f64)> {
        if let (Some(ram), Some(ssd)) = (self.sum("larder.get_hits_ram"), self.sum("larder.get_hits_ssd")) {
            return Some((ram, ssd));
        }
        let ssd = self.sum(EXTSTORE_GETS)?;
        Some((self.sum("get_hits")? - ssd, ssd))
    }

    /// The sum of a counter that every server has.
    fn sum(&self, counter: &str) -> Option<f64> {
        self.counters().iter().map(|values| values.get(counter)?.parse::<f64>().ok()).sum()
    }

    /// The counters of each server; none of one that does not answer.
    fn counters(&self) -> Vec<BTreeMap<String, String>> {
        let addresses = self.servers.iter().map(|server| &server.address).chain(&self.given);
        let ask = |address| counters::ask(address, Protocol::Text, None, None).unwrap_or_default().values;
        addresses.map(ask).collect()
    }
}
