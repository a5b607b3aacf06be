//! What only the shell reads, for the fuzz targets.

use crate::shell::{read_head, read_subject};

/// The head of a request to the admin port. Whether there is such a page.
#[must_use]
pub fn page(head: &[u8]) -> bool {
    read_head(head).is_ok()
}

/// The subject of a client's certificate.
#[must_use]
pub fn subject(certificate: &[u8]) -> Option<String> {
    read_subject(certificate)
}
