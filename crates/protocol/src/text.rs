//! The strings of the text protocol, byte for byte, without the line end. Clients compare whole lines, so none
//! of this is ours to word.

/// The version this wire is: what `version` answers. Clients parse it as three numbers, so nothing may
/// follow.
pub const VERSION: &str = "1.6.45";

/// A verb that does not exist, or an administrative command that makes no sense.
pub const ERROR: &str = "ERROR";
/// A known verb with arguments that make no sense.
pub const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
/// The data block was not followed by CR LF.
pub const BAD_DATA_CHUNK: &str = "CLIENT_ERROR bad data chunk";
/// `touch`, `gat`, `flush_all` with an expiry that is no number.
pub const BAD_EXPTIME: &str = "CLIENT_ERROR invalid exptime argument";
/// `incr`, `decr` by something that is no number.
pub const BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta argument";
/// `incr`, `decr`, `ma` of a value that is no number.
pub const NON_NUMERIC: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";

/// `mi` when there are as many subscriptions as there may be. Larder's own.
pub const TOO_MANY_SUBSCRIPTIONS: &str = "SERVER_ERROR too many subscriptions; raise --lease-memory";

/// More meta tokens than allowed.
pub const META_TOO_MANY: &str = "CLIENT_ERROR options flags are too long";
/// A meta flag given twice.
pub const META_DUPLICATE: &str = "CLIENT_ERROR duplicate flag";
/// A meta flag that does not exist.
pub const META_INVALID: &str = "CLIENT_ERROR invalid flag";
/// `md` and `ma`: whatever is wrong with a single flag.
pub const META_INVALID_OR_DUPLICATE: &str = "CLIENT_ERROR invalid or duplicate flag";
/// A meta flag whose token is no number.
pub const META_BAD_TOKEN: &str = "CLIENT_ERROR bad token in command line format";
/// An opaque token that is too long.
pub const META_OPAQUE_TOO_LONG: &str = "CLIENT_ERROR opaque token too long";
/// A base64 key that is none.
pub const META_BAD_KEY: &str = "CLIENT_ERROR error decoding key";
/// `ms M` with an unknown mode.
pub const META_STORE_MODE: &str = "CLIENT_ERROR invalid mode for ms M token";
/// `ma M` with an unknown mode.
pub const META_ARITH_MODE: &str = "CLIENT_ERROR invalid mode for ma M token";
/// `ma J` that is no number.
pub const META_BAD_INITIAL: &str = "CLIENT_ERROR invalid numeric initial value";
/// `ma D` that is no number.
pub const META_BAD_DELTA: &str = "CLIENT_ERROR invalid numeric delta value";

/// `ml` without a count or a period.
pub const LIMIT_INCOMPLETE: &str = "CLIENT_ERROR ml needs a limit: L and P";
/// `ml M` with an unknown mode.
pub const LIMIT_MODE: &str = "CLIENT_ERROR invalid mode for ml M token";
/// `ml` of an item that holds something else.
pub const NOT_A_LIMIT: &str = "CLIENT_ERROR the item holds no rate limit";

/// The item is larger than the server stores.
pub const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
/// No room, and nothing may be evicted.
pub const OUT_OF_MEMORY_STORING: &str = "SERVER_ERROR out of memory storing object";
/// No room for the answer to a read.
pub const OUT_OF_MEMORY_READING: &str = "SERVER_ERROR out of memory writing get response";
/// No room otherwise.
pub const OUT_OF_MEMORY: &str = "SERVER_ERROR out of memory";

