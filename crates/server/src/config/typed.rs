//! The merged values as types, one access a form; an error names where the value was given.

use std::path::PathBuf;

use super::error::ConfigError;
use super::layer::{Given, Layer, Origin, Setting};
use super::listen::{Listen, listen_list};
use super::option::{Id, Kind, Opt};
use super::options::OPTIONS;
use super::ssd::{SsdPath, ssd_path};
use super::values::{self, MIB};

/// Typed access to the merged layers; errors name the origin of the value.
pub(super) struct Values<'a> {
    /// The merged layers.
    pub(super) raw: &'a Layer,
}

impl Values<'_> {
    fn row(id: Id) -> Option<&'static Opt> {
        OPTIONS.iter().find(|opt| opt.id == id)
    }

    pub(super) fn text(&self, id: Id) -> &str {
        self.raw.last(Setting::Opt(id)).map_or("", |given| &given.text)
    }

    pub(super) fn flag(&self, id: Id) -> bool {
        values::switch(self.text(id)) == Ok(true)
    }

    pub(super) fn path(&self, id: Id) -> Option<PathBuf> {
        self.raw.last(Setting::Opt(id)).map(|given| PathBuf::from(&given.text))
    }

    pub(super) fn verbosity(&self) -> u8 {
        let steps = self.raw.all(Setting::Opt(Id::Verbose)).iter();
        steps.filter_map(|given| given.text.parse::<u8>().ok()).fold(0, u8::saturating_add)
    }

    pub(super) fn error(&self, id: Id, message: &str) -> ConfigError {
        let long = Self::row(id).map_or("", |opt| opt.long);
        let unset = Given { text: String::new(), origin: Origin::Default };
        self.raw.last(Setting::Opt(id)).unwrap_or(&unset).error(long, message)
    }

    pub(super) fn require(&self, id: Id, holds: bool, message: &str) -> Result<(), ConfigError> {
        if holds { Ok(()) } else { Err(self.error(id, message)) }
    }

    pub(super) fn parsed<T>(
        &self,
        id: Id,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        parse(self.text(id)).map_err(|message| self.error(id, &message))
    }

    pub(super) fn optional<T>(
        &self,
        id: Id,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        self.raw.last(Setting::Opt(id)).map(|_| self.parsed(id, parse)).transpose()
    }

    pub(super) fn size(&self, id: Id) -> Result<u64, ConfigError> {
        let megabytes = Self::row(id).is_some_and(|opt| opt.kind == Kind::Megabytes);
        self.parsed(id, |text| values::size(text, if megabytes { MIB } else { 1 }))
    }

    pub(super) fn number<T: TryFrom<i64>>(&self, id: Id) -> Result<T, ConfigError> {
        let out_of_range = |_| "is out of range".to_string();
        self.parsed(id, |text| values::number(text, i64::MIN, i64::MAX)?.try_into().map_err(out_of_range))
    }

    pub(super) fn listen(&self) -> Result<Vec<Listen>, ConfigError> {
        let mut list = Vec::new();
        for given in self.raw.all(Setting::Opt(Id::Listen)) {
            list.extend(listen_list(&given.text).map_err(|message| given.error("listen", &message))?);
        }
        self.require(Id::Listen, !list.is_empty(), "there is no address in it")?;
        Ok(list)
    }

    pub(super) fn ssd(&self) -> Result<Vec<SsdPath>, ConfigError> {
        let all = self.raw.all(Setting::Opt(Id::Ssd));
        if all.iter().any(|given| given.text == "none") {
            self.require(Id::Ssd, all.len() == 1, "\"none\" excludes every other path; drop one of them")?;
            return Ok(Vec::new());
        }
        let mut list: Vec<SsdPath> = Vec::new();
        for given in all {
            let ssd = ssd_path(&given.text).map_err(|message| given.error("ssd", &message))?;
            if list.iter().any(|other| other.path == ssd.path) {
                return Err(given.error("ssd", "the same path is given twice"));
            }
            list.push(ssd);
        }
        Ok(list)
    }
}
