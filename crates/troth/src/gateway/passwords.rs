//! The file of those who may authenticate.

use crate::failure::{Failure, USAGE};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most bytes of such a file.
const MOST: u64 = 1 << 20;

/// Passwords by user.
pub(crate) fn read(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let failed = |why| Failure::system(&format!("cannot read {}", path.display()), &why);
    let file = File::open(path).map_err(|why| Failure { code: USAGE, ..failed(why) })?;
    let mode = file.metadata().map_err(failed)?.mode() & 0o777;
    if mode & 0o077 != 0 {
        let shown = path.display();
        return Err(Failure::usage(format!(
            "{shown} has passwords, and others than its user may read or write it (mode {mode:o})\n  mend: chmod 600 {shown}"
        )));
    }
    let mut text = String::new();
    file.take(MOST + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MOST {
        return Err(Failure::usage(format!("{} is larger than {MOST} bytes", path.display())));
    }
    parse(&text).map_err(|line| {
        Failure::usage(format!(
            "{}:{line}: no user\n  mend: write name:password, each name once; empty lines and those that begin with # do not count",
            path.display()
        ))
    })
}

/// Reads the lines; an error is the number of the first that is none.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, String>, usize> {
    let mut users = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, password) = line.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or(number)?;
        if users.insert(name.to_owned(), password.to_owned()).is_some() {
            return Err(number);
        }
    }
    Ok(users)
}
