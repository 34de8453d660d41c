//! Calls: requests are placed, sent to all their servers at once, repeated where that is harmless, and reported to the
//! breakers.

use super::gate::Gate;
use super::{Client, Upstream};
use crate::clock;
use crate::error::{Error, Result};
use crate::exchange::{Answer, Bounds, Expect, Lane, drive};
use crate::key::Key;
use crate::wire::{Malformed, Outbox, Reply, Request};

/// The requests of one call to one server.
pub(super) struct Batch<'r> {
    pub(super) server: usize,
    pub(super) requests: Vec<Request<'r>>,
    pub(super) kind: Kind,
}

/// How a batch is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Meta requests that may be sent again when their fate is unknown.
    Reads,
    /// Meta requests that may not.
    Writes,
    /// Meta requests without replies.
    Quiet,
    /// One `version`, which may be sent again.
    Version,
    /// One `flush_all`.
    Flush,
    /// One `stats`, which may be sent again.
    Stats,
}

impl Kind {
    fn is_repeatable(self) -> bool {
        matches!(self, Kind::Reads | Kind::Version | Kind::Stats)
    }

    fn expects(self, requests: usize) -> Expect {
        match self {
            Kind::Reads | Kind::Writes => Expect::Meta(requests),
            Kind::Quiet => Expect::Nothing,
            Kind::Version | Kind::Flush => Expect::Classic,
            Kind::Stats => Expect::Stats,
        }
    }
}

/// A call's batches, and where the result of each request belongs.
struct Plan<'r, T> {
    batches: Vec<Batch<'r>>,
    /// For each batch, the places of its requests among the results.
    places: Vec<Vec<usize>>,
    /// The errors of requests that could not be placed; of the others, something to be replaced.
    results: Vec<Result<T>>,
}

/// What became of a batch: the first requests have answers, and if there is an error, the others have that.
pub(super) struct Outcome {
    pub(super) answers: Vec<Answer>,
    pub(super) error: Option<Error>,
}

impl Client {
    /// Sends one meta request to the server of its key, and returns the answer.
    pub(super) fn ask(&self, request: Request<'_>, key: &Key<'_>, kind: Kind) -> Result<(Answer, usize)> {
        let server = Gate::new(self).place(key.bytes())?;
        Ok((self.ask_server(request, server, kind)?, server))
    }

