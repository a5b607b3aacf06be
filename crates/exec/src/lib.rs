//! Execution: applications, the versioned Merkle map, client table, checkpoints
