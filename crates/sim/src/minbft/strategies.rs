//! MinBFT's written strategies.

use super::MinBftWorld;
use crate::adversary::Strategy;

/// All of them, by name.
pub const ALL: &[(&str, fn() -> Box<dyn Strategy<MinBftWorld>>)] = &[];
