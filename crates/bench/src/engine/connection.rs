//! One connection: bytes on their way out, requests in flight, bytes that came in.

use super::ledger::{Known, WriteMark};
use super::plan::Plan;
use crate::net::Error;
use crate::net::{Stream, Tls};
use crate::wire::{Decoder, Encoder, Expected, Garbage, Reply, Value, Verb};
use crate::workload::{Asked, Draw};
use rustix::fd::BorrowedFd;
use std::collections::VecDeque;
use std::io::{self, Read, Write};

const INPUT_BYTES: usize = 64 << 10;
/// Output that is kept for a connection whose server does not read; beyond, nothing more is asked.
const OUTPUT_BYTES_MAX: usize = 8 << 20;

/// Which part of a split request another one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitPart {
    /// The number of the split request among those of a thread; 0 of a request that is whole.
    pub of: u32,
    /// How many parts it has.
    pub parts: u32,
}

/// A request in flight.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// When it was due; 0 for when it was sent.
    pub due_ns: u64,
    /// When the last of its bytes so far was handed to the system; 0 before the first.
    pub sent_ns: u64,
    /// Its key, or the first of several.
    pub key: u64,
    /// Its verb.
    pub verb: Verb,
    /// Of how many keys.
    pub keys: u32,
    /// Its length.
    pub bytes: u32,
    /// How large the value is that it stores, or that a trace's get asks for.
    pub size: u32,
    /// The expiry that it is stored with.
    pub expiry_s: u32,
    /// The write that it is, if it is one that is followed.
    pub write: WriteMark,
    /// The state of its key when it begins, if it reads the key.
    pub known: Known,
    /// Which part of a request to several servers it is.
    pub part: SplitPart,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The request.
    pub asked: Asked,
    /// All keys of a get of several, the first one included; else empty.
    pub keys: &'a [u64],
    /// The values of sets in a row, the first one included; else empty.
    pub sets: &'a [QuietSet],
    /// The state of each key that the request reads.
    pub known: &'a [Known],
    /// The number that a cas names.
    pub unique: u64,
    /// When it is due; 0 for when it is sent.
    pub due_ns: u64,
    /// The version that its value is to carry.
    pub version: u64,
    /// See [`Flight::write`].
    pub write: WriteMark,
    /// See [`Flight::part`].
    pub part: SplitPart,
}

/// One of sets in a row.
#[derive(Clone, Copy, Debug)]
pub struct QuietSet {
    /// Its key.
    pub key: u64,
    /// Its value.
    pub value: Value,
    /// See [`Flight::write`].
    pub write: WriteMark,
}

/// One of the keys of a request but for the first.
#[derive(Clone, Copy, Debug)]
struct More {
    key: u64,
    known: Known,
    write: WriteMark,
}

/// A request in flight together with all its keys.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The request.
    pub flight: &'a Flight,
    more: &'a VecDeque<More>,
}

impl Asking<'_> {
    /// The key at a place of the request.
    pub fn key(&self, index: u32) -> Option<u64> {
        match index {
            index if index >= self.flight.keys => None,
            0 => Some(self.flight.key),
            index => self.more.get(index as usize - 1).map(|more| more.key),
        }
    }

    /// Returns the state, when the request began, of the key at this place of a get.
    pub fn known(&self, index: u32) -> Known {
        match index {
            0 => self.flight.known,
            index => self.more.get(index as usize - 1).map_or_else(Known::default, |more| more.known),
        }
    }

    /// The writes of the request, each with its key.
    pub fn writes(&self) -> impl Iterator<Item = (u64, WriteMark)> + '_ {
        let first = (self.flight.key, self.flight.write);
        let others = self.more.iter().take(self.flight.keys as usize - 1);
        std::iter::once(first).chain(others.map(|more| (more.key, more.write)))
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    input: Vec<u8>,
    input_begin: usize,
    input_end: usize,
    output: Vec<u8>,
    output_begin: usize,
    flights: VecDeque<Flight>,
    /// The keys of requests of several, but for the first of each.
    more_keys: VecDeque<More>,
    /// How many of the last requests are not wholly handed over.
    unsent: usize,
    /// Bytes of the first of these that are.
    unsent_done: usize,
    /// Bytes still to be handed over of requests that were answered before their end: a server may refuse a
    /// value as soon as it reads how large it is.
    answered_bytes: usize,
    decoder: Decoder,
    /// Whether a request was ever answered.
    is_answered: bool,
    /// Requests since it was opened, or since the load began.
    pub asked: u32,
    /// The number of its server.
    pub server: usize,
    /// The stream of its requests.
    pub draw: Draw,
    /// Whether it is waited for to be writable.
    pub is_blocked: bool,
    /// Whether it waits for its turn to be flushed.
    pub is_dirty: bool,
}

