//! MinBFT: 2f+1 replicas with a trusted counter each
