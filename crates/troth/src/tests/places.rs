//! What is said of places that cannot be made or written.

use crate::places::mend;
use std::io::{Error, ErrorKind};
use std::path::Path;

/// What to do, without the words around it.
fn said(path: &str, why: ErrorKind) -> String {
    let said = mend(Path::new(path), &Error::from(why));
    said.strip_prefix("\n  mend: ").unwrap_or(&said).to_owned()
}

#[test]
fn who_may_not_write_learns_where() {
    let denied = ErrorKind::PermissionDenied;
    assert!(said("/no/such/place", denied).starts_with("let this user write to /, or give another"));
    assert!(said("no-such-place", denied).starts_with("let this user write to ., or give"));
    assert!(said("/proc/self/no/such", denied).starts_with("let this user write to /proc/self, "));
    // The file is there; a directory is what has to be writable.
    assert!(said("/proc/self/stat", denied).starts_with("let this user write to /proc/self, "));
}

#[test]
fn a_file_where_a_directory_should_be_is_named() {
    for why in [ErrorKind::AlreadyExists, ErrorKind::NotADirectory] {
        assert!(said("/proc/self/stat/x/y", why).starts_with("/proc/self/stat is no directory: "), "{why}");
        assert_eq!(said("/proc/self", why), "", "made by somebody else at this moment");
    }
}

#[test]
fn other_reasons_are_told_apart() {
    assert!(
        said("/proc/x", ErrorKind::ReadOnlyFilesystem).starts_with("mount its file system for writing, ")
    );
    assert!(said("/proc/x", ErrorKind::StorageFull).starts_with("make space (`df /proc` "));
    assert_eq!(said("/proc/x", ErrorKind::Interrupted), "");
}
