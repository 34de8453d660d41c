//! From raw values to the resolved configuration, the second of the two steps: bounds and conflicts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use larder_store::Admission;

use super::cluster;
use super::error::ConfigError;
use super::http;
use super::layer::{Layer, Setting};
use super::listen::{Listen, ListenTls, Protocol};
use super::option::Id;
use super::resolved::{Config, Io, Personality, SYSTEMD, TcpPort, UnixSocket};
use super::ssd::{SsdShare, ssd_share};
use super::tls::{self, TlsOptions};
use super::typed::Values;
use super::values::{self, GIB, KIB, MIB};

/// The smallest memory limit that gets an SSD file without being asked: below it, an index would leave no
/// room.
const DEFAULT_SSD_MEMORY_MIN: u64 = 8 * MIB;

const BINARY_WITHOUT_SASL: &str = "binary connections authenticate by SASL; add -S, or leave out -Y";

/// Resolves the merged layers. `raw` gets the computed defaults added, so that `--print-config` shows them.
///
/// # Errors
/// A value out of bounds (64, or 78 from a file), or values that exclude each other (78).
pub(super) fn resolve(
    mut raw: Layer,
    personality: Personality,
    variables: &BTreeMap<String, String>,
    cores: usize,
    mut warnings: Vec<String>,
) -> Result<Config, ConfigError> {
    compute_defaults(&mut raw, personality, variables, cores, &mut warnings)?;
    let values = Values { raw: &raw };
    check_bounds(&values)?;
    let (unix_socket, tcp_port) = (unix_socket(&values)?, tcp_port(&values)?);
    check_conflicts(&values, unix_socket.is_some() || tcp_port != TcpPort::Off)?;
    check_login(&values)?;
    warn(&values, &mut warnings)?;
    let tls = tls::options(&raw, values.flag(Id::EnableSsl), &mut warnings)?;
    let listen = if unix_socket.is_some() { Vec::new() } else { listen(&values, tls.as_ref())? };
    Ok(Config {
        personality,
        listen,
        tls,
        tcp_port,
        unix_socket,
        port_file: variables.get("MEMCACHED_PORT_FILENAME").map(PathBuf::from),
        backlog: values.number(Id::ListenBacklog)?,
        conn_limit: values.number(Id::ConnLimit)?,
        conn_limit_fast: raw.word("maxconns_fast") == "yes",
        conn_memory_bytes: conn_memory_bytes(&values)?,
        lease_memory_bytes: values.size(Id::LeaseMemory)?,
        idle_timeout: idle_timeout(&raw),
        auth_file: values.path(Id::AuthFile),
        unix_mask: values.parsed(Id::UnixMask, values::octal)?,
        http: http::options(&values)?,
        cluster: cluster::options(&values)?,
        insecure_listen: values.flag(Id::InsecureListen),
        protocol: protocol(&values),
        threads: values.number(Id::Threads)?,
        reqs_per_event: values.number(Id::MaxReqsPerEvent)?,
        memory_limit_bytes: values.size(Id::MemoryLimit)?,
        index_memory_bytes: index_memory_bytes(&values)?,
        shadow_memory_bytes: shadow_memory_bytes(&values)?,
        item_size_bytes: values.size(Id::ItemSize)?,
        item_size_max_bytes: values.size(Id::MaxItemSize)?,
        evictions: !values.flag(Id::DisableEvictions),
        memory_file: values.path(Id::MemoryFile),
        state_file: values.path(Id::StateFile),
        lock_memory: values.flag(Id::LockMemory),
        ssd: values.ssd()?,
        ssd_share: values.optional(Id::SsdShare, ssd_share)?.unwrap_or(SsdShare::WHOLE),
        ssd_format: values.flag(Id::SsdFormat),
        ssd_write_limit: values.optional(Id::SsdWriteLimit, values::rate)?,
        ssd_endurance_bytes: values.optional(Id::SsdEndurance, values::endurance)?,
        ssd_write_wait: Duration::from_millis(values.number(Id::SsdWriteWait)?),
        ssd_admission: ssd_admission(&values),
        chooses_admission: values.text(Id::SsdAdmission) == "auto",
        ssd_live_percent: values.number(Id::SsdLivePercent)?,
        io: io(&values),
        cas: !values.flag(Id::DisableCas),
        flush_all: !values.flag(Id::DisableFlushAll),
        dumping: !values.flag(Id::DisableDumping),
        watching: !values.flag(Id::DisableWatch),
        watcher_queue_bytes: kilobytes(&raw, "watcher_logbuf_size"),
        track_sizes: raw.word("track_sizes") == "yes",
        shutdown: values.flag(Id::EnableShutdown),
        prefix_delimiter: values.optional(Id::PrefixDelimiter, values::delimiter)?.unwrap_or(b':'),
        stats_detail: raw.is_given(Setting::Opt(Id::PrefixDelimiter)),
        lru_crawler: raw.word("lru_crawler") == "yes",
        lru_maintainer: raw.word("lru_maintainer") == "yes",
        daemon: values.flag(Id::Daemon),
        user: raw.last(Setting::Opt(Id::User)).map(|given| given.text.clone()),
        pidfile: values.path(Id::Pidfile),
        verbosity: values.verbosity(),
        open_files_wanted: 0,
        warnings,
        ignored: Config::without_effect(&raw),
        raw,
    })
}