impl Connection {
    /// Connects to one of the plan's servers.
    ///
    /// # Errors
    /// The server is not there, does not agree on TLS, or refuses the login.
    pub fn open(plan: &Plan, server: usize, draw: Draw) -> Result<Self, Error> {
        Ok(Self {
            stream: Stream::connect(
                plan.address_of(server),
                plan.tls.as_ref(),
                plan.login.as_ref().map(|login| (login, plan.protocol)),
            )?,
            input: vec![0; INPUT_BYTES],
            input_begin: 0,
            input_end: 0,
            output: Vec::with_capacity(INPUT_BYTES),
            output_begin: 0,
            flights: VecDeque::with_capacity(64),
            more_keys: VecDeque::new(),
            unsent: 0,
            unsent_done: 0,
            answered_bytes: 0,
            decoder: Decoder::new(plan.protocol),
            is_answered: false,
            asked: 0,
            server,
            draw,
            is_blocked: false,
            is_dirty: false,
        })
    }

    /// What to wait on.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// Requests in flight, those included that could not be handed over yet.
    pub fn in_flight(&self) -> usize {
        self.flights.len()
    }

    /// Whether a request was ever answered to its end.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Bytes that wait to be sent.
    pub fn output_bytes(&self) -> usize {
        self.output.len() - self.output_begin
    }

    /// Whether something waits to be sent.
    pub fn has_output(&self) -> bool {
        self.output_bytes() > 0
    }

    /// Whether so much waits to be sent that nothing more should be asked.
    pub fn is_full(&self) -> bool {
        self.output_bytes() > OUTPUT_BYTES_MAX
    }

    /// Ends the connection, which has nothing in flight, and begins a new one; asks for the server's version there.
    /// It is blocked until it is established.
    ///
    /// # Errors
    /// The system refuses.
    pub fn renew(
        &mut self,
        tls: Option<&Tls>,
        encoder: &Encoder,
        due_ns: u64,
        now_ns: u64,
    ) -> io::Result<()> {
        self.stream.renew(tls)?;
        (self.input_begin, self.input_end, self.output_begin) = (0, 0, 0);
        self.output.clear();
        self.decoder = Decoder::new(encoder.protocol);
        (self.asked, self.is_answered, self.is_blocked) = (0, false, true);
        encoder.version(&mut self.output);
        let asked = Asked { verb: Verb::Connect, key: 0, size: 0, expiry_s: 0 };
        let due_ns = if due_ns == 0 { now_ns } else { due_ns };
        self.add_flight(
            Request {
                asked,
                keys: &[],
                sets: &[],
                known: &[],
                due_ns,
                version: 0,
                unique: 0,
                write: WriteMark::default(),
                part: SplitPart::default(),
            },
            0,
        );
        if let Some(flight) = self.flights.back_mut() {
            flight.sent_ns = now_ns;
        }
        Ok(())
    }

    /// Adds a request.
    pub fn ask(&mut self, encoder: &Encoder, request: Request<'_>) {
        let Request { asked, keys, sets, known, version, unique, .. } = request;
        let before = self.output.len();
        let value = Value { bytes: asked.size, expiry_s: asked.expiry_s, version };
        match asked.verb {
            Verb::Get if keys.is_empty() => encoder.get(&mut self.output, &[asked.key]),
            Verb::Get => {
                encoder.get(&mut self.output, keys);
                let more = |(key, known): (&u64, &Known)| More {
                    key: *key,
                    known: *known,
                    write: WriteMark::default(),
                };
                self.more_keys.extend(keys.iter().zip(known).skip(1).map(more));
            }
            Verb::Set if !sets.is_empty() => {
                encoder.sets(&mut self.output, sets.iter().map(|set| (set.key, set.value)));
                let more = |set: &QuietSet| More { key: set.key, known: Known::default(), write: set.write };
                self.more_keys.extend(sets.iter().skip(1).map(more));
            }
            Verb::Set => encoder.set(&mut self.output, asked.key, asked.size, asked.expiry_s, version),
            Verb::Incr => encoder.incr(&mut self.output, asked.key),
            Verb::Delete => encoder.delete(&mut self.output, asked.key),
            Verb::Touch => encoder.touch(&mut self.output, asked.key, asked.expiry_s),
            Verb::Gat => encoder.gat(&mut self.output, asked.key, asked.expiry_s),
            // See `renew`.
            Verb::Connect => encoder.version(&mut self.output),
            Verb::Gets => encoder.gets(&mut self.output, asked.key),
            Verb::Cas => encoder.cas(&mut self.output, asked.key, unique, value),
            Verb::Append | Verb::Prepend => {
                encoder.add(&mut self.output, asked.verb == Verb::Prepend, asked.key, value);
            }
        }
        self.asked += 1;
        self.add_flight(request, before);
    }

