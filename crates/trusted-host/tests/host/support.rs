//! Homes in memory, with stores that survive a restart or fail on demand.

use std::sync::{Arc, Mutex, PoisonError};
use troth_trusted::agreement::PeerKey;
use troth_trusted::{
    Certifier, Epoch, Identity, Kept, MacKey, MacVerifier, SigningKey, State, Store, StoreFailed,
    TrustedCore, VolatileStore,
};
use troth_trusted_host::conformance::Home;
use troth_trusted_host::{GroupVerifier, InProcess, TrustedComponent};

pub const IDENTITY: Identity = Identity { group: [3; 16], replica: 1, epoch: Epoch(7) };

pub fn mac() -> Certifier {
    Certifier::Mac(MacKey::new(&[5; 32]))
}

pub fn signature() -> Certifier {
    Certifier::Signature(SigningKey::new(&[6; 32]))
}

/// A verifier that knows three replicas of the group, replica 1 with the certifier's key.
pub fn verifier(certifier: &Certifier) -> GroupVerifier {
    let members = (0..3).map(|replica| {
        let identity = Identity { replica, ..IDENTITY };
        let key = match certifier {
            Certifier::Mac(key) => key.verifier().into(),
            Certifier::Signature(key) if replica == IDENTITY.replica => key.verifier().into(),
            Certifier::Signature(_) => SigningKey::new(&[replica as u8; 32]).verifier().into(),
        };
        (identity, key)
    });
    GroupVerifier::new(members).expect("three different replicas")
}

/// What checks, for the client with this X25519 private key, the MACs that the certifier's component makes for it.
pub fn pair(certifier: &Certifier, secret: &[u8; 32]) -> MacVerifier {
    let client = PeerKey::new(secret);
    match certifier {
        Certifier::Mac(key) => key.verifier().shared_with(&client.public()),
        Certifier::Signature(key) => {
            key.verifier().shared_with(&client).expect("a component's key is a point")
        }
    }
}

/// What a [`MemoryStore`] holds, shared with the home that restarts from it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub record: Option<Box<[u8; State::LEN]>>,
    pub blobs: Vec<Vec<u8>>,
    pub broken: bool,
}

/// A store whose content outlives the component.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    memory: Arc<Mutex<Memory>>,
    /// What is given back: the same as in the memory.
    blobs: Vec<Vec<u8>>,
}

impl MemoryStore {
    /// The store as a component finds it that starts again.
    pub fn reopened(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), blobs: self.with(|memory| memory.blobs.clone()) }
    }

    pub fn with<T>(&self, f: impl FnOnce(&mut Memory) -> T) -> T {
        f(&mut self.memory.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store for MemoryStore {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        self.with(|memory| {
            if memory.broken {
                return Err(StoreFailed::Unknown);
            }
            memory.record = Some(Box::new(state.to_bytes()));
            memory.blobs.clear();
            Ok(())
        })?;
        self.blobs.clear();
        Ok(())
    }

    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        self.with(|memory| {
            if memory.broken {
                return Err(StoreFailed::Unknown);
            }
            memory.record = Some(Box::new(state.to_bytes()));
            memory.blobs.push(blob.to_vec());
            Ok(())
        })?;
        self.blobs.push(blob.to_vec());
        Ok(Kept::Both)
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.blobs.get(index).map(Vec::as_slice)
    }
}

/// Components in this process over a [`MemoryStore`].
pub struct MemoryHome {
    pub certifier: Certifier,
    pub store: MemoryStore,
    pub epoch: Epoch,
}

impl MemoryHome {
    pub fn new(certifier: Certifier) -> Self {
        Self { certifier, store: MemoryStore::default(), epoch: IDENTITY.epoch }
    }
}

impl Home for MemoryHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        self.store = MemoryStore::default();
        self.epoch = epoch;
        let identity = Identity { epoch, ..IDENTITY };
        Box::new(InProcess::new(TrustedCore::start(identity, self.certifier.clone(), self.store.clone())))
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        let identity = Identity { epoch: self.epoch, ..IDENTITY };
        let record = self.store.with(|memory| memory.record.clone())?;
        let state = State::from_bytes(&record).expect("an intact record");
        let core = TrustedCore::restart(identity, self.certifier.clone(), self.store.reopened(), state);
        Some(Box::new(InProcess::new(core.expect("its own state"))))
    }

    fn break_store(&mut self) -> bool {
        self.store.with(|memory| memory.broken = true);
        true
    }
}

/// Components in this process that keep nothing.
pub struct VolatileHome(pub Certifier);

impl Home for VolatileHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        let identity = Identity { epoch, ..IDENTITY };
        Box::new(InProcess::new(TrustedCore::start(identity, self.0.clone(), VolatileStore)))
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        None
    }

    fn break_store(&mut self) -> bool {
        false
    }
}
