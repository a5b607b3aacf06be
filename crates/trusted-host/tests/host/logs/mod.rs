//! Tests of attested logs: the homes of this crate, homes with a planted fault, and the store.

mod both;
mod broken;
mod crashes;
mod damage;
mod disk_homes;
mod fixture;
mod homes;
mod ledger;
mod rules;
mod support;
