//! The rows: what keeps the value, who asks for it, and what such a row promises.

use crate::scenario::server::Make;
use std::time::Duration;

/// How long a value is used without asking its server by Larder's client, which is told so.
pub const FRESH: Duration = Duration::from_secs(1);

/// A loop over the value, after it was set once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Loop {
    /// Gets.
    Get,
    /// A set, and then a get.
    SetGet,
    /// Sets.
    Set,
}

impl Loop {
    /// Its name, in tables and as the workers know it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::SetGet => "set+get",
            Self::Set => "set",
        }
    }

    /// Whether it gets.
    pub fn has_gets(self) -> bool {
        self != Self::Set
    }
}

/// The program that runs a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// Perl, as in the document.
    Perl,
    /// A program of Larder's Rust client.
    Driver,
    /// Python.
    Python,
}

/// Which tier a row promises to read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Every get goes to the remote server.
    Far,
    /// Every get finds the value near.
    Near,
    /// The same, and the remote server is asked once in [`FRESH`] whether the value is current.
    NearWhileFresh,
    /// The near tier has the value and it is lost, so every get goes to the remote server: the document's fault.
    NearLost,
}

/// A row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name in tables.
    pub name: &'static str,
    /// What runs its loops.
    pub worker: Worker,
    /// The worker's word for it.
    pub store: &'static str,
    /// Modules that the worker needs.
    pub modules: &'static [&'static str],
    /// The servers that it uses.
    pub make: Make,
    /// Whether it uses a local server.
    pub near: bool,
    /// Whether it uses a remote server.
    pub far: bool,
    /// What it promises.
    pub promise: Promise,
    /// The document's name of it.
    pub theirs: Option<&'static str>,
    /// Its loops.
    pub loops: &'static [Loop],
    /// The rows of its two tiers alone, near and far.
    pub tiers: Option<(&'static str, &'static str)>,
    /// Whether its worker knows which of its gets asked the remote server; if not, the server's count is taken.
    pub counts_far: bool,
}

impl Row {
    /// Returns its name where the remote or the local servers may be the user's own, of any make.
    pub fn shown(&self, is_own_far: bool, is_own_near: bool) -> &'static str {
        match self.store {
            "far" if !is_own_far => "remote server",
            "near" if !is_own_near => "local server",
            _ => self.name,
        }
    }
}

const FAST: &str = "Cache::Memcached::Fast";
const TWO: &[Loop] = &[Loop::Get, Loop::SetGet];
const THREE: &[Loop] = &[Loop::Get, Loop::SetGet, Loop::Set];

const PERL: Row = Row {
    name: "",
    worker: Worker::Perl,
    store: "",
    modules: &[FAST],
    make: Make::Larder,
    near: false,
    far: false,
    promise: Promise::Near,
    theirs: None,
    loops: TWO,
    tiers: None,
    counts_far: true,
};
const PERL_FAR: Row =
    Row { store: "far", far: true, promise: Promise::Far, theirs: Some("memcached"), loops: THREE, ..PERL };
const PERL_NEAR: Row = Row { store: "near", near: true, theirs: Some("local memcached"), ..PERL };
const DRIVER: Row = Row { worker: Worker::Driver, modules: &[], ..PERL };
const PYTHON: Row = Row { worker: Worker::Python, modules: &["larder"], ..PERL };
const LMC: Row = Row { near: true, far: true, tiers: Some(("local larder", "remote larder")), ..PERL };

/// All of them; the document's seven are those with its names and Larder's servers.
pub const ROWS: [Row; 17] = [
    Row { name: "remote larder", ..PERL_FAR },
    Row { name: "remote memcached", make: Make::Memcached, ..PERL_FAR },
    Row { name: "local larder", ..PERL_NEAR },
    Row { name: "local memcached", make: Make::Memcached, ..PERL_NEAR },
    Row { name: "Cache::Mmap", store: "mmap", modules: &["Cache::Mmap"], theirs: Some("mmap"), ..PERL },
    Row {
        name: "Cache::FastMmap",
        store: "fastmmap",
        modules: &["Cache::FastMmap"],
        theirs: Some("mmap fast"),
        ..PERL
    },
    Row {
        name: "Tiered",
        store: "tiered-mmap",
        modules: &["Cache::Mmap", FAST],
        far: true,
        theirs: Some("Tiered"),
        tiers: Some(("Cache::Mmap", "remote larder")),
        ..PERL
    },
    Row {
        name: "TieredFast",
        store: "tiered-fastmmap",
        modules: &["Cache::FastMmap", FAST],
        far: true,
        theirs: Some("TieredFast"),
        tiers: Some(("Cache::FastMmap", "remote larder")),
        ..PERL
    },
    Row {
        name: "TieredLmc",
        store: "tiered-near-lost",
        promise: Promise::NearLost,
        theirs: Some("TieredLmc"),
        ..LMC
    },
    Row { name: "TieredLmc, mended", store: "tiered-near", ..LMC },
    Row { name: "Rust Client", store: "client", far: true, promise: Promise::Far, loops: THREE, ..DRIVER },
    Row { name: "Rust L1", store: "l1", ..DRIVER },
    Row {
        name: "Rust Tiered",
        store: "tiered",
        far: true,
        promise: Promise::NearWhileFresh,
        tiers: Some(("Rust L1", "Rust Client")),
        ..DRIVER
    },
    Row { name: "Python diskcache", store: "diskcache", modules: &["diskcache"], ..PYTHON },
    Row { name: "Python Client", store: "client", far: true, promise: Promise::Far, loops: THREE, ..PYTHON },
    Row { name: "Python L1", store: "l1", ..PYTHON },
    Row {
        name: "Python Tiered",
        store: "tiered",
        far: true,
        promise: Promise::NearWhileFresh,
        tiers: Some(("Python L1", "Python Client")),
        counts_far: false,
        ..PYTHON
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_named_once_and_tiers_are_rows() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(ROWS.iter().skip(at + 1).all(|other| other.name != row.name), "{}", row.name);
            let Some((near, far)) = row.tiers else { continue };
            let named = |name: &str| ROWS.iter().find(|row| row.name == name).expect("it is a row");
            assert!(!named(near).far && named(far).promise == Promise::Far, "{}", row.name);
            assert!(named(far).loops.contains(&Loop::Set), "its set alone is measured");
        }
    }
}
