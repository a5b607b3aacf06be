//! What a gateway needs of a group.

use bytes::Bytes;
use troth_client::ClientError;
use troth_client::front::Client;

/// What a gateway needs of a group, as [`Client`] has it.
pub trait Group: Send + 'static {
    /// Has operations ordered together and executed one after the other: [`Client::execute_all`].
    fn execute(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, ClientError>> + Send + 'static;

    /// Has an operation answered that changes nothing: [`Client::read`], or [`Client::read_recent`].
    fn read(
        &self,
        operation: Bytes,
        recent: bool,
    ) -> impl Future<Output = Result<Bytes, ClientError>> + Send + 'static;
}

impl Group for Client {
    fn execute(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = Result<Vec<Bytes>, ClientError>> + Send + 'static {
        let client = self.clone();
        async move { client.execute_all(operations).await }
    }

    fn read(
        &self,
        operation: Bytes,
        recent: bool,
    ) -> impl Future<Output = Result<Bytes, ClientError>> + Send + 'static {
        let client = self.clone();
        async move {
            match recent {
                true => client.read_recent(operation).await,
                false => Client::read(&client, operation).await,
            }
        }
    }
}
