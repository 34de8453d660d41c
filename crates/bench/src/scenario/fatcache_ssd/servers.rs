//! The servers of one arrangement, and the SSD file that they share.

use super::{Arrangement, MIB};
use crate::scenario::cgroup::Cgroup;
use crate::scenario::folder::Folder;
use crate::scenario::server::{Make, Server, Setup, Ssd};
use crate::scenario::{Halt, Stage};
use std::path::PathBuf;
use std::time::Duration;

/// Servers that share a file. They end before the file and the limit of their memory do.
pub(super) struct Servers {
    /// One a share of the file.
    pub servers: Vec<Server>,
    _limits: Vec<Cgroup>,
    folder: Folder,
}

impl Servers {
    /// Starts the servers of an arrangement.
    ///
    /// # Errors
    /// A server does not start, or a stop was asked for.
    pub fn start(stage: &mut Stage<'_>, one: Arrangement) -> Result<Self, Halt> {
        let folder = stage.new_folder()?;
        let mut all = Self { servers: Vec::new(), _limits: Vec::new(), folder };
        for share in 1..=one.servers {
            let mut setup = Setup::new(one.make);
            setup.memory_mib = one.memory_mib;
            setup.threads = 1;
            setup.item_bytes = Some(one.item_bytes());
            setup.ssd = Some(Ssd { path: all.file(), bytes: one.ssd_mib * MIB, share: (share, one.servers) });
            let server = stage.start(setup)?;
            if one.make == Make::Extstore {
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

    /// Returns the path of the shared file.
    pub fn file(&self) -> PathBuf {
        self.folder.path().join("ssd")
    }

    /// Waits until writes to the SSD have ended, so that gets are measured alone.
    pub fn settle(&self, stage: &Stage<'_>) {
        if self.servers.iter().any(|server| server.setup.make == Make::Extstore) {
            // extstore moves items that are a second old, and has no counter of those left to move.
            std::thread::sleep(Duration::from_secs(3));
        }
        for _ in 0..20 {
            if self.sum("larder.ssd_writes_pending") == 0.0 || stage.is_stopped() {
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

    /// Returns the gets that were answered from RAM, and from the SSD.
    pub fn hits(&self) -> (f64, f64) {
        match self.servers.first().map(|server| server.setup.make) {
            Some(Make::Larder) => (self.sum("larder.get_hits_ram"), self.sum("larder.get_hits_ssd")),
            _ => {
                let ssd = self.sum("get_extstore");
                (self.sum("get_hits") - ssd, ssd)
            }
        }
    }

    fn sum(&self, counter: &str) -> f64 {
        self.servers.iter().map(|server| server.counter(counter)).sum()
    }
}
