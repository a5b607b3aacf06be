//! What is wrong with a request, in ZooKeeper's numbers (`KeeperException.Code` of 3.9).

/// The reason why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// Something is wrong here that no client can mend.
    SystemError = -1,
    /// An operation of a transaction of which another one failed.
    RuntimeInconsistency = -2,
    /// The bytes of the request are not one.
    MarshallingError = -5,
    /// There is no such operation.
    Unimplemented = -6,
    /// An argument makes no sense.
    BadArguments = -8,
    /// The node is not there.
    NoNode = -101,
    /// The session may not do that.
    NoAuth = -102,
    /// The version is another one.
    BadVersion = -103,
    /// Ephemeral nodes have no children.
    NoChildrenForEphemerals = -108,
    /// The node is there already.
    NodeExists = -110,
    /// The node has children.
    NotEmpty = -111,
    /// The session is no more.
    SessionExpired = -112,
    /// An access control list makes no sense.
    InvalidAcl = -114,
    /// The credentials are wrong, or nobody knows the scheme.
    AuthFailed = -115,
    /// The session is attached elsewhere.
    SessionMoved = -118,
    /// There is no such watch.
    NoWatcher = -121,
    /// The ensemble is not changed through this interface.
    ReconfigDisabled = -123,
    /// A quota that is enforced, or a bound of this service, would be passed.
    QuotaExceeded = -125,
}

impl Code {
    /// ZooKeeper's number.
    #[must_use]
    pub fn number(self) -> i32 {
        self as i32
    }
}
