//! What the tests share: a connection without a socket, the probe transcript, and hand-made transcripts.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

pub mod corpus;
pub mod fuzz_body;

use larder_protocol::{ItemInfo, Outcome, Request, Step, Verdict, Wire, body_tail_is_valid, detect, parse};

/// How a connection takes the value of a store that has not arrived whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bodies {
    /// Wait for all of it and parse again.
    Wait,
    /// Take it as it comes, into memory of one's own.
    Stream,
}

/// A store whose value is being streamed: its head, what came since, and how much that must become.
struct Streaming {
    head: Vec<u8>,
    body: Vec<u8>,
    value_len: usize,
    body_len: usize,
}

/// Feeds `chunks` to a connection and writes down what it made of them, one line a step.
pub fn events<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, bodies: Bodies) -> Vec<String> {
    let mut events = Vec::new();
    let mut buffer: Vec<u8> = Vec::new();
    let mut wire: Option<Wire> = None;
    let mut swallow = 0u64;
    let mut streaming: Option<Streaming> = None;
    for chunk in chunks {
        buffer.extend_from_slice(chunk);
        loop {
            let gone = swallow.min(buffer.len() as u64);
            buffer.drain(..gone as usize);
            swallow -= gone;
            if let Some(store) = &mut streaming {
                let more = (store.body_len - store.body.len()).min(buffer.len());
                store.body.extend(buffer.drain(..more));
                if store.body.len() < store.body_len {
                    break;
                }
                events.push(streamed(wire, store));
                streaming = None;
            }
            let Some(first) = buffer.first() else { break };
            let wire = *wire.get_or_insert_with(|| detect(*first));
            let consumed = match parse(wire, &buffer) {
                Step::Incomplete { need } => {
                    assert!(need > buffer.len(), "waits for what is there");
                    break;
                }
                Step::Request { request, len } => {
                    events.push(format!("{request:?}"));
                    len
                }
                Step::Body { request, head, tail } => {
                    let value_len = request.value_len as usize;
                    assert!(request.value.is_empty());
                    assert!(buffer.len() < head + value_len + tail, "the body is there, yet not taken");
                    if bodies == Bodies::Wait {
                        break;
                    }
                    let head_bytes = buffer[..head].to_vec();
                    streaming = Some(Streaming {
                        head: head_bytes,
                        body: Vec::new(),
                        value_len,
                        body_len: value_len + tail,
                    });
                    head
                }
                Step::Reject { reject, len, swallow: more, close } => {
                    let said = written(|out| reject.encode(out));
                    events.push(format!("reject {}", said.escape_ascii()));
                    swallow = more;
                    if close {
                        events.push("close".into());
                        return events;
                    }
                    len
                }
                Step::Login { login, len, swallow: more } => {
                    events.push(format!("{login:?}"));
                    swallow = more;
                    len
                }
                Step::Close => {
                    events.push("close".into());
                    return events;
                }
            };
            buffer.drain(..consumed);
        }
    }
    events
}

/// What a streamed store comes to: by the tail, and by what the parser says of the same bytes in one piece.
fn streamed(wire: Option<Wire>, store: &Streaming) -> String {
    let all = [&store.head[..], &store.body].concat();
    let (value, tail) = store.body.split_at(store.value_len);
    let wire = wire.expect("a head came before");
    match parse(wire, &all) {
        Step::Request { request: Request::Store(request), len } => {
            assert!(body_tail_is_valid(tail));
            assert_eq!((request.value, len), (value, all.len()));
            format!("{:?}", Request::Store(request))
        }
        Step::Reject { reject, len, swallow: 0, close: false } => {
            assert!(!body_tail_is_valid(tail));
            assert_eq!(len, all.len());
            let said = written(|out| reject.encode(out));
            let Step::Body { request, .. } = parse(wire, &store.head) else {
                panic!("a head alone is a body to come")
            };
            let item = ItemInfo::default();
            let streamed = written(|out| request.reply.outcome(out, b"", Outcome::BadDataChunk, &item));
            assert_eq!(said, streamed, "streaming and waiting answer alike");
            format!("reject {}", said.escape_ascii())
        }
        other => panic!("not a store: {other:?}"),
    }
}

/// All at once.
pub fn whole(input: &[u8]) -> Vec<String> {
    events([input], Bodies::Wait)
}

/// What the parser alone has to say to `input`: rejections and what needs no store. Returns the text and
/// whether the connection closes.
pub fn said(input: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::new();
    let mut rest = input;
    let wire = detect(input[0]);
    while !rest.is_empty() {
        let consumed = match parse(wire, rest) {
            Step::Request { request, len } => {
                let item = ItemInfo::default();
                match &request {
                    Request::Noop(reply) | Request::Version(reply) | Request::Verbosity(_, reply) => {
                        reply.outcome(&mut out, b"", Outcome::Ok, &item);
                    }
                    Request::Flush(flush) => flush.reply.outcome(&mut out, b"", Outcome::Ok, &item),
                    Request::Quit(reply) => {
                        reply.outcome(&mut out, b"", Outcome::Ok, &item);
                        return (out, true);
                    }
                    _ => {}
                }
                len as u64
            }
            Step::Reject { reject, len, swallow, close } => {
                reject.encode(&mut out);
                if close {
                    return (out, true);
                }
                len as u64 + swallow
            }
            Step::Login { login, len, swallow } => {
                login.reply.encode(&mut out, Verdict::Unknown);
                len as u64 + swallow
            }
            Step::Close => return (out, true),
            Step::Incomplete { .. } | Step::Body { .. } => break,
        };
        rest = rest.get(consumed as usize..).unwrap_or_default();
    }
    (out, false)
}

/// The one request that `input` is.
pub fn request(input: &[u8]) -> Request<'_> {
    match parse(detect(input[0]), input) {
        Step::Request { request, len } => {
            assert_eq!(len, input.len(), "bytes left of {}", input.escape_ascii());
            request
        }
        other => panic!("{} is not a request but {other:?}", input.escape_ascii()),
    }
}

/// What is written by `write`.
pub fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = b"|".to_vec();
    write(&mut out);
    assert_eq!(out.remove(0), b'|', "encoders append");
    out
}

/// A binary request.
pub fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend(((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend(0xdead_beefu32.to_be_bytes());
    bytes.extend(cas.to_be_bytes());
    bytes.extend([extras, key, value].concat());
    bytes
}

/// A binary answer.
pub fn answer(opcode: u8, status: u16, cas: u64, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x81, opcode];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0]);
    bytes.extend(status.to_be_bytes());
    bytes.extend(((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend(0xdead_beefu32.to_be_bytes());
    bytes.extend(cas.to_be_bytes());
    bytes.extend([extras, key, value].concat());
    bytes
}
