//! The store's memory as a file without a name, which the service manager keeps while no daemon runs. What it holds
//! is judged elsewhere.

use std::fs::{File, Permissions};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;

use super::owned_file;
use crate::config::Config;
use crate::service::{OWN_PREFIX, Service};

/// A memory that a service manager keeps, or will.
pub struct KeptMemory {
    /// Open for reading and writing, and locked for this process.
    pub file: File,
    /// The descriptor that the service manager has a copy of.
    kept: OwnedFd,
}

/// The memory of an earlier daemon of this service.
#[derive(Default)]
pub struct Earlier {
    memory: Option<KeptMemory>,
    /// The reason why there is none.
    why_none: String,
}

fn name() -> String {
    format!("{OWN_PREFIX}memory")
}

impl KeptMemory {
    /// Returns a new and empty memory.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn new() -> Result<KeptMemory, String> {
        let file = larder_device::anonymous_file("larder").map_err(|error| error.to_string())?;
        file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| error.to_string())?;
        KeptMemory::open(file.into())
    }

    /// Opens the file behind a descriptor for this process alone. It needs a lock of its own, since all copies of one
    /// descriptor share theirs.
    fn open(kept: OwnedFd) -> Result<KeptMemory, String> {
        let path = format!("/proc/self/fd/{}", kept.as_raw_fd());
        let file = File::options().read(true).write(true).open(&path);
        let file = file.map_err(|error| format!("{path} cannot be opened ({error})"))?;
        owned_file::lock(&file)?;
        Ok(KeptMemory { file, kept })
    }

    /// Gives it to the service manager, in the place of an earlier one.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn keep(&self, service: &Service) -> Result<(), String> {
        let kept = service.forget(&name()).and_then(|()| service.keep(&name(), self.kept.as_fd()));
        kept.map_err(|error| {
            format!("the service manager cannot be given the memory: {error}; check NOTIFY_SOCKET")
        })
    }
}

impl Earlier {
    /// Takes the memory of an earlier daemon, if this one keeps its own in the same way.
    ///
    /// # Errors
    /// A text for the operator: there is no service manager, or another process uses the memory.
    pub fn take(config: &Config, service: &mut Service) -> Result<Earlier, String> {
        if !config.keeps_memory_in_service() {
            return Ok(Earlier::default());
        }
        if !service.is_there() {
            return Err(
                "--memory-file systemd: no service manager started this daemon (NOTIFY_SOCKET is not \
                        set); start it as a service with Type=notify and FileDescriptorStoreMax=64, or give \
                        the path of a file on tmpfs"
                    .into(),
            );
        }
        let Some(descriptor) = service.take(|passed| passed.name == name()) else {
            return Ok(Earlier::none(
                "systemd has none (it keeps it over a restart, not over a stop, in a unit with \
                 FileDescriptorStoreMax=64)"
                    .into(),
            ));
        };
        let memory =
            KeptMemory::open(descriptor).map_err(|error| format!("--memory-file systemd: {error}"))?;
        Ok(Earlier { memory: Some(memory), why_none: String::new() })
    }

    fn none(why: String) -> Earlier {
        Earlier { memory: None, why_none: why }
    }

    /// Returns its file, if there is one.
    pub fn file(&self) -> Option<&File> {
        self.memory.as_ref().map(|memory| &memory.file)
    }

    /// Closes it, as it cannot be used for a reason. It stays with the service manager until another is kept.
    pub fn give_up(&mut self, why: String) {
        *self = Earlier::none(why);
    }

    /// Returns it, or the reason why there is none.
    ///
    /// # Errors
    /// That reason.
    pub fn into_memory(self) -> Result<KeptMemory, String> {
        self.memory.ok_or(self.why_none)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn one_memory_is_open_once_and_again_after_that() {
        let mut first = KeptMemory::new().expect("memory");
        first.file.write_all(b"items").expect("room");
        let copy = first.kept.try_clone().expect("a descriptor");
        let said = KeptMemory::open(copy).map(drop).expect_err("it is in use");
        assert!(said.contains("another process uses it"), "{said}");
        let copy = first.kept.try_clone().expect("a descriptor");
        drop(first);
        let mut again = KeptMemory::open(copy).expect("it is free");
        let mut text = String::new();
        again.file.read_to_string(&mut text).expect("it is there");
        assert_eq!(text, "items");
    }

    #[test]
    fn without_a_service_manager_a_start_is_refused() {
        let config = Config::from_args(["larder", "--memory-file", "systemd", "--ssd", "none"]);
        let config = config.expect("valid options");
        let said = Earlier::take(&config, &mut Service::default()).map(drop).expect_err("nobody keeps it");
        assert!(said.contains("Type=notify"), "{said}");
    }
}
