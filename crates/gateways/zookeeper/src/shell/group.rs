//! What a gateway needs of a group.

use bytes::Bytes;
use troth_client::front::{Client, Status};
use troth_client::{ClientError, Course};
use troth_zookeeper::Carrier;

/// What a gateway needs of a group, as [`Client`] has it.
pub trait Group: Send + 'static {
    /// Which group, and which of its clients the gateway is.
    fn carrier(&self) -> Carrier;

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

    /// [`Group::execute`], with where its time went, as far as the group says.
    fn execute_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = (Result<Vec<Bytes>, ClientError>, Course)> + Send + 'static {
        let answer = self.execute(operations);
        async move { (answer.await, Course::default()) }
    }

    /// The same, in a frame that nobody shares: [`Client::execute_apart_noting`].
    fn execute_apart_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = (Result<Vec<Bytes>, ClientError>, Course)> + Send + 'static {
        self.execute_noting(operations)
    }

    /// [`Group::read`], with where its time went, as far as the group says.
    fn read_noting(
        &self,
        operation: Bytes,
        recent: bool,
    ) -> impl Future<Output = (Result<Bytes, ClientError>, Course)> + Send + 'static {
        let answer = self.read(operation, recent);
        async move { (answer.await, Course::default()) }
    }

    /// Has calls that take so many microseconds tell which replicas were late, where the group knows.
    fn name_late_after(&self, _micros: u64) -> impl Future<Output = ()> + Send {
        core::future::ready(())
    }

    /// How the group does, where it is known.
    fn status(&self) -> impl Future<Output = Option<Status>> + Send + 'static {
        core::future::ready(None)
    }
}

impl Group for Client {
    fn carrier(&self) -> Carrier {
        Carrier { group: self.group(), gateway: self.id() }
    }

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

    fn execute_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = (Result<Vec<Bytes>, ClientError>, Course)> + Send + 'static {
        let client = self.clone();
        async move { client.execute_all_noting(operations).await }
    }

    fn execute_apart_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> impl Future<Output = (Result<Vec<Bytes>, ClientError>, Course)> + Send + 'static {
        let client = self.clone();
        async move { client.execute_apart_noting(operations).await }
    }

    fn read_noting(
        &self,
        operation: Bytes,
        recent: bool,
    ) -> impl Future<Output = (Result<Bytes, ClientError>, Course)> + Send + 'static {
        let client = self.clone();
        async move {
            match recent {
                true => client.read_recent_noting(operation).await,
                false => Client::read_noting(&client, operation).await,
            }
        }
    }

    async fn name_late_after(&self, micros: u64) {
        // One that is closed has nothing to tell.
        let _ = Client::name_late_after(self, micros).await;
    }

    fn status(&self) -> impl Future<Output = Option<Status>> + Send + 'static {
        let client = self.clone();
        async move { Client::status(&client).await.ok() }
    }
}