/// `flush_all` is disabled.
pub const FLUSH_NOT_ALLOWED: &str = "CLIENT_ERROR flush_all not allowed";
/// `shutdown` is disabled.
pub const SHUTDOWN_NOT_ENABLED: &str = "SERVER_ERROR: shutdown not enabled";
/// `shutdown` with an unknown mode.
pub const SHUTDOWN_INVALID: &str = "CLIENT_ERROR invalid shutdown mode";
/// `cache_memlimit` below 8 MiB.
pub const MEMLIMIT_TOO_SMALL: &str = "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m";
/// `cache_memlimit` with what can only be bytes.
pub const MEMLIMIT_NOT_BYTES: &str = "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes";
/// `cache_memlimit` that cannot be done.
pub const MEMLIMIT_FAILED: &str = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust";
/// `lru tune` with shares that leave too little.
pub const LRU_SHARES: &str = "ERROR hot and warm pcts must not exceed 80";
/// `lru tune` with an age factor of zero or less.
pub const LRU_FACTORS: &str = "ERROR hot/warm age factors must be greater than 0";
/// `lru_crawler sleep` of more than a second.
pub const CRAWLER_SLEEP: &str = "CLIENT_ERROR sleep must be one second or less";
/// `lru_crawler metadump` is disabled.
pub const METADUMP_NOT_ALLOWED: &str = "ERROR metadump not allowed";
/// `lru_crawler mgdump` is disabled.
pub const MGDUMP_NOT_ALLOWED: &str = "ERROR key dump not allowed";
/// `lru_crawler metadump` or `mgdump` while another one runs.
pub const CRAWLER_BUSY: &str = "BUSY currently processing crawler request";
/// The same of a class that there cannot be.
pub const CRAWLER_BAD_CLASS: &str = "BADCLASS invalid class id";
/// The same with `-o no_lru_crawler`.
pub const CRAWLER_DISABLED: &str = "CLIENT_ERROR lru crawler disabled";
/// `slabs reassign` when there is nothing to move.
pub const SLABS_NO_SPARE: &str = "NOSPARE source class has no spare pages";
/// `watch` is disabled.
pub const WATCH_NOT_ALLOWED: &str = "CLIENT_ERROR watch commands not allowed";
/// `watch` behind a command whose reply has not been sent.
pub const WATCH_PIPELINED: &str = "ERROR cannot pipeline other commands before watch";
/// `watch` when there are as many watchers as there may be.
pub const WATCH_TOO_MANY: &str = "WATCHER_TOO_MANY log watcher limit reached";
/// `watch` when there is no memory for another watcher.
pub const WATCH_FAILED: &str = "WATCHER_FAILED failed to add log watcher";
/// `stats detail` with anything else.
pub const STATS_DETAIL_USAGE: &str = "CLIENT_ERROR usage: stats detail on|off|dump";
/// `stats detail` is disabled.
pub const STATS_DETAIL_NOT_ALLOWED: &str = "CLIENT_ERROR stats detail not allowed";
/// `stats prefixes` is disabled, as `stats detail` is.
pub const STATS_PREFIXES_NOT_ALLOWED: &str = "CLIENT_ERROR stats prefixes not allowed";
/// `stats cachedump` with too few arguments.
pub const STATS_CACHEDUMP_USAGE: &str = "CLIENT_ERROR bad command line";
/// `stats cachedump` of a class that cannot exist; libmemcached's dump ends on these very words.
pub const STATS_CACHEDUMP_CLASS: &str = "CLIENT_ERROR Illegal slab id";
/// `stats cachedump` is disabled.
pub const STATS_CACHEDUMP_NOT_ALLOWED: &str = "CLIENT_ERROR stats cachedump not allowed";
/// Said to a connection that comes when there are as many as allowed; it is closed after.
pub const TOO_MANY_CONNECTIONS: &str = "ERROR Too many open connections";

/// Text authentication: a command before it.
pub const AUTH_REQUIRED: &str = "CLIENT_ERROR unauthenticated";
/// Text authentication: no such user, or another password.
pub const AUTH_FAILED: &str = "CLIENT_ERROR authentication failure";
/// Text authentication: the value is longer than any credentials.
pub const AUTH_TOO_LONG: &str = "CLIENT_ERROR auth token too long";
/// Text authentication: the value is not a user, a blank and a password.
pub const AUTH_BAD_FORMAT: &str = "CLIENT_ERROR bad authentication token format";
/// Text authentication: the value was not followed by CR LF.
pub const AUTH_BAD_END: &str = "CLIENT_ERROR bad command line termination";
/// The user lacks the right to this command or key; memcached has no such rights.
pub const PERMISSION_DENIED: &str = "CLIENT_ERROR permission denied";
