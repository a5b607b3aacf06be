//! Tests of MinBFT.
