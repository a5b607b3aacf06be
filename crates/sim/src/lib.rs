//! The simulated world: network, storage, adversaries, checkers
