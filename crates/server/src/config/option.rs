//! A row of the table of options: name, form, default, effect. The rows are in `options.rs`.

/// Names one option of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each name is the option's long name; the table describes it")]
pub enum Id {
    Ssd,
    SsdShare,
    SsdFormat,
    SsdWriteLimit,
    SsdEndurance,
    SsdWriteWait,
    SsdAdmission,
    SsdLivePercent,
    IndexMemory,
    ShadowMemory,
    ItemSize,
    ConnMemory,
    LeaseMemory,
    Io,
    Http,
    HttpTokenFile,
    HttpOpen,
    HttpHost,
    Config,
    PrintConfig,
    Plan,
    Json,
    Port,
    UdpPort,
    UnixSocket,
    UnixMask,
    Listen,
    InsecureListen,
    ClusterNodes,
    ClusterSrv,
    ClusterDns,
    ConnLimit,
    ListenBacklog,
    Protocol,
    AuthFile,
    EnableSasl,
    Threads,
    MaxReqsPerEvent,
    MemoryLimit,
    MaxItemSize,
    DisableEvictions,
    MemoryFile,
    StateFile,
    LockMemory,
    DisableCas,
    EnableShutdown,
    DisableFlushAll,
    DisableDumping,
    DisableWatch,
    PrefixDelimiter,
    Daemon,
    User,
    Pidfile,
    Verbose,
    Extended,
    Help,
    License,
    Version,
    EnableCoredumps,
    SlabGrowthFactor,
    SlabMinSize,
    EnableLargepages,
    NapiIds,
    EnableSsl,
}

/// The form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// No value: given or not. In the environment, in the file and behind `=` it takes yes or no.
    Flag,
    /// No value, and each repetition counts. In the environment and in the file it takes the number.
    Count,
    /// A whole number within bounds.
    Number {
        /// The smallest allowed.
        min: i64,
        /// The largest allowed.
        max: i64,
    },
    /// A decimal fraction.
    Decimal,
    /// A time in milliseconds, at most this many.
    Millis(i64),
    /// A size; a number without a suffix counts mebibytes.
    Megabytes,
    /// A size; a number without a suffix counts bytes.
    Bytes,
    /// Bytes a second.
    Rate,
    /// Any text; the word stands for it in the help.
    Text(&'static str),
    /// A list: repetitions add to it; the word stands for one element in the help.
    List(&'static str),
    /// An octal access mask.
    Octal,
    /// One character.
    Char,
    /// One of a few words.
    Choice(&'static [&'static str]),
}

impl Kind {
    /// Returns the word that stands for a value in the help; empty for none.
    pub fn hint(self) -> &'static str {
        match self {
            Kind::Flag | Kind::Count => "",
            Kind::Number { .. } | Kind::Decimal => "N",
            Kind::Millis(_) => "MS",
            Kind::Megabytes | Kind::Bytes => "SIZE",
            Kind::Rate => "SIZE/s",
            Kind::Text(hint) | Kind::List(hint) => hint,
            Kind::Octal => "MASK",
            Kind::Char => "CHAR",
            Kind::Choice(_) => "WORD",
        }
    }
}

/// The value of an option that is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fallback {
    /// This value.
    Is(&'static str),
    /// Computed at start.
    Computed {
        /// The rule, for the help.
        how: &'static str,
        /// A value to show in the example file.
        example: &'static str,
    },
    /// Absent.
    Unset {
        /// A value to show in the example file.
        example: &'static str,
    },
}

/// The effect of an option that is given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// It works as memcached's, or Larder's, documentation describes.
    Honoured,
    /// It is accepted, since scripts and charts pass it, and changes nothing.
    Ignored,
    /// The daemon does not start; the text is the remedy. Words of `-o` alone are refused.
    Refused(&'static str),
}

/// The groups of the help page, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Larder's own options.
    Larder,
    /// memcached's options for sockets and connections.
    Network,
    /// memcached's options for memory and items.
    Memory,
    /// memcached's options for commands.
    Commands,
    /// memcached's options for the process, and the ones that print and end.
    Process,
}

impl Group {
    /// Returns its title.
    pub fn title(self) -> &'static str {
        match self {
            Group::Larder => "Larder's own options",
            Group::Network => "memcached's options: network",
            Group::Memory => "memcached's options: memory and items",
            Group::Commands => "memcached's options: commands",
            Group::Process => "memcached's options: process",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Opt {
    /// The option.
    pub id: Id,
    /// Its letter, if it has one; the letters are memcached's.
    pub short: Option<char>,
    /// Its long name; also its key in the file, and, in capitals behind `LARDER_`, its environment variable.
    pub long: &'static str,
    /// The form of its value.
    pub kind: Kind,
    /// Its value when it is not given.
    pub default: Fallback,
    /// Its group in the help.
    pub group: Group,
    /// The effect of giving it.
    pub effect: Effect,
    /// A description of one or two sentences, without a full stop at the end.
    pub help: &'static str,
}

impl Opt {
    /// Returns its description with its default.
    pub fn described(&self) -> String {
        let said_with_value = matches!(self.kind, Kind::Flag | Kind::Count) || self.id == Id::UdpPort;
        match self.default {
            Fallback::Is(_) if said_with_value => self.help.to_string(),
            Fallback::Is(text) => format!("{} (default: {text})", self.help),
            Fallback::Computed { how, .. } => format!("{} (default: {how})", self.help),
            Fallback::Unset { .. } => self.help.to_string(),
        }
    }

    /// Returns the option's environment variable.
    pub fn env_name(&self) -> String {
        format!("LARDER_{}", self.long.to_ascii_uppercase().replace('-', "_"))
    }

    /// Returns whether the environment can give it. The options that print and end belong to the command line
    /// alone.
    pub fn in_environment(&self) -> bool {
        !matches!(self.id, Id::Help | Id::License | Id::Version | Id::PrintConfig | Id::Plan | Id::Json)
    }

    /// Returns whether the file can give it: as the environment can, except for the name of the file.
    pub fn in_file(&self) -> bool {
        self.in_environment() && self.id != Id::Config
    }
}