/// With less, shadows tell nothing.
const SHADOW_BYTES_MIN: u64 = 256 * KIB;

fn check_bounds(values: &Values<'_>) -> Result<(), ConfigError> {
    check_memory(values)?;
    check_ssd(values)?;
    check_slab_values(values)
}

fn check_memory(values: &Values<'_>) -> Result<(), ConfigError> {
    let memory_limit_bytes = values.size(Id::MemoryLimit)?;
    values.require(Id::MemoryLimit, memory_limit_bytes >= MIB, "the memory limit must be 1m or more")?;
    let item_size_max_bytes = values.size(Id::MaxItemSize)?;
    values.require(Id::MaxItemSize, item_size_max_bytes >= KIB, "item max size must be 1k or more")?;
    values.require(Id::MaxItemSize, item_size_max_bytes <= GIB, "item max size must be 1g or less")?;
    let half = format!(
        "item max size must be at most half the memory limit of {}; raise -m or lower -I",
        values::show_size(memory_limit_bytes)
    );
    values.require(Id::MaxItemSize, item_size_max_bytes <= memory_limit_bytes / 2, &half)?;
    let is_typical = (1..=item_size_max_bytes).contains(&values.size(Id::ItemSize)?);
    values.require(
        Id::ItemSize,
        is_typical,
        "the typical item must be between 1 byte and the max item size",
    )?;
    let fits = index_memory_bytes(values)?.is_none_or(|bytes| bytes > 0 && bytes < memory_limit_bytes);
    values.require(Id::IndexMemory, fits, "the index must be smaller than the memory limit it is part of")?;
    let is_part = shadow_memory_bytes(values)?
        .is_none_or(|bytes| bytes == 0 || (SHADOW_BYTES_MIN..=memory_limit_bytes / 2).contains(&bytes));
    values.require(
        Id::ShadowMemory,
        is_part,
        "shadows need 256k or more, and at most half of the memory limit they are part of; 0 for none",
    )?;
    values.require(Id::ConnMemory, values.size(Id::ConnMemory)? >= MIB, "connections need 1m or more")
}

fn check_ssd(values: &Values<'_>) -> Result<(), ConfigError> {
    values.require(
        Id::SsdWriteLimit,
        values.optional(Id::SsdWriteLimit, values::rate)? != Some(0),
        "must be more than 0; leave it out for no limit, or give --ssd none",
    )?;
    let is_written = values.optional(Id::SsdEndurance, values::endurance)? != Some(0);
    values.require(Id::SsdEndurance, is_written, "must be more than 0; leave it out if it is not known")
}

