//! Refused command lines, with message and exit code.

use super::*;

#[test]
fn refusals_say_what_is_wrong_and_end_with_64() {
    let cases: [(&[&str], &str); 40] = [
        (&["-c", "0"], "-c 0: must be 1 or more"),
        (&["-c", "-1"], "-c -1: must be 1 or more"),
        (&["-t", "0"], "-t 0: must be 1 or more"),
        (&["-R0"], "-R 0: must be 1 or more"),
        (&["-b", "0"], "must be 1 or more"),
        (&["-I", "1000"], "-I 1000: item max size must be 1k or more"),
        (&["-m", "4096", "-I", "2g"], "-I 2g: item max size must be 1g or less"),
        (&["-I", "33m"], "at most half the memory limit of 64 MiB"),
        (&["-m", "0"], "-m 0: the memory limit must be 1m or more"),
        (&["-m", "lots"], "is not a size"),
        (&["-f", "1.0"], "-f 1.0: factor must be greater than 1"),
        (&["-n", "0"], "-n 0: must be 1 or more"),
        (&["-B", "http"], "-B http: must be one of auto, ascii, binary"),
        (&["-p", "70000"], "must be 65535 or less"),
        (&["-a", "9"], "octal"),
        (&["-D", "::"], "is not one character"),
        (&["-l", "127.0.0.1:port"], "is not a port"),
        (&["-l", ","], "there is no address"),
        (&["-Z"], "-Z: TLS needs a certificate"),
        (&["-Z", "-o", "ssl_chain_cert=/c,ssl_verify_mode=2"], "name it with -o ssl_ca_cert=FILE"),
        (&["-Z", "-o", "ssl_chain_cert=/c,ssl_verify_mode=4"], "must be 0 (none), 1 (request)"),
        (&["-o", "ssl_min_version=9"], "must be 0, 1 or 2 (TLS 1.2) or 3 (TLS 1.3)"),
        (&["-o", "ssl_keyformat=ENGINE"], "must be PEM (1) or DER (2)"),
        (&["-Z", "-o", "ssl_chain_cert=/c,ssl_keyformat=DER"], "name it with -o ssl_key=FILE"),
        (&["-o", "ssl_key"], "-o ssl_key needs a value"),
        (&["-l", "btls:127.0.0.1"], "btls: needs -Z"),
        (&["-Z", "-o", "ssl_chain_cert=/c", "-l", "mtls:127.0.0.1"], "mtls: needs -o ssl_ca_cert=FILE"),
        (&["-Y", "/f", "-l", "proto[binary]:127.0.0.1"], "binary connections authenticate by SASL"),
        (&["-S"], "-S: SASL needs users; name their file with -Y"),
        (&["-Y", "/f", "-B", "binary"], "-B binary: binary connections authenticate by SASL; add -S"),
        (&["-Y", "/f", "-S", "-B", "ascii"], "-B ascii: SASL is of the binary protocol alone"),
        (&["-Y"], "-Y needs a value"),
        (&["-o", "modren"], "Illegal suboption \"modren\""),
        (&["-o", "proxy_config=/p"], "the proxy is not part of Larder"),
        (&["-m"], "-m needs a value"),
        (&["-y"], "unknown option -y"),
        (&["--memory-limits=1"], "unknown option --memory-limits"),
        (&["stray"], "unexpected argument \"stray\""),
        (&["--ssd", "none", "--ssd", "/a:1g"], "excludes every other path"),
        (&["--ssd", "/a:1g", "-o", "ext_path=/a:1g"], "the same path is given twice"),
    ];
    for (args, message) in cases {
        let error = refusal(args);
        assert!(error.to_string().contains(message), "{args:?}: {error}");
        assert_eq!(error.exit_code(), 64, "{args:?}");
    }
    for args in [&["--ssd-share", "0/2"], &["--index-memory", "64m"], &["--ssd-write-limit", "0"]] {
        assert_eq!(refusal(args).exit_code(), 64);
    }
    for args in
        [&["--help=me"], &["--print-config=all"], &["--io=aio"], &["--conn-memory=1k"], &["--item-size=0"]]
    {
        assert_eq!(refusal(args).exit_code(), 64);
    }
}

#[test]
fn what_cannot_be_had_together_ends_with_78() {
    let error = refusal(&["-p", "0"]);
    assert!(error.to_string().contains("nothing to listen on"), "{error}");
    assert_eq!(error.exit_code(), 78);
    let error = refusal(&["--memory-file", "systemd", "-d"]);
    assert!(error.to_string().contains("leave out -d"), "{error}");
    assert_eq!(error.exit_code(), 78);
}

#[test]
fn a_wrong_file_ends_with_78_and_says_where() {
    let cases = [
        ("memory-limt = 3", "unknown key memory-limt"),
        ("help = true", "unknown key help"),
        ("config = \"x\"", "unknown key config"),
        ("memory-limit = ", "is not TOML"),
        ("memory-limit = true", "memory-limit: takes a value"),
        ("memory-limit = [1]", "must be a text or a number, not a array"),
        ("daemon = \"yes\"", "daemon: must be true or false"),
        ("unix-mask = 700", "in quotes"),
        ("threads = 0", "threads = 0: must be 1 or more"),
        ("max-item-size = 1000", "max-item-size = 1000: item max size must be 1k or more"),
        ("extended = \"x\"", "Illegal suboption \"x\""),
        ("enable-ssl = 1", "enable-ssl: must be true or false"),
    ];
    for (at, (text, message)) in cases.into_iter().enumerate() {
        let file = TempFile::new(&format!("wrong{at}"), text);
        let error = refusal(&["--config", file.path()]);
        assert_eq!(error.exit_code(), 78, "{text}");
        let error = error.to_string();
        assert!(error.starts_with(file.path()) && error.contains(message), "{text}: {error}");
    }
    let error = refusal(&["--config", "/no/such/file"]);
    assert!(error.to_string().contains("/no/such/file: cannot be read"), "{error}");
}
