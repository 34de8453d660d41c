//! Reads the file of users at the start, and again when the daemon is told to.

use crate::auth::Auth;
use crate::config::Config;

/// Returns the users that the configuration asks for.
///
/// # Errors
/// A text for the operator, with a remedy.
pub fn open(config: &Config) -> Result<Option<Auth>, String> {
    let Some(path) = &config.auth_file else { return Ok(None) };
    let auth = Auth::new(path);
    load(&auth).map_err(|problem| format!("-Y {problem}"))?;
    Ok(Some(auth))
}

/// Reads the file again. The users stay as they are if that fails.
pub fn reload(auth: Option<&Auth>) {
    let Some(auth) = auth else { return };
    match load(auth) {
        Ok(users) => tracing::info!(users, "-Y: the users are read again"),
        Err(problem) => tracing::error!("-Y {problem}; the users stay as they were"),
    }
}

fn load(auth: &Auth) -> Result<usize, String> {
    let loaded = auth.load()?;
    for warning in loaded.warnings {
        tracing::warn!("-Y {warning}");
    }
    Ok(loaded.users)
}