/// Refuses values that memcached refuses, although nothing depends on them here: its users know the refusals.
fn check_slab_values(values: &Values<'_>) -> Result<(), ConfigError> {
    let factor = values.optional(Id::SlabGrowthFactor, values::decimal)?;
    let message = "factor must be greater than 1";
    values.require(Id::SlabGrowthFactor, factor.is_none_or(|factor| factor > 1.0), message)
}

fn check_conflicts(values: &Values<'_>, listens: bool) -> Result<(), ConfigError> {
    if !listens {
        let message = "there is nothing to listen on: -p 0 switches TCP off, and -s gives no Unix socket";
        return Err(ConfigError::Impossible(message.to_string()));
    }
    if values.path(Id::MemoryFile).is_some() && values.path(Id::StateFile).is_some() {
        let message = "--memory-file and --state-file exclude each other: the first keeps what the second \
                       saves, until the machine is started anew";
        return Err(ConfigError::Impossible(message.to_string()));
    }
    if values.text(Id::MemoryFile) == SYSTEMD && values.flag(Id::Daemon) {
        let message = "--memory-file systemd and -d exclude each other: systemd passes the memory to the \
                       process that it starts; leave out -d";
        return Err(ConfigError::Impossible(message.to_string()));
    }
    Ok(())
}

fn warn(values: &Values<'_>, warnings: &mut Vec<String>) -> Result<(), ConfigError> {
    if values.number::<u32>(Id::UdpPort)? != 0 {
        warnings.push("UDP is not served; -U has no effect".to_string());
    }
    let threads: usize = values.number(Id::Threads)?;
    if threads > 64 {
        warnings
            .push(format!("{threads} threads are a great many; as many as there are cores is usual (-t)"));
    }
    Ok(())
}

/// Returns the addresses, each with its own protocol: with users and without SASL that is text, as in memcached.
fn listen(values: &Values<'_>, tls: Option<&TlsOptions>) -> Result<Vec<Listen>, ConfigError> {
    let is_text_only = values.path(Id::AuthFile).is_some() && !values.flag(Id::EnableSasl);
    let mut list = values.listen()?;
    for entry in &mut list {
        let can_speak_tls = match entry.tls {
            ListenTls::Default | ListenTls::Off => true,
            ListenTls::Basic => tls.is_some(),
            ListenTls::Mutual => tls.is_some_and(|tls| tls.ca_cert.is_some()),
        };
        let message = "btls: needs -Z, and mtls: needs -o ssl_ca_cert=FILE besides";
        values.require(Id::Listen, can_speak_tls, message)?;
        let is_lost = is_text_only && entry.protocol == Some(Protocol::Binary);
        values.require(Id::Listen, !is_lost, BINARY_WITHOUT_SASL)?;
        if is_text_only {
            entry.protocol = Some(Protocol::Ascii);
        }
    }
    Ok(list)
}

fn unix_socket(values: &Values<'_>) -> Result<Option<UnixSocket>, ConfigError> {
    let Some(path) = values.path(Id::UnixSocket) else { return Ok(None) };
    Ok(Some(UnixSocket { path, mode: values.parsed(Id::UnixMask, values::octal)? }))
}

fn tcp_port(values: &Values<'_>) -> Result<TcpPort, ConfigError> {
    Ok(match values.number::<i32>(Id::Port)? {
        0 => TcpPort::Off,
        port => u16::try_from(port).map_or(TcpPort::Ephemeral, TcpPort::Fixed),
    })
}

fn index_memory_bytes(values: &Values<'_>) -> Result<Option<u64>, ConfigError> {
    values.optional(Id::IndexMemory, |text| values::size(text, MIB))
}

fn shadow_memory_bytes(values: &Values<'_>) -> Result<Option<u64>, ConfigError> {
    values.optional(Id::ShadowMemory, |text| values::size(text, MIB))
}

