//! Command line, environment and file: their forms, and which goes over which.

use std::path::Path;
use std::time::Duration;

use super::*;

#[test]
fn flags_go_over_environment_over_file_over_default() {
    let file = TempFile::new("layers", "memory-limit = 100\nthreads = 7\nconn-limit = 9\n");
    let variables = [("LARDER_MEMORY_LIMIT", "200"), ("LARDER_THREADS", "8"), ("LARDER_CONFIG", file.path())];
    let Ok(Command::Run(config)) = try_load(&["-m300"], &variables) else { panic!() };
    assert_eq!(config.memory_limit_bytes, 300 << 20);
    assert_eq!((config.threads, config.conn_limit, config.backlog), (8, 9, 1024));
    assert_eq!(config.origin(Id::MemoryLimit).to_string(), "flag -m");
    assert_eq!(config.origin(Id::Threads).to_string(), "environment LARDER_THREADS");
    assert_eq!(config.origin(Id::ConnLimit).to_string(), format!("file {}", file.path()));
    assert_eq!(config.origin(Id::ListenBacklog), &Origin::Default);
}

#[test]
fn a_list_is_replaced_by_a_higher_layer_and_words_are_replaced_one_by_one() {
    let text = "ssd = [\"/a:1g\", \"/b:1g\"]\nextended = [\"idle_timeout=3\", \"modern\"]\n";
    let file = TempFile::new("lists", text);
    let config = config(&["--config", file.path(), "--ssd", "/c:1g", "-o", "idle_timeout=4"]);
    assert_eq!(config.ssd.len(), 1);
    assert_eq!(config.ssd[0].path, Path::new("/c"));
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(4)));
    assert_eq!(config.ignored, ["-o modern"]);
}

#[test]
fn the_forms_of_a_value_on_the_command_line() {
    let forms: [&[&str]; 7] = [
        &["-m64"],
        &["-m", "64"],
        &["-m 64"],
        &["--memory-limit=64"],
        &["--memory-limit", "64"],
        &["--memory-limit= 64m"],
        &["-vm", "64"],
    ];
    for args in forms {
        assert_eq!(config(args).memory_limit_bytes, 64 << 20, "{args:?}");
    }
    assert_eq!(config(&["-vv"]).verbosity, 2);
    assert_eq!(config(&["-vvv", "-v", "--verbose"]).verbosity, 5);
    assert_eq!(config(&["-p", "-1"]).tcp_port, TcpPort::Ephemeral);
    assert_eq!(config(&["-p-1"]).tcp_port, TcpPort::Ephemeral);
    assert_eq!(config(&["-D="]).prefix_delimiter, b'=');
    let chart =
        config(&["-m 8192", "--extended=modern,track_sizes,ext_path=/d/f:9G,ext_wbuf_size=16", "-I 5m"]);
    assert_eq!(chart.ssd, [SsdPath { path: PathBuf::from("/d/f"), size_bytes: Some(9 << 30) }]);
    assert_eq!(chart.item_size_max_bytes, 5 << 20);
    assert_eq!(chart.ignored, ["-o ext_wbuf_size", "-o modern"]);
}

#[test]
fn an_empty_variable_does_not_let_others_in() {
    for name in ["LARDER_AUTH_FILE", "LARDER_ENABLE_SASL", "LARDER_ENABLE_SSL", "LARDER_HTTP_TOKEN_FILE"] {
        assert!(try_load(&[], &[(name, "")]).is_err(), "{name}");
    }
}

#[test]
fn the_environment_is_read_with_care() {
    let variables = [
        ("LARDER_VERBOSE", "2"),
        ("LARDER_DISABLE_CAS", "true"),
        ("LARDER_DAEMON", ""),
        ("LARDER_SSD", "/a:1g,/b:2g"),
        ("LARDER_EXTENDED", "idle_timeout=9"),
        ("LARDER_PORT", "tcp://10.0.0.7:11211"),
        ("LARDER_PORT_11211_TCP_ADDR", "10.0.0.7"),
        ("LARDER_SERVICE_HOST", "10.0.0.7"),
        ("LARDER_MEMROY_LIMIT", "5"),
        ("MEMCACHED_PORT_FILENAME", "/ports"),
    ];
    let Ok(Command::Run(config)) = try_load(&[], &variables) else { panic!() };
    assert_eq!((config.verbosity, config.cas, config.daemon, config.ssd.len()), (2, false, false, 2));
    assert_eq!(config.tcp_port, TcpPort::Fixed(11211));
    assert_eq!(config.idle_timeout, Some(Duration::from_secs(9)));
    assert_eq!(config.port_file, Some(PathBuf::from("/ports")));
    assert_eq!(config.warnings.len(), 1, "{:?}", config.warnings);
    assert!(config.warnings[0].contains("LARDER_MEMROY_LIMIT"));

    let error = try_load(&[], &[("LARDER_THREADS", "0")]).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.exit_code()), ("LARDER_THREADS=0: must be 1 or more", 64));
    let error = try_load(&[], &[("LARDER_ENABLE_SSL", "yes")]).unwrap_err();
    assert!(error.to_string().contains("ssl_chain_cert=FILE"), "{error}");
}

#[test]
fn a_command_line_alone_makes_a_configuration() {
    let config = Config::from_args(["memcached", "-m", "2"]).unwrap();
    assert_eq!((config.memory_limit_bytes, config.threads, config.ssd), (2 << 20, 1, vec![]));
    assert!(Config::from_args(["larder", "-h"]).is_err());
}
