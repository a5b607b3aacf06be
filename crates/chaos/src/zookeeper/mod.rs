//! Chaos of the coordination service: sessions with ephemeral nodes, locks and watches over gateways that are killed, as the
//! replicas behind them are.
//!
//! | module | subject |
//! | --- | --- |
//! | `run` | the whole run: start, load, faults, last looks, verdict |
//! | `stage` | a run under way: what is killed, started and waited for |
//! | `faults`, `gateways` | what is killed next; gateways as child processes |
//! | `world` | what all sessions share |
//! | `client`, `wire` | a ZooKeeper client of our own, and the packets that it says and hears |
//! | `load`, `layout` | what sessions do, and the nodes that they do it with |
//! | `journal` | what a session's client did and heard, in order |
//! | `checks` | what must hold, found out from the journals alone |
//! | `spoil` | journals made wrong on purpose, which must be found |
//! | `figures` | what a run was made of; one in which nothing happened shows nothing |
//! | `report` | the result for people and machines |

mod checks;
mod client;
mod faults;
mod figures;
mod gateways;
mod journal;
mod layout;
mod load;
mod report;
mod run;
mod spoil;
mod stage;
mod wire;
mod world;

pub(crate) use run::run;

#[cfg(test)]
mod tests;
