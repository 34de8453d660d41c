//! Transcripts to parse: those of the probe, and more by hand for what it does not reach.

use super::packet;

/// One exchange of the probe.
pub struct Probe {
    pub name: String,
    pub sent: Vec<u8>,
    pub answered: Vec<u8>,
    pub closed: bool,
}

/// The exchanges of the probe that are recorded in full.
pub fn probes() -> Vec<Probe> {
    let recorded = include_str!("../data/memcached_1.6.18_wire_probe.txt");
    let lines: Vec<&str> = recorded.lines().collect();
    let mut probes = Vec::new();
    for window in lines.windows(3) {
        let [name, sent, answered] = window else { continue };
        let (Some(name), Some(sent), Some(answered)) =
            (name.strip_prefix("### "), sent.strip_prefix(">>> "), answered.strip_prefix("<<< "))
        else {
            continue;
        };
        if sent.ends_with("...'") {
            continue;
        }
        let (answered, closed) = answered.rsplit_once(" closed=").expect("every answer says so");
        probes.push(Probe {
            name: name.into(),
            sent: unescape(sent),
            answered: unescape(answered),
            closed: closed == "True",
        });
    }
    assert_eq!(probes.len(), 71, "exchanges in the transcript");
    probes
}

/// A byte string as Python writes it.
fn unescape(literal: &str) -> Vec<u8> {
    let inner = literal.strip_prefix("b'").and_then(|rest| rest.strip_suffix('\'')).expect(literal);
    let mut bytes = Vec::new();
    let mut characters = inner.bytes();
    while let Some(byte) = characters.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match characters.next().expect("an escape") {
            b'r' => bytes.push(b'\r'),
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'x' => {
                let digits: String = characters.by_ref().take(2).map(char::from).collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("hexadecimal"));
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// Text of every verb, well and badly formed.
pub const TEXT: &[&[u8]] = &[
    b"get a\r\nget a b  c \r\ngets a\r\n  gets a b\nget\r\nget \r\ngat 10 a b\r\ngats -1 a\r\ngat 10\r\ngat\r\ngat x a\r\n",
    b"set a 1 2 3\r\nabc\r\nset a 1 2 3 noreply\r\nabc\r\nset a 0 0 0\r\n\r\nadd a 4294967295 -1 1\r\nx\r\n",
    b"replace a 0 0 1\r\nx\r\nappend a 9 9 1\r\nx\r\nprepend a 9 9 1 noreply\r\nx\r\ncas a 0 0 1 18446744073709551615\r\nx\r\n",
    b"cas a 0 0 1 noreply\r\nx\r\ncas a 0 0 1 7 noreply\r\nx\r\ncas a 0 0 1 -7\r\nx\r\ncas a 0 0 1\r\nx\r\nversion\r\n",
    b"set a 0 0 2 noreply\r\nabcd\r\nset a 0 0 2\r\nabcd\r\nms a 2 q\r\nabcd\r\nversion\r\n",
    b"set a x 0 2\r\nhi\r\nset a 0 x 2 noreply\r\nhi\r\nset a 4294967296 0 2\r\nhi\r\nset a 0 2147483648 2\r\nhi\r\nmn\r\n",
    b"set a 0 0 -1\r\nset a 0 0 2147483646\r\nset a 0 0 x noreply\r\nset a 0 0\r\nset a\r\nset\r\nmn\r\n",
    b"delete a\r\ndelete a 0\r\ndelete a 10\r\ndelete a 0 noreply\r\ndelete a noreply\r\ndelete a b c d e\r\ndelete\r\n",
    b"incr n 1\r\ndecr n 18446744073709551615 noreply\r\nincr n -1\r\nincr n 18446744073709551616\r\nincr n\r\n",
    b"touch a 0\r\ntouch a -1 noreply\r\ntouch a\r\ntouch a x\r\ntouch a x noreply\r\n",
    b"flush_all\r\nflush_all \r\nflush_all 10\r\nflush_all -1 noreply\r\nflush_all  noreply\r\nflush_all x\r\n",
    b"version\r\nversion x y\r\nverbosity 1\r\nverbosity 1 noreply\r\nverbosity\r\nverbosity x\r\nverbosity noreply\r\n",
    b"stats\r\nstats \r\nstats items\r\nstats cachedump 1 0\r\nstats r\r\n",
    b"\r\n\n \n  \r\n     \na\r\nab\ncd\r\nmn\nmn\r\nmn x\r\nfoo\r\nfoo noreply\r\nGET a\r\n",
    b"cache_memlimit 8\r\ncache_memlimit 7\r\ncache_memlimit 1000000001\r\ncache_memlimit x\r\ncache_memlimit\r\n",
    b"shutdown\r\nshutdown graceful\r\nshutdown now\r\nlru mode flat\r\nlru mode segmented\r\nlru mode x\r\nlru\r\n",
    b"lru tune 10 25 0.1 2.0\r\nlru tune 50 50 1 1\r\nlru tune 10 25 0 1\r\nlru tune 1 2 nan 1\r\nlru temp_ttl -1\r\nlru temp_ttl 9\r\n",
    b"slabs reassign 1 2\r\nslabs reassign x 2\r\nslabs automove 0\r\nslabs automove 3\r\nslabs automove invalid\r\nslabs automove ratio 0.8\r\nslabs\r\n",
    b"lru_crawler enable\r\nlru_crawler disable\r\nlru_crawler sleep 1000001\r\nlru_crawler sleep 10\r\nlru_crawler tocrawl 5\r\nlru_crawler tocrawl x\r\n",
    b"lru_crawler crawl 1,2\r\nlru_crawler metadump all\r\nlru_crawler mgdump hash\r\nlru_crawler\r\nlru_crawler metadump\r\n",
    b"watch\r\nwatch fetchers mutations\r\nwatch foo\r\nextstore item_age 5\r\nextstore free_memchunks 1 2\r\nextstore x 1\r\nextstore max_frag 0.8\r\nrefresh_certs\r\nconfig get cluster\r\nconfig get\r\n",
    b"debugtime p\r\ndebugtime r\r\ndebugtime -30\r\ndebugtime\r\ndebugtime x\r\n",
    b"mg a\r\nmg a v s t f c k h l Oabc q\r\nmg YWJj b k\r\nmg YWJ b\r\nmg a v v\r\nmg a ?\r\nmg a \x80\r\nmg\r\n",
    b"mg a N30 R10 T5 C7 E9 u P L\r\nmg a Tx\r\nmg a T\r\nmg a Nx Jx\r\nmg a Fx\r\nmg a Jx Fx\r\n",
    b"ms a 2\r\nhi\r\nms a 2 T0 F5 I C3 E4 c k Ox s b\r\nhi\r\nms YWJj 2 b k\r\nhi\r\nms a 2 ME\r\nhi\r\nms a 2 M\r\nhi\r\nms a x\r\nms a\r\n",
    b"ms a 2 MA N5 C0\r\nhi\r\nms a 2 MP C4\r\nhi\r\nms a 2 MR C4\r\nhi\r\nms a 2 MR\r\nhi\r\nms a 2 MZ\r\nhi\r\nms a 2 Z\r\nhi\r\nmn\r\n",
    b"md a\r\nmd a q I T30 C4 E5 x k O1\r\nmd a z\r\nmd YWJj b k\r\nmd\r\n",
    b"ma a\r\nma a N0 J13 v t c k q O9\r\nma a MD D100\r\nma a M- T5\r\nma a MX\r\nma a Dx\r\nma a v v\r\nma\r\n",
    b"ml a L5 P1000\r\nml a L5 P1000 MF D2 r w a k O1 q\r\nml YWJj b k L5 P1 MS\r\nml a L5 P9 MG B7 D0\r\nml a L0 P1\r\nml a L1 P1 B0\r\n",
    b"ml\r\nml a\r\nml a L5\r\nml a P5\r\nml a L5 P1 L5\r\nml a L5 P1 v\r\nml a L5 P1 MX\r\nml a L5 P1 M\r\nml a L5 P31622400001\r\n",
    b"me a\r\nme YWJj b\r\nme YWJ b\r\nme\r\nmx a\r\n",
    b"mi\r\nmg a v A1:2\r\nmg a A1\r\nmg a A1:2 A1:2\r\nms a 2 A1:2\r\nhi\r\nmi x\r\nmi\n",
    b"set a\rb 0 0 1\r\nx\r\nget a\rb\r\r\nset a\0b 0 0 1\r\n\0\r\nget a\x7f\xff\r\n",
    b"GET / HTTP/1.0\r\n\r\n",
    b"POST /x HTTP/1.1\r\nHost: localhost\r\n",
    b"get HTTP/1.0\r\nquit\r\nget a\r\nquit now\r\n",
];

/// Binary packets of every opcode, well and badly formed, each list one connection.
pub fn binary() -> Vec<Vec<u8>> {
    let store = [0, 0, 0, 7, 0, 0, 0, 9];
    let mut counter = Vec::new();
    counter.extend(1u64.to_be_bytes());
    counter.extend(5u64.to_be_bytes());
    counter.extend(u32::MAX.to_be_bytes());
    let mut well = Vec::new();
    for opcode in [0x00, 0x09, 0x0c, 0x0d, 0x04, 0x14, 0x10] {
        well.extend(packet(opcode, b"key", &[], &[], 0));
    }
    for opcode in [0x1c, 0x1d, 0x1e, 0x23, 0x24] {
        well.extend(packet(opcode, b"key", &[0, 0, 0, 60], &[], 0));
    }
    for opcode in [0x01, 0x02, 0x03, 0x11, 0x12, 0x13] {
        well.extend(packet(opcode, b"key", &store, b"value\r\n", 0));
        well.extend(packet(opcode, b"key", &store, b"", 77));
    }
    for opcode in [0x0e, 0x0f, 0x19, 0x1a] {
        well.extend(packet(opcode, b"key", &[], b"value", 3));
    }
    for opcode in [0x05, 0x06, 0x15, 0x16] {
        well.extend(packet(opcode, b"key", &counter, &[], 0));
        counter[16..].copy_from_slice(&30u32.to_be_bytes());
    }
    for opcode in [0x0a, 0x0b, 0x10, 0x08, 0x18] {
        well.extend(packet(opcode, &[], &[], &[], 0));
    }
    well.extend(packet(0x08, &[], &[0, 0, 0, 9], &[], 0));
    for opcode in [0x20, 0x55, 0xff] {
        well.extend(packet(opcode, &[], &[], &[], 0));
    }
    well.extend(packet(0x21, b"PLAIN", &[], b"\0user\0password", 0));
    well.extend(packet(0x55, b"key", &[1, 2, 3], b"body", 0));
    well.extend(packet(0x07, &[], &[], &[], 0));
    let mut all = vec![well];
    for malformed in [
        packet(0x00, &[], &[], &[], 0),
        packet(0x00, b"key", &[], b"body", 0),
        packet(0x00, b"key", &[1], &[], 0),
        packet(0x01, b"key", &[], b"body", 0),
        packet(0x01, b"", &store, b"body", 0),
        packet(0x05, b"key", &store, &[], 0),
        packet(0x0a, b"key", &[], &[], 0),
        packet(0x0e, b"key", &[1, 2], b"body", 0),
        packet(0x08, &[], &[1, 2], &[], 0),
        packet(0x1c, b"key", &[], &[], 0),
        packet(0x00, &[b'k'; 251], &[], &[], 0),
    ] {
        all.push([packet(0x0a, &[], &[], &[], 0), malformed].concat());
    }
    let mut lengths = packet(0x00, b"key", &[], &[], 0);
    lengths[11] = 2;
    all.push(lengths);
    let mut magic = packet(0x0a, &[], &[], &[], 0);
    magic.extend(b"\x81rest");
    all.push(magic);
    all
}

/// Everything there is.
pub fn all() -> Vec<Vec<u8>> {
    let long_key = "k".repeat(251);
    let longest_key = "k".repeat(250);
    let mut all: Vec<Vec<u8>> = probes().into_iter().map(|probe| probe.sent).collect();
    all.extend(TEXT.iter().map(|text| text.to_vec()));
    for verb in ["get ", "gets a ", "gat 1 ", "delete ", "incr ", "touch ", "mg ", "md ", "ma ", "me ", "ml "]
    {
        all.push(format!("{verb}{long_key} 1\r\n{verb}{longest_key} 1\r\nmn\r\n").into_bytes());
    }
    all.push(format!("set {long_key} 0 0 2\r\nhi\r\nms {long_key} 2\r\nhi\r\nmn\r\n").into_bytes());
    all.extend(binary());
    all
}
