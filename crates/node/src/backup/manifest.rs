//! What a backup is of: `backup.json`, which is written last.

use serde::{Deserialize, Serialize};
use troth_types::Hasher;

/// The latest version of a backup's format: with the file `configuration`.
pub(super) const FORMAT: u64 = 2;
/// The version of a backup of a group whose replicas and clients are the ones that it began with.
pub(super) const FORMAT_AS_BEGUN: u64 = 1;

/// A backup's own words about itself. None of them is believed: digests are computed again where a backup
/// is read, and compared with these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of the format.
    pub format: u64,
    /// When it was made, in seconds since the Unix epoch, by the clock of the machine that made it.
    pub made_unix_s: u64,
    /// The name of the group that it is of, in hexadecimal digits.
    pub group: String,
    /// What the group serves.
    pub service: String,
    /// The replica that served it.
    pub replica: u16,
    /// The last batch in it.
    pub number: u64,
    /// The agreed time of that batch, in microseconds since the Unix epoch.
    pub agreed_time_us: u64,
    /// The certified digest of the checkpoint: of the whole state, the client table included.
    pub checkpoint_digest: String,
    /// The digest of the application's content alone.
    pub content_digest: String,
    /// Entries of the whole state.
    pub entries: u64,
    /// Bytes of the file `state`.
    pub state_bytes: u64,
    /// A digest over all of the above, so that a damaged line is seen as one.
    pub check: String,
}

impl Manifest {
    /// The digest that belongs into `check`.
    pub(super) fn digest(&self) -> String {
        let mut hasher = Hasher::new("troth/backup/v1");
        hasher.number(self.format).number(self.made_unix_s);
        hasher.bytes(self.group.as_bytes()).bytes(self.service.as_bytes());
        hasher.number(u64::from(self.replica)).number(self.number).number(self.agreed_time_us);
        hasher.bytes(self.checkpoint_digest.as_bytes()).bytes(self.content_digest.as_bytes());
        hasher.number(self.entries).number(self.state_bytes);
        crate::config::hex::encode(&hasher.finish().0)
    }
}
