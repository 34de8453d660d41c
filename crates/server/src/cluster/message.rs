//! Queries to a DNS server and its answers, as bytes. Every answer may be hostile: what it takes is bounded before
//! it is read. Sends nothing.

use std::net::IpAddr;

use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

/// The bytes of a message before its records.
const HEADER_BYTES: usize = 12;
/// The fewest bytes of a question and of a record: a name of one byte, and the fields behind it.
const QUESTION_BYTES_MIN: usize = 5;
const RECORD_BYTES_MIN: usize = 11;
/// The most bytes of a host's name: a word of the reply to clients.
const HOST_BYTES_MAX: usize = 253;

/// The records that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Hosts and ports of a service.
    Srv,
    /// IPv4 addresses of a host.
    A,
    /// IPv6 addresses of a host.
    Aaaa,
}

/// What an answer holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Hosts, in small letters and without a dot at the end, and their ports.
    pub targets: Vec<(String, u16)>,
    /// Addresses of hosts, also of those that the answer names besides.
    pub addresses: Vec<(String, IpAddr)>,
    /// The shortest time that a record among the answers may be kept, in seconds.
    pub ttl_s: Option<u32>,
    /// Whether the rest has to be asked for over TCP.
    pub is_cut: bool,
}

/// Why bytes are no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// They answer no query or another one, so that the answer may still come.
    Foreign,
    /// There is no such name.
    NoName,
    /// The server refuses or fails, or the message is malformed.
    Bad(String),
}

impl Kind {
    fn qtype(self) -> QTYPE {
        QTYPE::TYPE(match self {
            Kind::Srv => TYPE::SRV,
            Kind::A => TYPE::A,
            Kind::Aaaa => TYPE::AAAA,
        })
    }
}

/// Returns a query for the records of a name.
///
/// # Errors
/// The name is none.
pub fn query(id: u16, name: &str, kind: Kind) -> Result<Vec<u8>, String> {
    let wrong = |error| format!("{name} is no name of DNS: {error}");
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    let question =
        Question::new(Name::new(name).map_err(wrong)?, kind.qtype(), QCLASS::CLASS(CLASS::IN), false);
    packet.questions.push(question);
    packet.build_bytes_vec().map_err(wrong)
}

/// Reads the answer to a query for the records of a name.
///
/// # Errors
/// The bytes are no answer to that query, or one without records.
pub fn answer(bytes: &[u8], id: u16, name: &str, kind: Kind) -> Result<Answer, Problem> {
    // What the parser allocates follows the counts in the header.
    let count = |at| bytes.get(at..at + 2).map_or(0, |two| usize::from(two[0]) << 8 | usize::from(two[1]));
    let records = count(6) + count(8) + count(10);
    if bytes.len() < HEADER_BYTES || count(0) != usize::from(id) {
        return Err(Problem::Foreign);
    }
    if HEADER_BYTES + count(4) * QUESTION_BYTES_MIN + records * RECORD_BYTES_MIN > bytes.len() {
        let is_cut = bytes[2] & 0x02 != 0;
        return if is_cut { Ok(cut()) } else { Err(Problem::Bad("the answer is malformed".into())) };
    }
    let packet = match Packet::parse(bytes) {
        Ok(packet) => packet,
        Err(_) if bytes[2] & 0x02 != 0 => return Ok(cut()),
        Err(error) => return Err(Problem::Bad(format!("the answer is malformed: {error}"))),
    };
    let asks =
        |question: &Question<'_>| question.qtype == kind.qtype() && host(&question.qname) == host_of(name);
    if !packet.has_flags(PacketFlag::RESPONSE) || !packet.questions.first().is_some_and(asks) {
        return Err(Problem::Foreign);
    }
    match packet.rcode() {
        RCODE::NoError => {}
        RCODE::NameError => return Err(Problem::NoName),
        other => return Err(Problem::Bad(format!("the DNS server answers {other:?}"))),
    }
    let mut found = Answer { is_cut: packet.has_flags(PacketFlag::TRUNCATION), ..Answer::default() };
    for record in &packet.answers {
        if let RData::SRV(srv) = &record.rdata {
            found.targets.extend(host(&srv.target).filter(|_| srv.port != 0).map(|host| (host, srv.port)));
        }
        found.ttl_s = Some(found.ttl_s.map_or(record.ttl, |ttl_s| ttl_s.min(record.ttl)));
    }
    for record in packet.answers.iter().chain(&packet.additional_records) {
        let address = match &record.rdata {
            RData::A(a) => IpAddr::from(a.address.to_be_bytes()),
            RData::AAAA(aaaa) => IpAddr::from(aaaa.address.to_be_bytes()),
            _ => continue,
        };
        found.addresses.extend(host(&record.name).map(|host| (host, address)));
    }
    Ok(found)
}

