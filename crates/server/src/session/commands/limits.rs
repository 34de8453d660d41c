//! Rate limits: decided where their state is, by the server's clock.

use larder_protocol::{Check, text};
use larder_rate::State;
use larder_store::{Expiry, KeyHash, Seconds, Step, Updated};

use crate::session::{Ctx, Served, Session};

/// Added to the time that a state matters, since expiries are whole seconds of a clock that is read less often.
const SPARE_S: u64 = 2;

impl Session {
    /// Decides whether a cost passes, and counts it if so. The time is read under the lock of the state's shard, so two
    /// workers never decide in another order than that of their times.
    pub(super) fn check(&mut self, ctx: &mut Ctx<'_>, request: &Check<'_>, hash: KeyHash) -> Served {
        let Check { key, limit, cost, reply } = request;
        let decide = |value: Option<&[u8]>| {
            let state = value.map(State::decode);
            // None is no state, and Some(None) is something else.
            if state == Some(None) {
                return (None, None);
            }
            let now_ns = ctx.shared.clock.unix_ns();
            let (verdict, new) = limit.decide(state.flatten(), now_ns, *cost);
            let updated = new.map(|new| {
                let lives_s = limit.state_lives(&new, now_ns).as_secs() + SPARE_S;
                Updated { value: new.encode(), expiry: expiry_in(ctx.now, lives_s) }
            });
            (updated, Some(verdict))
        };
        let call = self.call(ctx, key.bytes(), hash);
        let step = ctx.shared.store.update(&call, key.is_base64(), decide);
        self.release_read(&step);
        let verdict = match step {
            Step::Done(verdict) => verdict.flatten(),
            Step::Read(plan) => return self.wait_for_read(ctx, plan),
            Step::Again => return self.try_again(),
            Step::Busy => return self.wait_for_room(ctx),
            Step::NoMemory => return self.no_memory(ctx, reply, key.bytes()),
        };
        ctx.counters.cmd_meta.up();
        match verdict {
            Some(verdict) => {
                if verdict.is_allowed {
                    ctx.shared.note_change(hash);
                }
                let counts = &ctx.counters;
                let count = if verdict.is_allowed { &counts.limits_allowed } else { &counts.limits_denied };
                count.up();
                reply.verdict(self.out.tail(), key.bytes(), &verdict);
            }
            None => reply.line(self.out.tail(), text::NOT_A_LIMIT),
        }
        Served::Done
    }
}

fn expiry_in(now: Seconds, seconds: u64) -> Expiry {
    Expiry::At(Seconds(now.0.saturating_add(u32::try_from(seconds).unwrap_or(u32::MAX))))
}