    /// Adds the storing of a counter.
    pub fn ask_counter(&mut self, encoder: &Encoder, key: u64) {
        let before = self.output.len();
        encoder.set_counter(&mut self.output, key);
        let asked = Asked { verb: Verb::Set, key, size: 0, expiry_s: 0 };
        let write = WriteMark::default();
        let part = SplitPart::default();
        let request = Request {
            asked,
            keys: &[],
            sets: &[],
            known: &[],
            due_ns: 0,
            version: 0,
            unique: 0,
            write,
            part,
        };
        self.add_flight(request, before);
    }

    fn add_flight(&mut self, request: Request<'_>, before: usize) {
        let Request { asked, keys, sets, known, due_ns, write, part, .. } = request;
        let Asked { verb, key, size, expiry_s } = asked;
        self.flights.push_back(Flight {
            due_ns,
            sent_ns: 0,
            key,
            verb,
            keys: keys.len().max(sets.len()).max(1) as u32,
            bytes: (self.output.len() - before) as u32,
            size,
            expiry_s,
            write,
            known: known.first().copied().unwrap_or_default(),
            part,
        });
        self.unsent += 1;
    }

    /// Sends as much as the socket takes in one write, and stamps sent requests with `now_ns`. Returns
    /// whether all were sent.
    ///
    /// # Errors
    /// The connection broke.
    pub fn flush(&mut self, now_ns: u64) -> io::Result<bool> {
        self.is_dirty = false;
        while self.output_begin < self.output.len() {
            let written = match self.stream.write(&self.output[self.output_begin..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.output_begin += written;
            self.stamp(written, now_ns);
        }
        let is_all = self.output_begin == self.output.len();
        // Bytes that were encrypted and not sent stay in the stream; the connection stays blocked for them.
        let is_gone = self.stream.push()? && is_all;
        if is_all {
            self.output.clear();
            self.output_begin = 0;
        } else if self.output_begin > OUTPUT_BYTES_MAX {
            self.output.drain(..self.output_begin);
            self.output_begin = 0;
        }
        Ok(is_gone)
    }

    fn stamp(&mut self, written: usize, now_ns: u64) {
        let answered = written.min(self.answered_bytes);
        self.answered_bytes -= answered;
        self.unsent_done += written - answered;
        let first = self.flights.len() - self.unsent;
        for flight in self.flights.range_mut(first..) {
            if self.unsent_done == 0 {
                break;
            }
            // A connection is under way from its first packet on.
            if flight.verb != Verb::Connect {
                flight.sent_ns = now_ns;
            }
            if flight.due_ns == 0 {
                flight.due_ns = now_ns;
            }
            if self.unsent_done < flight.bytes as usize {
                break;
            }
            self.unsent_done -= flight.bytes as usize;
            self.unsent -= 1;
        }
    }

    /// Takes the bytes that have arrived, in one read, with those that the stream holds back; returns their
    /// number.
    ///
    /// # Errors
    /// The connection broke, or the server closed it.
    pub fn receive(&mut self) -> io::Result<usize> {
        let mut received = self.receive_once()?;
        while self.stream.has_more() {
            received += self.receive_once()?;
        }
        Ok(received)
    }

    fn receive_once(&mut self) -> io::Result<usize> {
        if self.input_end == self.input.len() {
            if self.input_begin > 0 {
                self.input.copy_within(self.input_begin..self.input_end, 0);
                self.input_end -= self.input_begin;
                self.input_begin = 0;
            } else {
                self.input.resize(self.input.len() * 2, 0);
            }
        }
        loop {
            return match self.stream.read(&mut self.input[self.input_end..]) {
                Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.input_end += read;
                    Ok(read)
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Reads the arrived bytes piece by piece, and returns how many requests were answered to their end.
    ///
    /// # Errors
    /// The bytes are not a reply to the request.
    pub fn replies(&mut self, mut each: impl FnMut(Asking<'_>, &Reply<'_>)) -> Result<u32, Garbage> {
        let mut answered = 0;
        while self.input_begin < self.input_end {
            let input = &self.input[self.input_begin..self.input_end];
            let sent = self.flights.len() - self.unsent;
            let is_begun = sent > 0 || self.unsent_done > 0;
            let Some(flight) = self.flights.front().filter(|_| is_begun) else {
                return Err(Garbage::unasked(input));
            };
            let expected = Expected { verb: flight.verb, keys: flight.keys };
            let Some(reply) = self.decoder.next(expected, input)? else { break };
            each(Asking { flight, more: &self.more_keys }, &reply);
            self.input_begin += reply.consumed;
            if reply.is_last {
                answered += 1;
                if sent == 0 {
                    self.unsent -= 1;
                    self.answered_bytes += flight.bytes as usize - self.unsent_done;
                    self.unsent_done = 0;
                }
                self.more_keys.drain(..flight.keys as usize - 1);
                self.flights.pop_front();
            }
        }
        if self.input_begin == self.input_end {
            self.input_begin = 0;
            self.input_end = 0;
        }
        self.is_answered |= answered > 0;
        Ok(answered)
    }
}
