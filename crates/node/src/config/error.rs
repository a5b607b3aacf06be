//! What is wrong with a configuration file, where, and what to do about it.

use core::fmt;
use core::ops::Range;
use std::path::{Path, PathBuf};

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: PathBuf,
    /// Line and column, both from 1, where the file could be read at all.
    pub place: Option<(usize, usize)>,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub mend: String,
}

impl ConfigError {
    /// What is wrong and where, without what to do: `file:line:column: problem`.
    #[must_use]
    pub fn said(&self) -> String {
        let place = self.place.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
        format!("{}{place}: {}", self.file.display(), self.problem)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  mend: {}", self.said(), self.mend)
    }
}

impl std::error::Error for ConfigError {}

/// A file's text, to make errors that point into it.
pub(crate) struct Source {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
}

impl Source {
    /// Reads a file of at most 16 MiB.
    pub(crate) fn read(file: &Path, mend: &str) -> Result<Self, ConfigError> {
        const MOST: u64 = 16 << 20;
        let whole = |problem: String| ConfigError {
            file: file.to_path_buf(),
            place: None,
            problem,
            mend: mend.to_owned(),
        };
        let unread = |why: std::io::Error| {
            let closed = why.kind() == std::io::ErrorKind::PermissionDenied;
            let error = whole(format!("cannot be read: {why}"));
            if closed {
                let mend = "run this as the user that the file and its directory belong to, or give them to this one (chown)";
                return ConfigError { mend: mend.to_owned(), ..error };
            }
            error
        };
        let length = std::fs::metadata(file).map_err(unread)?.len();
        if length > MOST {
            return Err(whole(format!("is {length} bytes long, which no configuration is")));
        }
        let text = std::fs::read_to_string(file).map_err(unread)?;
        Ok(Self { file: file.to_path_buf(), text })
    }

    /// Parses the file; unknown keys, missing keys and wrong types are errors that say where.
    pub(crate) fn parse<T: serde::de::DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(&self.text).map_err(|why| {
            let problem = why.message().lines().next().unwrap_or("is not TOML").to_owned();
            let mend = mend_for(&problem);
            self.error(why.span().unwrap_or(0..0), problem, mend)
        })
    }

    /// An error at a place of the file.
    pub(crate) fn error(
        &self,
        span: Range<usize>,
        problem: impl Into<String>,
        mend: impl Into<String>,
    ) -> ConfigError {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        ConfigError {
            file: self.file.clone(),
            place: Some((line, column)),
            problem: problem.into(),
            mend: mend.into(),
        }
    }
}

fn mend_for(problem: &str) -> &'static str {
    if problem.starts_with("unknown field") {
        "remove the key, or write one of the expected names (docs/reference/configuration.md)"
    } else if problem.starts_with("missing field") {
        "add the key; `troth init` writes complete files to compare with"
    } else if problem.starts_with("invalid type") || problem.starts_with("invalid value") {
        "write the value in the expected form (docs/reference/configuration.md)"
    } else {
        "correct the line; the format is TOML (https://toml.io)"
    }
}
