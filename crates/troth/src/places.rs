//! What to do about a directory or file that cannot be made or written.

use crate::suggest::quoted;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// What to do, as it stands behind a message; nothing where the reason says nothing of the place.
pub(crate) fn mend(path: &Path, why: &Error) -> String {
    const ELSEWHERE: &str = "or give another directory with --dir";
    let said = match why.kind() {
        ErrorKind::PermissionDenied => {
            let place = nearest(path, |place| place.is_dir());
            format!("let this user write to {}, {ELSEWHERE}", place.display())
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            let file = nearest(path, |place| place.symlink_metadata().is_ok());
            // Of two who make it at once one finds it there.
            if file.is_dir() {
                return String::new();
            }
            format!("{} is no directory: move it away, {ELSEWHERE}", file.display())
        }
        ErrorKind::ReadOnlyFilesystem => {
            format!("mount its file system for writing, {ELSEWHERE}")
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let place = nearest(path, |place| place.is_dir());
            format!(
                "make space (`df {}` shows how much there is), {ELSEWHERE}",
                quoted(&place.display().to_string())
            )
        }
        _ => return String::new(),
    };
    format!("\n  mend: {said}")
}

/// The path itself or the first above it that is so; the present directory where a relative one leads to nothing else.
fn nearest(path: &Path, is_so: impl Fn(&Path) -> bool) -> PathBuf {
    let named = path.ancestors().filter(|place| !place.as_os_str().is_empty());
    named.into_iter().find(|place| is_so(place)).unwrap_or(Path::new(".")).to_path_buf()
}
