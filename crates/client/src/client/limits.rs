//! Rate limits that the server decides: Larder does, and memcached refuses the command.

use std::sync::atomic::Ordering::Relaxed;

use larder_rate::{Limit, Verdict};

use super::Client;
use super::call::Kind;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::wire::{Check, Facts, Reply, Request};

/// A server that refused the command is asked again after so long: it may have been replaced.
const REFUSED_MS: u64 = 60_000;
const NS_PER_MS: u64 = 1_000_000;

impl Client {
    /// Asks the key's server whether a cost passes a limit, in one round trip. Returns none if the server does not know
    /// the command; then it is not asked again for a minute.
    ///
    /// # Errors
    /// See [`Error`]. Whether the cost was counted may then be unknown.
    pub(crate) fn check_limit(&self, key: &[u8], limit: &Limit, cost: u64) -> Result<Option<Verdict>> {
        let key = Key::new(key)?;
        let now_ms = self.inner.options.clock.now_ms();
        let own = self.inner.servers.get(self.server_of(key.bytes())).ok_or(Error::NoServers)?;
        if now_ms < own.refuses_limits_until_ms.load(Relaxed) {
            return Ok(None);
        }
        let request = Request::Check(Check { key, limit: *limit, cost });
        match self.ask(request, &key, Kind::Writes) {
            Ok((answer, server)) => match answer.reply {
                Reply::Done(facts) => verdict(true, &facts).map(Some),
                Reply::NotStored(facts) => verdict(false, &facts).map(Some),
                other => return Err(self.unexpected(server, other)),
            }
            .ok_or_else(|| self.unfitting(server, "a verdict without its figures")),
            Err(Error::Refused { server, line }) if line == "ERROR" => {
                // While the key's own server is down, another one may have refused.
                for refuses in self.inner.servers.iter().filter(|found| found.name == server) {
                    refuses.refuses_limits_until_ms.store(now_ms.saturating_add(REFUSED_MS), Relaxed);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

fn verdict(is_allowed: bool, facts: &Facts) -> Option<Verdict> {
    let retry_after_ms = u64::try_from(facts.retry_after_ms?).ok();
    Some(Verdict {
        is_allowed,
        remaining: facts.remaining?,
        retry_after_ns: retry_after_ms.map(|ms| ms.saturating_mul(NS_PER_MS)),
        reset_after_ns: facts.reset_after_ms?.saturating_mul(NS_PER_MS),
    })
}
