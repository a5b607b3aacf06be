//! What a store is of: the counters of a component, or its logs.

use super::format::{Encoder, Layout};
use troth_trusted::{Identity, State};

/// What stands in each record of a store, and how its files are called.
pub(super) trait Subject: Clone + PartialEq + Sized {
    /// What its bytes begin with, the identity behind it.
    const TAG: &'static [u8; 14];
    /// Its length in bytes.
    const LENGTH: usize;
    /// How the name of a file begins; epoch and generation follow.
    const FILE: &'static str;
    /// A file while it is written.
    const NEW_FILE: &'static str;
    /// The layouts that are read, newest last.
    const LAYOUTS: &'static [Layout];
    /// The layout that is written.
    const LAYOUT: Layout;
    /// Whether a start may begin a file. Not where a file begins with a base, which only the caller can make.
    const FILE_AT_START: bool;

    /// Before anything was stored.
    fn new(identity: Identity) -> Self;

    /// Whose it is.
    fn identity(&self) -> Identity;

    /// Writes its bytes.
    fn put(&self, out: &mut Encoder<'_>);

    /// What [`Subject::put`] wrote.
    fn from_part(part: &[u8]) -> Option<Self>;

    /// Whether it may be stored after `older`.
    fn covers(&self, older: &Self) -> bool;
}

impl Subject for State {
    const TAG: &'static [u8; 14] = b"troth-state/v1";
    const LENGTH: usize = Self::LEN;
    const FILE: &'static str = "counters-";
    const NEW_FILE: &'static str = "counters.new";
    const LAYOUTS: &'static [Layout] = &[Layout::Plain, Layout::WithBlobs];
    const LAYOUT: Layout = Layout::WithBlobs;
    const FILE_AT_START: bool = true;

    fn new(identity: Identity) -> Self {
        Self::new(identity)
    }

    fn identity(&self) -> Identity {
        self.identity
    }

    fn put(&self, out: &mut Encoder<'_>) {
        out.put(&self.to_bytes());
    }

    fn from_part(part: &[u8]) -> Option<Self> {
        Self::from_bytes(part.try_into().ok()?)
    }

    /// No counter stands below where it stood.
    fn covers(&self, older: &Self) -> bool {
        self.counters.iter().zip(&older.counters).all(|(newer, older)| newer.value >= older.value)
    }
}
