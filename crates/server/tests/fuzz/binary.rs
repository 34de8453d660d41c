//! Binary packets whose lengths fit mostly, executed one by one on both tiers: the replies are whole packets of the
//! request, and the next request is understood.

use super::harness::Choices;
use super::support::{Client, Server};

const OPCODES: usize = 0x28;
const NOOP: u8 = 0x0a;
const HEADER_BYTES: usize = 24;

/// Returns a packet, of which each length is that of the part, or now and then any.
fn packet(choices: &mut Choices<'_>, opaque: u32) -> Vec<u8> {
    let opcode = match choices.below(40) {
        0 => choices.below(256),
        _ => choices.below(OPCODES),
    };
    let key = [&b""[..], b"k", b"key", b"PLAIN", &[b'k'; 250], &[b'k'; 251]][choices.below(6)];
    let extras_len = [0, 4, 8, 20, 3, 12, 16][choices.below(7)];
    let extras = [choices.bytes(extras_len), &[0; 20]].concat()[..extras_len].to_vec();
    let value = match choices.below(16) {
        0 => vec![b'v'; choices.below(1_100_000)],
        1..4 => vec![b'v'; choices.below(10_000)],
        4 => b"17".to_vec(),
        _ => choices.bytes(3).to_vec(),
    };
    let mut bytes = vec![0x80, opcode as u8];
    bytes.extend((key.len() as u16).to_be_bytes());
    bytes.extend([extras.len() as u8, 0, 0, 0]);
    bytes.extend(((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend(opaque.to_be_bytes());
    bytes.extend((choices.below(3) as u64).to_be_bytes());
    if choices.one_in(20) {
        // Not the length of the body, which the next packet lies behind.
        bytes[[2, 3, 4, 5, 6, 7][choices.below(6)]] = choices.below(256) as u8;
    }
    bytes.extend([&extras, key, &value[..]].concat());
    bytes
}

fn noop(opaque: u32) -> Vec<u8> {
    [&[0x80, NOOP, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &opaque.to_be_bytes(), &[0; 8]].concat()
}

/// Checks that all of what came are packets with one of two opaques, and returns whether the last is that of the noop.
fn take_replies(mut got: &[u8], opaque: u32) -> bool {
    let mut is_last = false;
    while !got.is_empty() {
        let word = |at: usize| u32::from_be_bytes([got[at], got[at + 1], got[at + 2], got[at + 3]]);
        assert!(got.len() >= HEADER_BYTES && got[0] == 0x81, "a packet: {}", got.escape_ascii());
        let (len, whose) = (HEADER_BYTES + word(8) as usize, word(12));
        assert!(whose == opaque || whose == opaque + 1, "the reply to another request");
        is_last = whose == opaque + 1;
        got = got.get(len..).expect("a whole packet");
    }
    is_last
}

/// One input: what is in front of each noop.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let server = Server::start(&["-m", "8"], [0, 4][choices.below(2)]);
    let mut client = Client::to(&server);
    for opaque in (0..).step_by(2) {
        if choices.is_over() || client.session.is_over() {
            break;
        }
        let request = packet(&mut choices, opaque);
        let got = client.ask(&server, [&request[..], &noop(opaque + 1)].concat());
        let is_answered = take_replies(&got, opaque);
        let shown = request[..request.len().min(100)].escape_ascii();
        assert!(is_answered || client.session.is_over(), "{shown} leaves the noop unanswered");
        if choices.one_in(16) {
            server.push_out();
        }
    }
    server.shared.store.check().expect("the store is in order");
}