fn idle_timeout(raw: &Layer) -> Option<Duration> {
    let seconds = raw.word("idle_timeout").parse().unwrap_or(0);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Returns the bound of all connections' buffers: the lowest of Larder's limit and memcached's two, each of which is of
/// a part of them.
fn conn_memory_bytes(values: &Values<'_>) -> Result<u64, ConfigError> {
    let limits = ["resp_obj_mem_limit", "read_buf_mem_limit"].map(|word| values.raw.word(word));
    let limits = limits.into_iter().filter_map(|text| text.parse::<u64>().ok()).filter(|limit| *limit > 0);
    let lowest = limits.min().map_or(u64::MAX, |megabytes| megabytes.saturating_mul(MIB));
    Ok(values.size(Id::ConnMemory)?.min(lowest))
}

/// Returns the bytes of a word that counts kilobytes.
fn kilobytes(raw: &Layer, word: &str) -> usize {
    raw.word(word).parse::<usize>().unwrap_or(0).saturating_mul(KIB as usize)
}

/// Checks that every connection that is taken can authenticate, if any has to.
fn check_login(values: &Values<'_>) -> Result<(), ConfigError> {
    let (users, sasl) = (values.path(Id::AuthFile).is_some(), values.flag(Id::EnableSasl));
    if sasl && !users {
        return Err(ConfigError::Usage("-S: SASL needs users; name their file with -Y".to_string()));
    }
    let protocol = values.text(Id::Protocol);
    values.require(Id::Protocol, sasl || !users || protocol != "binary", BINARY_WITHOUT_SASL)?;
    let message = "SASL is of the binary protocol alone; leave out -S or -B";
    values.require(Id::Protocol, !sasl || protocol != "ascii", message)
}

/// Returns the protocol of connections. With users and without SASL it is text alone, as in memcached.
fn protocol(values: &Values<'_>) -> Protocol {
    if values.path(Id::AuthFile).is_some() && !values.flag(Id::EnableSasl) {
        return Protocol::Ascii;
    }
    match values.text(Id::Protocol) {
        "ascii" => Protocol::Ascii,
        "binary" => Protocol::Binary,
        _ => Protocol::Auto,
    }
}

fn ssd_admission(values: &Values<'_>) -> Admission {
    match values.text(Id::SsdAdmission) {
        "returning" => Admission::Returning,
        _ => Admission::All,
    }
}

fn io(values: &Values<'_>) -> Io {
    match values.text(Id::Io) {
        "uring" => Io::Uring,
        "threads" => Io::Threads,
        _ => Io::Auto,
    }
}

/// Adds the defaults that depend on the machine, the name or another option.
fn compute_defaults(
    raw: &mut Layer,
    personality: Personality,
    variables: &BTreeMap<String, String>,
    cores: usize,
    warnings: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let memory = Values { raw }.size(Id::MemoryLimit)?;
    let absent = |raw: &Layer, id| raw.last(Setting::Opt(id)).is_none();
    if absent(raw, Id::Threads) {
        raw.set_default(Id::Threads, &cores.clamp(1, 1024).to_string());
    }
    if absent(raw, Id::MaxItemSize) {
        raw.set_default(Id::MaxItemSize, &MIB.min(memory / 2).to_string());
    }
    if absent(raw, Id::Listen) {
        let host = if personality == Personality::Memcached { "*" } else { "127.0.0.1" };
        raw.set_default(Id::Listen, host);
    }
    if absent(raw, Id::Ssd) {
        let ssd = match (personality, cache_directory(variables)) {
            (Personality::Memcached, _) => None,
            (_, _) if memory < DEFAULT_SSD_MEMORY_MIN => None,
            (_, None) => {
                warnings
                    .push("no SSD: neither HOME nor XDG_CACHE_HOME is set; name one with --ssd".to_string());
                None
            }
            (_, Some(directory)) => {
                let size = values::show_size(GIB.min(memory.saturating_mul(16))).replace(' ', "");
                Some(format!("{}:{size}", directory.join("larder/larder.ssd").display()))
            }
        };
        raw.set_default(Id::Ssd, ssd.as_deref().unwrap_or("none"));
    }
    Ok(())
}

/// Returns the user's cache directory by the XDG base directory specification, which ignores a relative one.
fn cache_directory(variables: &BTreeMap<String, String>) -> Option<PathBuf> {
    let absolute = |name: &str| variables.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}
