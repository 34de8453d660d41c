//! The configuration as a whole: command lines, environments and files in; configurations, pages and refusals
//! out.

mod fields;
mod memcached;
mod pages;
mod refusals;
mod settings;
mod sources;

use super::*;

fn surroundings(args: &[&str], variables: &[(&str, &str)]) -> Surroundings {
    let mut all = vec![OsString::from("larder")];
    all.extend(args.iter().map(OsString::from));
    let mut environment = BTreeMap::from([("HOME".to_string(), "/home/cook".to_string())]);
    environment.extend(variables.iter().map(|(name, value)| (name.to_string(), value.to_string())));
    Surroundings { args: all, variables: environment, cores: 3 }
}

fn try_load(args: &[&str], variables: &[(&str, &str)]) -> Result<Command, ConfigError> {
    load(&surroundings(args, variables))
}

fn config(args: &[&str]) -> Config {
    match try_load(args, &[]) {
        Ok(Command::Run(config)) => *config,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn printed(args: &[&str], variables: &[(&str, &str)]) -> String {
    match try_load(args, variables) {
        Ok(Command::Print(text)) => text,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn refusal(args: &[&str]) -> ConfigError {
    try_load(args, &[]).expect_err(&format!("{args:?} should be refused"))
}

/// A file of its own for each caller, gone when dropped.
struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str, text: &str) -> TempFile {
        let path = std::env::temp_dir().join(format!("larder-config-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the temporary directory can be written");
        TempFile(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the temporary directory is UTF-8")
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
