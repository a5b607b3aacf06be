mod choose;
mod craft;
mod harness;
mod normal;
mod restart;
mod stable;
mod view_change;
mod wire;
