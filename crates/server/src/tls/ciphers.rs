//! Maps OpenSSL's names of cipher suites to those that there are.

use rustls::crypto::ring::cipher_suite as suite;
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, version};

/// Every suite, with OpenSSL's name, in the order of preference.
const SUITES: [(&str, SupportedCipherSuite); 9] = [
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-AES128-GCM-SHA256", suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES256-GCM-SHA384", suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Words of OpenSSL's that stand for lists to which every suite belongs.
const EVERY_SUITE: [&str; 4] = ["ALL", "DEFAULT", "HIGH", "ECDHE"];
/// Lists of OpenSSL's to which no suite belongs, so that excluding them changes nothing.
const NO_SUITE: [&str; 12] =
    ["aNULL", "eNULL", "NULL", "EXPORT", "LOW", "MEDIUM", "DES", "3DES", "RC4", "MD5", "PSK", "kRSA"];

/// Returns the suites of a list of OpenSSL's, in the order of preference. As with OpenSSL, suites of TLS 1.3 stay
/// unless the list names some.
///
/// # Errors
/// A word that is unknown, with the known ones.
pub(super) fn parse(list: Option<&str>) -> Result<Vec<SupportedCipherSuite>, String> {
    let mut wanted = Vec::new();
    for word in list.unwrap_or("ALL").split([':', ' ']).filter(|word| !word.is_empty()) {
        let excluded = word.strip_prefix(['!', '-']);
        let named = |&(name, suite): &(&str, SupportedCipherSuite)| {
            let is_named = name == word || suite.suite().as_str() == Some(word);
            (is_named || EVERY_SUITE.contains(&word)).then_some(suite)
        };
        let before = wanted.len();
        wanted.extend(SUITES.iter().filter_map(named));
        if wanted.len() == before && !excluded.is_some_and(|word| NO_SUITE.contains(&word)) {
            return Err(unknown(word));
        }
    }
    if !wanted.iter().any(|suite| is_of(&version::TLS13, suite)) {
        wanted.extend(SUITES.iter().map(|(_, suite)| *suite).filter(|suite| is_of(&version::TLS13, suite)));
    }
    let suites = SUITES.iter().map(|(_, suite)| *suite);
    Ok(suites.filter(|suite| wanted.contains(suite)).collect())
}

/// Returns whether a suite is of a version of TLS.
pub(super) fn is_of(version: &SupportedProtocolVersion, suite: &SupportedCipherSuite) -> bool {
    suite.version() == version
}

fn unknown(word: &str) -> String {
    let names: Vec<&str> = SUITES.iter().map(|(name, _)| *name).collect();
    format!(
        "\"{word}\" names no cipher suite that there is; leave ssl_ciphers out for all, or choose from {}",
        names.join(":")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(list: &str) -> usize {
        parse(Some(list)).expect("it is a list").len()
    }

    #[test]
    fn a_list_of_openssls_chooses_suites_and_keeps_those_of_tls_1_3() {
        assert_eq!(parse(None).expect("all").len(), SUITES.len());
        assert_eq!(count("HIGH:!aNULL:!MD5"), SUITES.len());
        assert_eq!(count("ECDHE-RSA-AES128-GCM-SHA256"), 1 + 3);
        assert_eq!(
            count("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:TLS_AES_256_GCM_SHA384"),
            2
        );
        assert_eq!(count("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:TLS13_AES_128_GCM_SHA256"), 2);
    }

    #[test]
    fn a_word_that_names_no_suite_is_refused_with_those_that_there_are() {
        for list in ["NOPE", "AES128-SHA", "HIGH:!AESGCM", "HIGH:!ECDHE-RSA-AES128-GCM-SHA256", "aNULL"] {
            let why = parse(Some(list)).expect_err(list);
            assert!(why.contains("choose from TLS_AES_128_GCM_SHA256:"), "{why}");
        }
    }
}
