//! Reads the certificates at the start, and again when the daemon is told to.

use crate::config::Config;
use crate::tls::Tls;

/// Returns the certificates that the configuration asks for.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<Option<Tls>, String> {
    config.tls.as_ref().map(Tls::open).transpose()
}

/// Reads the files again. New connections get the same certificates as before if that fails.
pub fn reload(tls: Option<&Tls>) {
    let Some(tls) = tls else { return };
    match tls.refresh() {
        Ok(()) => tracing::info!("-Z: the certificates are read again"),
        Err(problem) => tracing::error!("{problem}; the certificates stay as they were"),
    }
}
