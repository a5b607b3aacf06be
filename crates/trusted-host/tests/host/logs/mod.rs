//! Tests of attested logs: the homes of this crate, and homes with a planted fault.

mod broken;
mod homes;
mod support;
