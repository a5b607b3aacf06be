//! The coordination service in the simulated world: a sequential model of it, gateways that use it, and lies about it.

mod audit;
mod gateway;
mod lies;
mod model;
mod talk;

pub use audit::audit;
pub use gateway::{Gateway, Town};
pub use lies::{lie_about, lie_of_an_event, nuisance};
pub use model::{Model, Session, Told, Turn};
pub(crate) use talk::Talk;
