//! Plots of what was measured, drawn from the results as they are kept in `bench/results`, so that they can be drawn
//! again without measuring.

mod axis;
mod delays;
mod gates;
mod open;
mod svg;

pub use delays::draw as delays;
pub use gates::draw as gates;
pub use open::draw as open;

#[cfg(test)]
pub use axis::{Axis, short, time};
#[cfg(test)]
pub use svg::{Anchor, Picture};
