//! A store to measure, as it is named on the command line: `NAME=ADDRESS` or `LABEL:NAME=ADDRESS`.

use super::store::Kind;
use std::str::FromStr;

/// A store, its address, and its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name of its row.
    pub label: String,
    /// How it is talked to.
    pub kind: Kind,
    /// Where it is.
    pub address: String,
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, address) = text.split_once('=').unwrap_or((text, ""));
        let (label, name) = name.split_once(':').unwrap_or((name, name));
        let Some(kind) = Kind::named(name) else {
            let known: Vec<_> = Kind::ALL.into_iter().map(Kind::name).collect();
            return Err(format!("there is no store {name:?}; there are {}", known.join(", ")));
        };
        if address.is_empty() || label.is_empty() {
            return Err(format!("say where it is: {name}={}", kind.example()));
        }
        Ok(Self { label: label.into(), kind, address: address.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_label_and_address_are_told_apart() {
        let entry = |text: &str| text.parse::<Entry>().map(|e| (e.label, e.kind, e.address));
        let is = |label: &str, kind, address: &str| Ok((label.to_string(), kind, address.to_string()));
        assert_eq!(entry("larder=:11211"), is("larder", Kind::Memcached, ":11211"));
        assert_eq!(entry("larder-meta=h"), is("larder-meta", Kind::MemcachedMeta, "h"));
        assert_eq!(entry("valkey:redis=redis://h/?a=b"), is("valkey", Kind::Redis, "redis://h/?a=b"));
        assert!(entry("redis").is_err_and(|why| why.contains("redis=redis://")));
        assert!(entry("oracle=x").is_err_and(|why| why.contains("mariadb-orm")));
    }
}