/// An answer that tells nothing but that it does not fit.
fn cut() -> Answer {
    Answer { is_cut: true, ..Answer::default() }
}

fn host_of(name: &str) -> Option<String> {
    Some(name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase())
}

/// Returns a name as text, if it can be a word of the reply to clients.
fn host(name: &Name<'_>) -> Option<String> {
    let mut text = String::new();
    for label in name.as_bytes() {
        if !label.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte)) {
            return None;
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
    }
    (1..=HOST_BYTES_MAX).contains(&text.len()).then_some(text)
}

#[cfg(test)]
mod tests {
    use simple_dns::ResourceRecord;
    use simple_dns::rdata::{A, SRV};

    use super::*;

    const NAME: &str = "_memcache._tcp.larder.example";

    fn served(id: u16, hosts: &[&str]) -> Vec<u8> {
        let asked = query(id, NAME, Kind::Srv).expect("a query");
        let mut packet = Packet::parse(&asked).expect("a query").into_reply();
        for (at, host) in hosts.iter().enumerate() {
            let target = Name::new_unchecked(host);
            let srv = SRV { priority: 0, weight: 0, port: 11_211, target: target.clone() };
            let record =
                ResourceRecord::new(Name::new_unchecked(NAME), CLASS::IN, 30 + at as u32, RData::SRV(srv));
            packet.answers.push(record);
            let address = A { address: 0x0a00_0001 + at as u32 };
            packet.additional_records.push(ResourceRecord::new(target, CLASS::IN, 5, RData::A(address)));
        }
        packet.build_bytes_vec_compressed().expect("an answer")
    }

    #[test]
    fn an_answer_gives_hosts_ports_addresses_and_the_shortest_time() {
        let found =
            answer(&served(7, &["L-0.example", "l-1.example"]), 7, NAME, Kind::Srv).expect("an answer");
        let host = |at: u8| (format!("l-{at}.example"), 11_211);
        assert_eq!(found.targets, [host(0), host(1)]);
        let address = |at: u8| (format!("l-{at}.example"), IpAddr::from([10, 0, 0, 1 + at]));
        assert_eq!(found.addresses, [address(0), address(1)]);
        assert_eq!((found.ttl_s, found.is_cut), (Some(30), false));
    }

    #[test]
    fn another_answer_is_waited_past() {
        let bytes = served(7, &["a.example"]);
        assert_eq!(answer(&bytes, 8, NAME, Kind::Srv), Err(Problem::Foreign), "another number");
        assert_eq!(answer(&bytes, 7, NAME, Kind::A), Err(Problem::Foreign), "another kind");
        assert_eq!(answer(&bytes, 7, "b.example", Kind::Srv), Err(Problem::Foreign), "another name");
        assert_eq!(answer(&query(7, NAME, Kind::Srv).unwrap(), 7, NAME, Kind::Srv), Err(Problem::Foreign));
    }

    #[test]
    fn hosts_that_would_break_the_reply_are_left_out() {
        let found =
            answer(&served(7, &["a|b.example", "a b.example", ".", "good.example"]), 7, NAME, Kind::Srv);
        assert_eq!(found.expect("an answer").targets, [("good.example".to_string(), 11_211)]);
    }

    #[test]
    fn counts_beyond_the_message_are_refused_before_they_are_read() {
        let mut bytes = served(7, &["a.example"]);
        bytes[6..12].fill(0xff);
        assert!(matches!(answer(&bytes, 7, NAME, Kind::Srv), Err(Problem::Bad(_))));
        bytes[2] |= 0x02;
        assert_eq!(answer(&bytes, 7, NAME, Kind::Srv), Ok(cut()), "the rest comes over TCP");
    }

    #[test]
    fn damaged_answers_neither_panic_nor_hang() {
        let good = served(7, &["a.example", "b.example", "c.example"]);
        let mut state = 1_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        for _ in 0..300_000 {
            let mut bytes = good.clone();
            for _ in 0..1 + random() % 6 {
                let at = 2 + random() % (bytes.len() - 2);
                bytes[at] = random() as u8;
            }
            bytes.truncate(2 + random() % bytes.len());
            let _ = answer(&bytes, 7, NAME, Kind::Srv);
        }
        // Every kind of record, with a body of any bytes.
        for _ in 0..300_000 {
            let mut bytes = query(7, NAME, Kind::Srv).expect("a query");
            bytes[7] = 1;
            bytes.extend([0xc0, 12, (random() % 2 * random() % 2) as u8, random() as u8, 0, 1, 0, 0, 0, 9]);
            let body: Vec<u8> = (0..random() % 40).map(|_| random() as u8).collect();
            bytes.extend([0, body.len() as u8]);
            bytes.extend(body);
            let _ = answer(&bytes, 7, NAME, Kind::Srv);
        }
    }
}
