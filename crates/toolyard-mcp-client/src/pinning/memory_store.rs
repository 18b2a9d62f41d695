//! A store for servers that lives as long as the process.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use toolyard_core::{
    BoxFuture, ContentHash, ServerRecord, Servers, SourceId, StorageError, StoredDefinition, TrustDecision,
};

/// Keeps servers until the process ends.
#[derive(Debug, Default)]
pub struct MemoryServerStore(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    servers: BTreeMap<SourceId, ServerRecord>,
    definitions: BTreeMap<SourceId, BTreeMap<(String, ContentHash), StoredDefinition>>,
    trust: BTreeMap<(String, String), TrustDecision>,
}

type StoreFuture<'a, T> = BoxFuture<'a, Result<T, StorageError>>;

impl MemoryServerStore {
    fn access<T: Send + 'static>(&self, operation: impl FnOnce(&mut Tables) -> T) -> StoreFuture<'static, T> {
        let value = operation(&mut self.0.lock());
        Box::pin(async { Ok(value) })
    }
}

impl Servers for MemoryServerStore {
    fn put_server<'a>(&'a self, server: &'a ServerRecord) -> StoreFuture<'a, ()> {
        self.access(|tables| {
            tables.servers.insert(server.id.clone(), server.clone());
        })
    }

    fn servers(&self) -> StoreFuture<'_, Vec<ServerRecord>> {
        self.access(|tables| tables.servers.values().cloned().collect())
    }

    fn server<'a>(&'a self, id: &'a SourceId) -> StoreFuture<'a, Option<ServerRecord>> {
        self.access(|tables| tables.servers.get(id).cloned())
    }

    fn forget_server<'a>(&'a self, id: &'a SourceId) -> StoreFuture<'a, bool> {
        self.access(|tables| {
            tables.definitions.remove(id);
            tables.servers.remove(id).is_some()
        })
    }

    fn put_definition<'a>(
        &'a self,
        server: &'a SourceId,
        definition: &'a StoredDefinition,
    ) -> StoreFuture<'a, ()> {
        self.access(|tables| {
            let definitions = tables.definitions.entry(server.clone()).or_default();
            let key = (definition.tool.clone(), definition.hash);
            definitions.entry(key).or_insert_with(|| definition.clone()).approved |= definition.approved;
        })
    }

    fn definitions<'a>(&'a self, server: &'a SourceId) -> StoreFuture<'a, Vec<StoredDefinition>> {
        self.access(|tables| {
            let definitions = tables.definitions.get(server).into_iter().flat_map(BTreeMap::values);
            let mut definitions: Vec<StoredDefinition> = definitions.cloned().collect();
            definitions.sort_by(|one, other| {
                (&one.tool, one.first_seen_at, one.hash).cmp(&(&other.tool, other.first_seen_at, other.hash))
            });
            definitions
        })
    }

    fn put_trust<'a>(&'a self, decision: &'a TrustDecision) -> StoreFuture<'a, ()> {
        self.access(|tables| {
            tables.trust.insert((decision.kind.clone(), decision.subject.clone()), decision.clone());
        })
    }

    fn remove_trust<'a>(&'a self, kind: &'a str, subject: &'a str) -> StoreFuture<'a, bool> {
        self.access(|tables| tables.trust.remove(&(kind.to_owned(), subject.to_owned())).is_some())
    }

    fn trust_decisions<'a>(&'a self, kind: &'a str) -> StoreFuture<'a, Vec<TrustDecision>> {
        self.access(|tables| {
            tables.trust.values().filter(|decision| decision.kind == kind).cloned().collect()
        })
    }
}