    /// Sends one meta request to a server that a gate has admitted, and returns the answer.
    pub(super) fn ask_server(&self, request: Request<'_>, server: usize, kind: Kind) -> Result<Answer> {
        let batch = Batch { server, requests: vec![request], kind };
        let outcome = self.run(vec![batch]).pop().ok_or(Error::NoServers)?;
        match (outcome.answers.into_iter().next(), outcome.error) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error),
            (None, None) => Err(self.unfitting(server, "no reply at all")),
        }
    }

    /// Sends the requests of many keys, in one batch to each server, and returns an answer or an error for each in
    /// order. A key without a request has its error already.
    pub(super) fn ask_many<'r>(
        &self,
        requests: impl Iterator<Item = Result<(Key<'r>, Request<'r>)>>,
        kind: Kind,
    ) -> Vec<Result<(Answer, usize)>> {
        let Plan { batches, places, mut results } = self.plan(requests, kind);
        let servers: Vec<usize> = batches.iter().map(|batch| batch.server).collect();
        for ((outcome, places), server) in self.run(batches).into_iter().zip(places).zip(servers) {
            let error = outcome.error.unwrap_or_else(|| self.unfitting(server, "no reply at all"));
            let mut answers = outcome.answers.into_iter();
            for place in places {
                if let Some(slot) = results.get_mut(place) {
                    *slot = answers.next().map(|answer| (answer, server)).ok_or_else(|| error.clone());
                }
            }
        }
        results
    }

    /// Sends quiet requests like [`ask_many`](Self::ask_many), and returns for each whether it could be sent.
    pub(super) fn send_many<'r>(
        &self,
        requests: impl Iterator<Item = Result<(Key<'r>, Request<'r>)>>,
    ) -> Vec<Result<()>> {
        let Plan { batches, places, mut results } = self.plan(requests, Kind::Quiet);
        for (outcome, places) in self.run(batches).into_iter().zip(places) {
            for place in places {
                if let Some(slot) = results.get_mut(place) {
                    *slot = outcome.error.clone().map_or(Ok(()), Err);
                }
            }
        }
        results
    }

    fn plan<'r, T>(
        &self,
        requests: impl Iterator<Item = Result<(Key<'r>, Request<'r>)>>,
        kind: Kind,
    ) -> Plan<'r, T> {
        let mut gate = Gate::new(self);
        let mut plan = Plan { batches: Vec::new(), places: Vec::new(), results: Vec::new() };
        // The number of each server's batch.
        let mut batch_of: Vec<Option<usize>> = vec![None; self.inner.servers.len()];
        for (at, request) in requests.enumerate() {
            let placed = request.and_then(|(key, request)| Ok((gate.place(key.bytes())?, request)));
            let (server, request) = match placed {
                Ok(placed) => placed,
                Err(error) => {
                    plan.results.push(Err(error));
                    continue;
                }
            };
            plan.results.push(Err(Error::NoServers));
            let next = plan.batches.len();
            let batch = batch_of.get_mut(server).map_or(next, |batch| *batch.get_or_insert(next));
            if batch == next {
                plan.batches.push(Batch { server, requests: Vec::new(), kind });
                plan.places.push(Vec::new());
            }
            if let (Some(batch), Some(places)) = (plan.batches.get_mut(batch), plan.places.get_mut(batch)) {
                batch.requests.push(request);
                places.push(at);
            }
        }
        plan
    }

    /// Sends batches, each to another server, and returns what became of each in order. Each server must have been
    /// admitted by its breaker.
    pub(super) fn run(&self, batches: Vec<Batch<'_>>) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> =
            batches.iter().map(|_| Outcome { answers: Vec::new(), error: None }).collect();
        batches.iter().for_each(|_| self.inner.budget.deposit());
        let mut wanted: Vec<usize> = (0..batches.len()).collect();
        self.attempt(&batches, &wanted, &mut outcomes);
        wanted.retain(|at| {
            let (Some(batch), Some(outcome)) = (batches.get(*at), outcomes.get(*at)) else { return false };
            may_repeat(batch, outcome) && self.inner.budget.withdraw() && self.admits(batch.server)
        });
        if !wanted.is_empty() {
            self.attempt(&batches, &wanted, &mut outcomes);
        }
        outcomes
    }

    fn admits(&self, server: usize) -> bool {
        let now_ms = self.inner.options.clock.now_ms();
        self.inner.servers.get(server).is_some_and(|server| server.breaker.admit(now_ms).is_ok())
    }

    /// Sends what has no answer yet of the batches whose numbers are `wanted`, once.
    fn attempt(&self, batches: &[Batch<'_>], wanted: &[usize], outcomes: &mut [Outcome]) {
        let now = clock::now();
        let mut lanes = Vec::with_capacity(wanted.len());
        let mut owners = Vec::with_capacity(wanted.len());
        // Always in the order of the servers: two threads that each need two servers must not hold one and wait.
        let mut order = wanted.to_vec();
        order.sort_by_key(|at| batches.get(*at).map(|batch| batch.server));
        for at in order {
            let (Some(batch), Some(outcome)) = (batches.get(at), outcomes.get_mut(at)) else { continue };
            let Some(server) = self.inner.servers.get(batch.server) else { continue };
            match lane(server, batch, outcome.answers.len(), now) {
                Ok(lane) => {
                    lanes.push(lane);
                    owners.push((at, server));
                }
                Err(error) => {
                    self.report(server, Some(&error));
                    outcome.error = Some(error);
                }
            }
        }
        let options = &self.inner.options;
        let bounds = Bounds {
            timeout: options.timeout,
            deadline: (now + options.call_timeout, options.call_timeout),
            value_bytes_max: options.value_bytes_max,
            batch_bytes_max: options.batch_bytes_max,
        };
        drive(&mut lanes, &bounds);
        for (lane, (at, server)) in lanes.into_iter().zip(owners) {
            let (answers, error) = lane.finish();
            self.report(server, error.as_ref());
            if let Some(outcome) = outcomes.get_mut(at) {
                outcome.answers.extend(answers);
                outcome.error = error;
            }
        }
    }

    fn report(&self, server: &Upstream, error: Option<&Error>) {
        match error {
            Some(error) if error.counts_against_server() => {
                server.breaker.failure(self.inner.options.clock.now_ms());
            }
            // Without a connection nothing was learned about the server.
            Some(Error::Busy { .. }) => {}
            _ => server.breaker.success(),
        }
    }

    /// Returns the error for a reply that its request cannot have.
    pub(super) fn unfitting(&self, server: usize, what: &str) -> Error {
        let source = Malformed::Unfitting(what.to_string());
        Error::Protocol { server: self.server_name(server), source }
    }

    /// Turns a reply that no kind of success has into an error.
    pub(super) fn unexpected(&self, server: usize, reply: Reply) -> Error {
        match reply {
            Reply::Refused(line) => Error::Refused { server: self.server_name(server), line },
            other => self.unfitting(server, &format!("{other:?}")),
        }
    }

    fn server_name(&self, at: usize) -> std::sync::Arc<str> {
        self.inner.servers.get(at).map_or_else(|| "".into(), |server| server.name.clone())
    }
}

/// Returns whether a batch may be sent again, and whether that could help: a server that is slow, or talks nonsense,
/// would do so again.
fn may_repeat(batch: &Batch<'_>, outcome: &Outcome) -> bool {
    match &outcome.error {
        Some(Error::Connect { .. }) => true,
        Some(Error::Lost { .. }) => batch.kind.is_repeatable(),
        _ => false,
    }
}

/// Takes a connection, and encodes a batch without its first `answered` requests.
fn lane<'p, 'r>(
    server: &'p Upstream,
    batch: &Batch<'r>,
    answered: usize,
    now: std::time::Instant,
) -> Result<Lane<'p, 'r>> {
    let (mut connection, place) = server.pool.checkout()?;
    let requests = batch.requests.get(answered..).unwrap_or_default();
    let first_opaque = connection.take_opaques(requests.len());
    let mut outbox = Outbox::default();
    for (request, number) in requests.iter().zip(0u32..) {
        request.encode(Some(first_opaque.wrapping_add(number)), &mut outbox);
        outbox.end_request();
    }
    if batch.kind == Kind::Quiet {
        Request::Noop.encode(None, &mut outbox);
    }
    let expect = batch.kind.expects(requests.len());
    Ok(Lane::new(server.name.clone(), (connection, place), outbox, expect, first_opaque, now))
}
