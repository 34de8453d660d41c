//! Authenticates a connection, and executes only what its user may send. While the reply to a login waits, so do the
//! requests behind it, and no other connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use larder_protocol::{Login, LoginReply, Reject, Request, Step, Verdict, Wire, Wish, parse_unauthenticated};
use larder_store::KeyHash;

use super::run::Batch;
use super::{Ctx, Session, Wait};
use crate::auth::Rights;

/// The state of a connection that has to authenticate.
#[derive(Default)]
pub(super) struct Guard {
    /// `None` until the peer has authenticated.
    rights: Option<Arc<Rights>>,
    /// Since when it has been seen without rights; `None` while it has some.
    locked_since: Option<Instant>,
    /// Logins that failed, in a row.
    failures: u32,
    /// The peer was told to send its credentials.
    awaits_step: bool,
    /// A login that is decided, and whose answer waits.
    decided: Option<Decided>,
}

struct Decided {
    reply: LoginReply,
    /// `None` is a refusal.
    rights: Option<Arc<Rights>>,
    came: Instant,
    until: Instant,
}

impl Guard {
    /// Returns whether the peer has authenticated.
    pub(super) fn is_open(&self) -> bool {
        self.rights.is_some()
    }

    /// Returns whether the peer has not authenticated for `limit` or longer, from the first call on that sees it so. A
    /// login that came in time is answered first.
    fn is_late(&mut self, now: Instant, limit: Duration) -> bool {
        if self.is_open() {
            return false;
        }
        let end = *self.locked_since.get_or_insert(now) + limit;
        now >= end && self.decided.as_ref().is_none_or(|decided| decided.came >= end)
    }

    /// Parses the front of the input of a peer that has not authenticated into an empty batch. Returns the bytes of the
    /// request, if it is one that needs no rights.
    #[cold]
    pub(super) fn parse_login<'a>(&self, wire: Wire, input: &'a [u8], batch: &mut Batch<'a>) -> usize {
        match parse_unauthenticated(wire, input) {
            Step::Request { request, len } => {
                batch.requests.push((request, KeyHash::default(), len));
                len
            }
            other => {
                batch.stop = Some(other);
                0
            }
        }
    }

    /// Cuts a batch off before the first request that is not permitted, which becomes its stop, as a refusal. Returns
    /// the bytes of the requests before it; `parsed` are those of all.
    #[cold]
    pub(super) fn restrict(&self, ctx: &Ctx<'_>, batch: &mut Batch<'_>, parsed: usize) -> usize {
        let Some(rights) = self.rights.as_ref().filter(|rights| !rights.is_unlimited()) else {
            return parsed;
        };
        let denied = batch.requests.iter().position(|(request, ..)| !rights.permits(request));
        if let Some((request, _, len)) = denied.and_then(|at| batch.requests.drain(at..).next()) {
            batch.stop = Some(deny(ctx, &request, len, 0));
        }
        batch.requests.iter_mut().for_each(|(request, ..)| rights.confine(request));
        if let Some(Step::Body { request, head, tail }) = &batch.stop
            && !rights.permits_store(request)
        {
            let swallow = u64::from(request.value_len) + *tail as u64;
            batch.stop = Some(deny(ctx, &Request::Store(request.clone()), *head, swallow));
        }
        batch.requests.iter().map(|(.., len)| len).sum()
    }
}

fn deny<'a>(ctx: &Ctx<'_>, request: &Request<'_>, len: usize, swallow: u64) -> Step<'a> {
    ctx.counters.requests_denied.up();
    Step::Reject { reject: Reject::denial(request.reply()), len, swallow, close: false }
}

impl Session {
    /// Executes a request to authenticate. A login that fails takes back what an earlier one gave.
    pub(super) fn log_in(&mut self, ctx: &Ctx<'_>, login: &Login<'_>) {
        let (Some(guard), Some(auth)) = (&mut self.guard, &ctx.shared.auth) else {
            return login.reply.encode(self.out.tail(), Verdict::Unknown);
        };
        let was_told = std::mem::take(&mut guard.awaits_step);
        let rights = match login.wish {
            Wish::Mechanisms => return login.reply.encode(self.out.tail(), Verdict::Mechanisms),
            Wish::Begin => {
                guard.awaits_step = true;
                return login.reply.encode(self.out.tail(), Verdict::Continue);
            }
            Wish::Check { is_step: true, .. } if !was_told => None,
            Wish::Check { user, password, .. } => auth.check(user, password),
            Wish::Invalid => None,
        };
        ctx.counters.auth_cmds.up();
        guard.rights = None;
        guard.failures = if rights.is_some() { 0 } else { guard.failures.saturating_add(1) };
        if rights.is_none() {
            ctx.counters.auth_errors.up();
            if ctx.shared.logs(1) {
                tracing::info!(connection = ctx.connection, "a login failed");
            }
        }
        let until = ctx.instant + auth.delay(guard.failures, ctx.instant);
        guard.decided = Some(Decided { reply: login.reply, rights, came: ctx.instant, until });
        self.finish_login(ctx);
    }

    /// Returns whether its peer has to log in, and has not for `limit` or longer. Call it at short intervals.
    pub fn is_late(&mut self, now: Instant, limit: Duration) -> bool {
        self.guard.as_mut().is_some_and(|guard| guard.is_late(now, limit))
    }

    /// Answers the login that waits for it, if its time has come. Returns whether none waits any more.
    pub(super) fn finish_login(&mut self, ctx: &Ctx<'_>) -> bool {
        let Some(guard) = &mut self.guard else { return true };
        if guard.decided.as_ref().is_some_and(|decided| decided.until > ctx.instant) {
            self.wait = Wait::Login;
            return false;
        }
        if let Some(Decided { reply, rights, .. }) = guard.decided.take() {
            let verdict = if rights.is_some() { Verdict::Accepted } else { Verdict::Refused };
            guard.rights = rights;
            if guard.is_open() {
                guard.locked_since = None;
            }
            reply.encode(self.out.tail(), verdict);
        }
        true
    }
}
