//! A copy of the workspace to plant bugs in, kept between runs so that builds are incremental.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The copy.
pub struct Tree {
    /// Where it is.
    pub root: PathBuf,
}

impl Tree {
    /// Brings the copy in line with the workspace. Files of equal content are left alone, so that
    /// cargo sees no change in them; files that are gone there go here too.
    pub fn sync(from: &Path, files: &[String], root: &Path) -> Result<Self, String> {
        let tree = Self { root: root.to_path_buf() };
        for path in files {
            let content = std::fs::read(from.join(path)).map_err(|why| format!("{path}: {why}"))?;
            tree.write(path, &content)?;
        }
        let wanted: BTreeSet<PathBuf> = files.iter().map(|path| root.join(path)).collect();
        tree.remove_others(root, &wanted).map_err(|why| format!("{}: {why}", root.display()))?;
        Ok(tree)
    }

    /// Writes a file unless it already has this content.
    pub fn write(&self, path: &str, content: &[u8]) -> Result<(), String> {
        let path = self.root.join(path);
        if std::fs::read(&path).is_ok_and(|old| old == content) {
            return Ok(());
        }
        let parent = path.parent().expect("a file lies in a directory");
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&path, content))
            .map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Reads a file.
    pub fn read(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(self.root.join(path)).map_err(|why| format!("{path}: {why}"))
    }

    fn remove_others(&self, directory: &Path, wanted: &BTreeSet<PathBuf>) -> std::io::Result<()> {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                self.remove_others(&path, wanted)?;
            } else if !wanted.contains(&path) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }
}
