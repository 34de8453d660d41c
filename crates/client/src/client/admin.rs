//! Requests to every server: its version, its statistics, to forget everything.

use super::Client;
use super::call::{Batch, Kind};
use super::gate::Gate;
use crate::error::{Error, Result};
use crate::exchange::Answer;
use crate::wire::{Reply, Request};

/// The longest argument of `stats`, in bytes.
const ARGUMENT_BYTES_MAX: usize = 200;

impl Client {
    /// Returns the version of each server, in their order.
    pub fn version(&self) -> Vec<Result<String>> {
        let answers = self.ask_all(&Request::Version, Kind::Version);
        let version = |(at, answer): (usize, Result<Vec<Answer>>)| match last(answer?) {
            Some(Reply::Version(version)) => Ok(version),
            other => Err(self.no_such_reply(at, other)),
        };
        answers.into_iter().enumerate().map(version).collect()
    }

    /// Invalidates all items of all servers, now or after `delay_s` seconds, and returns what became of it at each, in
    /// their order.
    pub fn flush_all(&self, delay_s: u32) -> Vec<Result<()>> {
        let answers = self.ask_all(&Request::FlushAll(delay_s), Kind::Flush);
        let done = |(at, answer): (usize, Result<Vec<Answer>>)| match last(answer?) {
            Some(Reply::Ok) => Ok(()),
            other => Err(self.no_such_reply(at, other)),
        };
        answers.into_iter().enumerate().map(done).collect()
    }

    /// Returns the statistics of each server, in their order, as names and values. `argument` is empty for the general
    /// ones, or a word such as `settings`.
    pub fn stats(&self, argument: &str) -> Vec<Result<Vec<(String, String)>>> {
        let is_word = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
        if argument.len() > ARGUMENT_BYTES_MAX || !argument.bytes().all(is_word) {
            let shown = argument.chars().take(ARGUMENT_BYTES_MAX).collect::<String>();
            return self.servers().map(|_| Err(Error::Argument(shown.clone()))).collect();
        }
        let answers = self.ask_all(&Request::Stats(argument), Kind::Stats);
        let lines = |(at, answers): (usize, Result<Vec<Answer>>)| {
            let mut found = Vec::new();
            for Answer { reply, .. } in answers? {
                match reply {
                    Reply::Stat(name, value) => found.push((name, value)),
                    Reply::End | Reply::Reset | Reply::Ok => {}
                    other => return Err(self.unexpected(at, other)),
                }
            }
            Ok(found)
        };
        answers.into_iter().enumerate().map(lines).collect()
    }

    /// Sends one request to each server, and returns the answers of each.
    fn ask_all(&self, request: &Request<'_>, kind: Kind) -> Vec<Result<Vec<Answer>>> {
        let mut gate = Gate::new(self);
        let mut results: Vec<Result<Vec<Answer>>> = Vec::new();
        let mut batches = Vec::new();
        for (server, _) in self.inner.servers.iter().enumerate() {
            let admitted = gate.admit(server);
            if admitted.is_ok() {
                batches.push(Batch { server, requests: vec![request.clone()], kind });
            }
            results.push(admitted.map(|()| Vec::new()));
        }
        let servers: Vec<usize> = batches.iter().map(|batch| batch.server).collect();
        for (outcome, server) in self.run(batches).into_iter().zip(servers) {
            if let Some(result) = results.get_mut(server) {
                *result = outcome.error.map_or(Ok(outcome.answers), Err);
            }
        }
        results
    }

    fn no_such_reply(&self, server: usize, reply: Option<Reply>) -> Error {
        match reply {
            Some(reply) => self.unexpected(server, reply),
            None => self.unfitting(server, "no reply at all"),
        }
    }
}

fn last(answers: Vec<Answer>) -> Option<Reply> {
    answers.into_iter().last().map(|answer| answer.reply)
}
