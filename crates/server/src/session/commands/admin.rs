//! Administrative commands. Those that tune memcached's slabs and LRU are accepted and have no effect.

use std::sync::atomic::Ordering::Relaxed;

use larder_protocol::{
    Admin, Automove, Clock, Crawler, ItemInfo, Lru, Outcome, Reply, Request, ShutdownMode, Slabs, text,
};

use super::keys::LineForm;
use crate::session::{Ctx, Served, Session};

const MIB: u64 = 1 << 20;
/// The cost of reading the certificates again, in bytes of a value that costs as much to send.
const REFRESH_COST_BYTES: usize = 1 << 20;

impl Session {
    /// Executes noop, version, verbosity and quit.
    pub(super) fn small_talk(
        &mut self,
        ctx: &mut Ctx<'_>,
        request: &Request<'_>,
        reply: &Reply<'_>,
    ) -> Served {
        if let Request::Noop(_) = request {
            // Changes that are done are told first: whoever reads the reply knows of all of them.
            self.announce();
            self.note_heard(ctx.instant);
        }
        if let Request::Verbosity(level, _) = request {
            ctx.shared.verbosity.store((*level).min(3) as u8, Relaxed);
        }
        reply.outcome(self.out.tail(), b"", Outcome::Ok, &ItemInfo::default());
        if let Request::Quit(_) = request {
            self.close();
        }
        Served::Done
    }

    pub(super) fn admin(&mut self, ctx: &mut Ctx<'_>, admin: &Admin<'_>) -> Served {
        let line = match admin {
            Admin::MemoryLimit(mib, _) => memory_limit(ctx, *mib),
            Admin::Shutdown(..) if !ctx.shared.config.shutdown => text::SHUTDOWN_NOT_ENABLED,
            Admin::Shutdown(ShutdownMode::Invalid, _) => text::SHUTDOWN_INVALID,
            Admin::Shutdown(ShutdownMode::Now | ShutdownMode::Graceful, _) => {
                ctx.shared.stop();
                self.close();
                return Served::Done;
            }
            Admin::Lru(Lru::TempTtl(None), _) => text::ERROR,
            Admin::Lru(..) => "OK",
            Admin::Slabs(Slabs::Automove(Automove::Level(_) | Automove::Tuning), _) => "OK",
            Admin::Slabs(..) => text::SLABS_NO_SPARE,
            Admin::Crawler(Crawler::Metadump(which), reply) => {
                return self.list_keys(ctx, which, LineForm::Metadata, reply);
            }
            Admin::Crawler(Crawler::Mgdump(which), reply) => {
                return self.list_keys(ctx, which, LineForm::Gets, reply);
            }
            Admin::Crawler(..) => "OK",
            Admin::Watch(classes, reply) => return self.watch(ctx, *classes, reply),
            Admin::Extstore(..) => "OK",
            Admin::RefreshCerts(reply) => {
                self.add_cost(REFRESH_COST_BYTES);
                refresh_certs(ctx, self.out.tail(), reply);
                return Served::Done;
            }
            Admin::Cluster(reply) => {
                match &ctx.shared.cluster {
                    Some(cluster) => self.out.tail().extend_from_slice(&cluster.reply()),
                    None => reply.line(self.out.tail(), text::ERROR),
                }
                return Served::Done;
            }
            // As in memcached, only builds for debugging and tests have it.
            Admin::DebugTime(..) if !cfg!(debug_assertions) => text::ERROR,
            Admin::DebugTime(clock, _) => {
                match clock {
                    Clock::Pause => ctx.shared.clock.pause(),
                    Clock::Resume => ctx.shared.clock.resume(),
                    Clock::Shift(seconds) => ctx.shared.clock.shift(*seconds),
                }
                ctx.now = ctx.shared.clock.now();
                // What was known of expiries does not hold any more.
                ctx.shared.note_change_of_all();
                "OK"
            }
        };
        admin.reply().line(self.out.tail(), line);
        Served::Done
    }
}

/// Changes the memory limit, within the memory that was set aside at start.
fn memory_limit(ctx: &Ctx<'_>, mib: u32) -> &'static str {
    if !ctx.shared.store.set_memory_limit(u64::from(mib) * MIB) {
        return text::MEMLIMIT_FAILED;
    }
    if ctx.shared.logs(1) {
        tracing::info!(mib, "the memory limit is set");
    }
    "OK"
}

/// Reads the certificates again. As in memcached, a problem is answered in its own words, also with noreply.
fn refresh_certs(ctx: &Ctx<'_>, out: &mut Vec<u8>, reply: &Reply<'_>) {
    let refreshed = match &ctx.shared.tls {
        Some(tls) => tls.refresh(),
        None => Err("TLS not enabled".to_string()),
    };
    match refreshed {
        Ok(()) => reply.line(out, "OK"),
        Err(problem) => out.extend_from_slice(format!("Error {problem}\r\n").as_bytes()),
    }
}
