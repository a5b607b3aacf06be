//! Tests of the rules that `docs/protocols/a2m-pbft-e.md` labels.
