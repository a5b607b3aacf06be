//! Passive building blocks that protocols share
