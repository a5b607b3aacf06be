//! Keys, signatures, certificate checks and Verified values
