//! A client's records, and what a fuzzer changes in them, leaves out, repeats and puts between them, in the handshake
//! and behind it.

use std::sync::OnceLock;

use larder_server::config::ListenTls;
use larder_server::tls::{HANDSHAKE_BYTES, INCOMING_BYTES_MAX, Tls};

use super::certificates::{Certificates, VERSIONS};
use super::harness::Choices;
use super::link::Link;

const LISTENERS: [ListenTls; 3] = [ListenTls::Default, ListenTls::Basic, ListenTls::Mutual];
/// Sizes of plain text: nothing, a byte, a record and one more byte, several.
const SIZES: [usize; 6] = [0, 1, 100, 16_384, 16_385, 70_000];

fn site() -> &'static (Certificates, Tls) {
    static SITE: OnceLock<(Certificates, Tls)> = OnceLock::new();
    SITE.get_or_init(|| {
        let certificates = Certificates::new();
        let tls = Tls::open(&certificates.options("")).expect("valid certificates");
        (certificates, tls)
    })
}

/// Changes what is on its way to the server. Returns whether it is as it was.
fn change(choices: &mut Choices<'_>, bytes: &mut Vec<u8>) -> bool {
    let at = choices.below(bytes.len() + 1);
    match choices.below(10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << choices.below(8),
        1 => bytes.truncate(at),
        2 => {
            let len = choices.below(40);
            bytes.splice(at..at, choices.bytes(len).iter().copied());
        }
        3 => {
            // A record of a kind that there is, with any contents.
            let (kind, len) = (choices.below(6) as u8 + 20, choices.below(300));
            let body = choices.bytes(len);
            let header = [kind, 3, 3, 0, 0];
            let record = [&header[..3], &(body.len() as u16).to_be_bytes(), body].concat();
            let at = if choices.one_in(2) { 0 } else { bytes.len() };
            bytes.splice(at..at, record);
        }
        4 => bytes.extend(bytes.clone()),
        5 => bytes.extend_from_slice(choices.bytes(100)),
        _ => return true,
    }
    false
}

/// One input: what a client does, and what happens on the way.
pub fn check(data: &[u8]) {
    let (certificates, tls) = site();
    let mut choices = Choices::new(data);
    let client = certificates.client(VERSIONS[choices.below(2)], choices.one_in(2));
    let mut link = Link::new(tls, LISTENERS[choices.below(3)], &client);
    if choices.one_in(2) && link.shake_hands(1 + choices.below(5_000)).is_err() {
        return;
    }
    let (mut sent, mut is_true) = (Vec::new(), true);
    while !choices.is_over() {
        let plain = vec![sent.len() as u8 ^ 0x5A; SIZES[choices.below(SIZES.len())]];
        match choices.below(8) {
            // In a handshake, it is an error.
            0 if !link.server.is_handshaking() => link.client.send_close_notify(),
            1 => drop(link.client.refresh_traffic_keys()),
            // As a client does, it keeps what it has to say until the handshake has ended.
            2..6 => {
                link.write(&plain);
                sent.extend_from_slice(&plain);
            }
            _ if !link.server.is_handshaking() && is_true => link.reply(&plain),
            _ => {}
        }
        let step = [1, 5, 1000, 64 << 10][choices.below(4)];
        let received = link.deliver_to_server(step, &mut |bytes| is_true &= change(&mut choices, bytes));
        assert!(sent.starts_with(&link.at_server), "bytes that were not sent");
        assert!(link.most_bytes <= INCOMING_BYTES_MAX + HANDSHAKE_BYTES, "{} bytes held", link.most_bytes);
        if let Err(error) = received {
            assert!(!is_true || error.to_string().contains("certificate"), "an honest client fails: {error}");
            return;
        }
        if link.deliver_to_client().is_err() {
            assert!(!is_true, "an honest client is told what it does not understand");
            return;
        }
    }
}
