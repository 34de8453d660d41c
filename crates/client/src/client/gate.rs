//! Which server a key goes to now: its own, unless that is down.

use super::Client;
use crate::error::{Error, Result};
use crate::options::OnDown;

/// The decisions of one call: each server is asked of its breaker once, so that the call is one probe at most.
pub(super) struct Gate<'c> {
    client: &'c Client,
    now_ms: u64,
    admitted: Vec<usize>,
    denied: Vec<(usize, u64)>,
}

impl<'c> Gate<'c> {
    pub(super) fn new(client: &'c Client) -> Self {
        let now_ms = client.inner.options.clock.now_ms();
        Gate { client, now_ms, admitted: Vec::new(), denied: Vec::new() }
    }

    /// Returns the server for a key.
    ///
    /// # Errors
    /// When the key's own server is down, and with [`OnDown::Eject`] every other one, too.
    pub(super) fn place(&mut self, key: &[u8]) -> Result<usize> {
        let inner = &self.client.inner;
        let own = inner.router.pick(key, |_| true).ok_or(Error::NoServers)?;
        let Err(down) = self.admit(own) else { return Ok(own) };
        if inner.options.on_down == OnDown::Fail {
            return Err(down);
        }
        loop {
            let picked = inner.router.pick(key, |at| !self.denied.iter().any(|(denied, _)| *denied == at));
            let Some(other) = picked else { return Err(down) };
            if self.admit(other).is_ok() {
                return Ok(other);
            }
        }
    }

    /// Asks a server's breaker, once.
    ///
    /// # Errors
    /// When the server is down.
    pub(super) fn admit(&mut self, at: usize) -> Result<()> {
        let server = self.client.inner.servers.get(at).ok_or(Error::NoServers)?;
        if self.admitted.contains(&at) {
            return Ok(());
        }
        let known = self.denied.iter().find(|(denied, _)| *denied == at).map(|(_, wait_ms)| *wait_ms);
        let denied = match known {
            Some(wait_ms) => Err(wait_ms),
            None => server.breaker.admit(self.now_ms).inspect_err(|wait_ms| self.denied.push((at, *wait_ms))),
        };
        match denied {
            Ok(()) => self.admitted.push(at),
            Err(retry_in_ms) => return Err(Error::Down { server: server.name.clone(), retry_in_ms }),
        }
        Ok(())
    }
}
