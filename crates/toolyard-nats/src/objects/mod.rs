//! Messages over the NATS limit as objects of the JetStream object store.
//!
//! A writer publishes the chunks and the metadata of an object to its bucket, as clients of the object store do. A reader gets
//! the chunks from a consumer that stops after a few that are not acknowledged, so that a slow reader is never flooded.
//! Only gateways manage JetStream: they create buckets and consumers, and delete objects. A worker publishes to its bucket and
//! receives at its own subjects, because a NATS user that may create consumers or read a stream directly can make the server
//! publish to every subject of the account.

mod availability;
mod bucket;
mod error;
mod management;
mod reference;
mod store;

pub(crate) use bucket::{Bucket, ObjectRoute};
pub(crate) use reference::ObjectReference;
pub(crate) use store::{ObjectStore, StoredObject};
