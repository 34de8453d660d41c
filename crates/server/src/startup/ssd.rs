//! Opens the SSD tier's files and devices.

use std::path::Path;
use std::sync::Arc;

use larder_device::Bytes;
use larder_device::{Device, FileDevice, FileOptions, Origin};
use larder_store::{SEGMENT_BYTES, Span};

use super::owned_file;
use crate::config::{Config, Personality, SsdPath, SsdShare};

/// The SSD tier, opened and locked for this process.
pub struct SsdTier {
    /// The devices, numbered as in `spans`.
    pub files: Vec<FileDevice>,
    /// The parts of them that the store may use.
    pub spans: Vec<Span>,
    /// A line about each, for the operator.
    pub described: Vec<String>,
    /// Warnings about devices that do not work as well as they could.
    pub warnings: Vec<String>,
}

/// Opens all paths of the configuration.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<SsdTier, String> {
    let mut ssd = SsdTier { files: vec![], spans: vec![], described: vec![], warnings: vec![] };
    for (number, path) in config.ssd.iter().enumerate() {
        check_place(&path.path)?;
        let device =
            FileDevice::open(&file_options(config, path)).map_err(|error| format!("--ssd: {error}"))?;
        let shown = path.path.display();
        if !device.is_direct() {
            ssd.warnings.push(format!(
                "{shown} does not allow direct I/O (a file in memory?): the kernel's page cache will hold a \
                 second copy"
            ));
        }
        let length = device.len();
        ssd.described.push(format!("{shown} ({})", Bytes(length)));
        ssd.spans.push(Span { device: number, offset: 0, bytes: length });
        ssd.files.push(device);
    }
    Ok(ssd)
}

/// Returns the options to open one path with.
fn file_options(config: &Config, ssd: &SsdPath) -> FileOptions {
    let SsdShare { part, parts } = config.ssd_share;
    FileOptions {
        size_bytes: ssd.size_bytes,
        share: (config.ssd_share != SsdShare::WHOLE).then_some((part, parts)),
        format: config.ssd_format,
        create_parents: is_default(config, &ssd.path),
        segment_bytes: SEGMENT_BYTES,
        path: ssd.path.clone(),
    }
}

/// Refuses a path that leads where another user wants it to. A missing directory is reported, or made, when the
/// file is opened.
fn check_place(path: &Path) -> Result<(), String> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match parent.is_dir() {
        true => {
            owned_file::resolve(path).map(drop).map_err(|error| format!("--ssd {}: {error}", path.display()))
        }
        false => Ok(()),
    }
}

impl SsdTier {
    /// Returns whether an earlier daemon used one of the devices.
    pub fn was_used(&self) -> bool {
        self.files.iter().any(|file| matches!(file.origin(), Origin::Reopened | Origin::Reshaped))
    }

    /// Names the present content of the devices, all of them and in this order.
    pub fn identity(&self) -> Vec<u8> {
        self.files.iter().flat_map(|file| file.superblock().encode()).collect()
    }

    /// Makes the content of the devices unreadable. The index lives in memory: when it is lost, pages of an earlier
    /// process must never be taken for this one's.
    ///
    /// # Errors
    /// A text for the operator.
    pub fn renew(&mut self) -> Result<(), String> {
        for file in &mut self.files {
            let renewed = file.renew().map(drop);
            renewed.map_err(|error| format!("--ssd {}: {error}", file.path().display()))?;
        }
        Ok(())
    }

    /// Returns the devices, to be read and written.
    pub fn devices(self) -> Vec<Arc<FileDevice>> {
        self.files.into_iter().map(Arc::new).collect()
    }
}

/// Names the paths as they are given, and the share of them, whatever they hold.
pub fn names(config: &Config) -> Vec<u8> {
    let share = format!("{}/{}", config.ssd_share.part, config.ssd_share.parts);
    let paths = config.ssd.iter().flat_map(|ssd| [ssd.path.as_os_str().as_encoded_bytes(), b"\0"].concat());
    paths.chain(share.into_bytes()).collect()
}

/// Returns the parts of the paths that the store will use, as far as the configuration alone determines them:
/// `None` if a size is not given.
pub fn foreseen(config: &Config) -> Option<Vec<Span>> {
    let span = |(device, path): (usize, &SsdPath)| {
        let bytes = file_options(config, path).data_bytes(path.size_bytes?);
        Some(Span { device, offset: 0, bytes })
    };
    config.ssd.iter().enumerate().map(span).collect()
}

/// Returns whether the path is the default one. Only for that are directories created.
fn is_default(config: &Config, path: &Path) -> bool {
    config.personality == Personality::Larder && path.ends_with("larder/larder.ssd")
}
