//! Plots of what was measured, drawn from the results as they are kept in `bench/results`, so that they can be drawn
//! again without measuring.

mod axis;
mod delays;
mod gates;
mod open;
mod peers;
mod protocols;
mod svg;

pub use delays::draw as delays;
pub use gates::draw as gates;
pub use gates::of_a_peer as zookeeper;
pub use open::draw as open;
pub use peers::draw as peers;
pub use protocols::draw as protocols;

#[cfg(test)]
pub use axis::{Axis, short, time};
#[cfg(test)]
pub use svg::{Anchor, Picture};
