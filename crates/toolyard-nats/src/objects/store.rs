//! [`ObjectStore`]: writes messages as objects, and reads those of others.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_nats::{Client, Message, StatusCode, Subject, Subscriber};
use aws_lc_rs::digest::{Context, SHA256};
use base64::{Engine as _, engine::general_purpose::URL_SAFE};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::{
    connection::NatsConnection,
    limits::MAX_MESSAGE_LENGTH,
    objects::{
        availability::BucketStates,
        bucket::{Bucket, ObjectRoute},
        error::ObjectError,
        management::{self, JetStreamResponse},
        reference::{DIGEST_LENGTH, ObjectName, ObjectReference},
    },
};

/// The length of a chunk, as clients of the object store choose it.
const CHUNK_LENGTH: usize = 128 << 10;
/// Chunks that are published before the first of them is acknowledged.
const MAX_UNACKNOWLEDGED_CHUNKS: usize = 8;
/// How long the check of a bucket may take. Without permission there is no response.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an acknowledgement may take. Without permission there is none.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long writing an object may take. A writer that gives up must have time left to send frames.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the next chunk of an object may take.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(10);

/// The object store as a process uses it.
#[derive(Debug)]
pub(crate) struct ObjectStore {
    connection: NatsConnection,
    /// Chunks and acknowledgements arrive at subjects that begin with this.
    own_subjects: String,
    /// Whether this process is a gateway, which creates buckets and deletes objects.
    is_gateway: bool,
    states: BucketStates,
}

/// An object that this process has written or must read. A gateway deletes it when this value is dropped.
#[derive(Debug)]
pub(crate) struct StoredObject {
    reference: ObjectReference,
    deletion: Option<(Client, Bucket)>,
}

impl StoredObject {
    pub(crate) fn reference(&self) -> &ObjectReference {
        &self.reference
    }

    /// Leaves the deletion to the reader.
    pub(crate) fn leave_to_reader(mut self) {
        self.deletion = None;
    }
}

impl Drop for StoredObject {
    fn drop(&mut self) {
        let Some((client, bucket)) = self.deletion.take() else { return };
        let name = self.reference.name;
        // Without a runtime the process ends, and the object goes when its time is over.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { management::delete_object(&client, &bucket, name).await });
        }
    }
}

impl ObjectStore {
    /// The store of a gateway.
    pub(crate) fn of_gateway(connection: NatsConnection, own_subjects: String) -> Self {
        Self { connection, own_subjects, is_gateway: true, states: BucketStates::default() }
    }

    /// The store of a worker, which has no permissions for JetStream but to publish to its bucket.
    pub(crate) fn of_worker(connection: NatsConnection, own_subjects: String) -> Self {
        Self { connection, own_subjects, is_gateway: false, states: BucketStates::default() }
    }

    /// Whether the other side may send objects. A worker does nothing to receive them; a gateway must have checked the bucket.
    pub(crate) fn can_read(&self, bucket: &Bucket) -> bool {
        !self.is_gateway || self.states.is_usable(bucket, self.connects()) == Some(true)
    }

    /// Begins to check a bucket, if nothing is known about it on this connection.
    pub(crate) fn begin_check(self: &Arc<Self>, bucket: &Bucket) {
        if self.is_gateway && self.states.is_usable(bucket, self.connects()).is_none() {
            let (store, bucket) = (Arc::clone(self), bucket.clone());
            tokio::spawn(async move { store.is_usable(&bucket).await });
        }
    }

    /// Whether messages can be sent through a bucket, checked once for each connection.
    pub(crate) async fn is_usable(&self, bucket: &Bucket) -> bool {
        if !self.is_gateway {
            // Only a gateway can check.
            return self.states.is_usable(bucket, self.connects()) != Some(false);
        }
        let locks = self.states.locks(bucket);
        let _check = locks.check.lock().await;
        let connects = self.connects();
        if let Some(is_usable) = self.states.is_usable(bucket, connects) {
            return is_usable;
        }
        let check = tokio::time::timeout(CHECK_TIMEOUT, self.check(bucket)).await;
        let result = check.unwrap_or_else(|_elapsed| Err(ObjectError::NoResponse(bucket.clone())));
        match &result {
            Ok(()) => self.states.set_usable(bucket, connects),
            Err(error) => self.states.set_unusable(bucket, connects, error),
        }
        result.is_ok()
    }

    /// Creates a bucket if there is none, and sends a small object through it: everything that a message needs.
    async fn check(&self, bucket: &Bucket) -> Result<(), ObjectError> {
        management::create_bucket(self.connection.client(), bucket).await?;
        let object = self.write(bucket, &Bytes::from_static(b"check")).await?;
        self.read(bucket, object.reference()).await?;
        Ok(())
    }

    /// Writes a message for the other side of an exchange. None if it cannot pass through the object store now.
    pub(crate) async fn put(&self, route: &ObjectRoute, message: &Bytes) -> Option<StoredObject> {
        let bucket = &route.bucket;
        if message.len() > MAX_MESSAGE_LENGTH || !self.is_usable(bucket).await {
            return None;
        }
        let connects = self.connects();
        let writing = tokio::time::timeout(WRITE_TIMEOUT, self.put_for(route, message));
        let written = writing.await.unwrap_or_else(|_elapsed| Err(ObjectError::NoResponse(bucket.clone())));
        written.map_err(|error| self.states.set_unusable(bucket, connects, &error)).ok()
    }

    async fn put_for(&self, route: &ObjectRoute, message: &Bytes) -> Result<StoredObject, ObjectError> {
        let object = self.write(&route.bucket, message).await?;
        if let Some(worker_subjects) = &route.worker_subjects {
            let name = object.reference.name;
            let recipient = format!("{worker_subjects}.{name}");
            management::create_consumer(self.connection.client(), &route.bucket, name, &recipient).await?;
        }
        Ok(object)
    }

    async fn write(&self, bucket: &Bucket, message: &Bytes) -> Result<StoredObject, ObjectError> {
        let client = self.connection.client();
        let name = ObjectName::random().map_err(|_| ObjectError::NoRandomness)?;
        let length = message.len();
        let reference = ObjectReference {
            name,
            length: u64::try_from(length).unwrap_or(u64::MAX),
            digest: [0; DIGEST_LENGTH],
        };
        let (mut object, mut hash) = (self.own(bucket, &reference), Context::new(&SHA256));
        let mut writer = ChunkWriter::start(client, bucket, self.own_subject(name)).await?;
        let chunk_length = CHUNK_LENGTH.min(client.max_payload()).max(1);
        let subject = Subject::from(bucket.chunks(name));
        for start in (0..length).step_by(chunk_length) {
            let chunk = message.slice(start..length.min(start.saturating_add(chunk_length)));
            hash.update(&chunk);
            // The first one alone: without a bucket, nobody would get the others.
            let may_remain = if start == 0 { 0 } else { MAX_UNACKNOWLEDGED_CHUNKS };
            writer.publish(subject.clone(), chunk, may_remain).await?;
        }
        object.reference.digest = hash.finish().as_ref().try_into().map_err(|_| ObjectError::Mismatch)?;
        let metadata = json!({
            "name": name.to_string(),
            "bucket": bucket.to_string(),
            "nuid": name.to_string(),
            "size": length,
            "chunks": length.div_ceil(chunk_length),
            "digest": format!("SHA-256={}", URL_SAFE.encode(object.reference.digest)),
            "options": {"max_chunk_size": chunk_length},
        });
        writer.publish(bucket.metadata(name).into(), metadata.to_string().into(), 0).await?;
        Ok(object)
    }

    /// Reads a message that the other side of an exchange wrote. A gateway deletes it, also if this future is dropped.
    pub(crate) async fn get(&self, bucket: &Bucket, object: StoredObject) -> Result<Vec<u8>, ObjectError> {
        let read = self.read(bucket, object.reference()).await;
        if read.is_err() {
            // The bucket may be gone: a gateway checks it before the next exchange, and creates it again.
            self.states.forget(bucket);
        }
        read
    }

    async fn read(&self, bucket: &Bucket, reference: &ObjectReference) -> Result<Vec<u8>, ObjectError> {
        let length = usize::try_from(reference.length).unwrap_or(usize::MAX);
        if length > MAX_MESSAGE_LENGTH {
            return Err(ObjectError::TooLong);
        }
        let readers = self.states.locks(bucket).readers;
        // Never closed.
        let _place = readers.acquire().await;
        let client = self.connection.client();
        let own_subject = self.own_subject(reference.name);
        let subscribed = client.subscribe(own_subject.clone()).await;
        let mut chunks = subscribed.map_err(|error| ObjectError::not_connected(bucket, &error))?;
        if self.is_gateway {
            management::create_consumer(client, bucket, reference.name, &own_subject).await?;
        }
        let (mut message, mut hash) = (Vec::with_capacity(length.min(CHUNK_LENGTH)), Context::new(&SHA256));
        while message.len() < length {
            let incomplete = || ObjectError::Incomplete { received: message.len(), length };
            let next = tokio::time::timeout(CHUNK_TIMEOUT, chunks.next()).await;
            let chunk = next.ok().flatten().filter(|chunk| chunk.status.is_none()).ok_or_else(incomplete)?;
            if chunk.payload.len() > length.saturating_sub(message.len()) {
                return Err(ObjectError::Mismatch);
            }
            hash.update(&chunk.payload);
            message.extend_from_slice(&chunk.payload);
            if let Some(reply) = chunk.reply {
                let acknowledged = client.publish(reply, Bytes::from_static(b"+ACK")).await;
                acknowledged.map_err(|error| ObjectError::not_connected(bucket, &error))?;
            }
        }
        if hash.finish().as_ref() == reference.digest { Ok(message) } else { Err(ObjectError::Mismatch) }
    }

    /// Takes an object over: a gateway deletes it when the returned value is dropped.
    pub(crate) fn own(&self, bucket: &Bucket, reference: &ObjectReference) -> StoredObject {
        let deletion = self.is_gateway.then(|| (self.connection.client().clone(), bucket.clone()));
        StoredObject { reference: *reference, deletion }
    }

    fn own_subject(&self, object: ObjectName) -> String {
        format!("{}.{object}", self.own_subjects)
    }

    /// How often this process has connected to NATS.
    fn connects(&self) -> u64 {
        self.connection.client().statistics().connects.load(Ordering::Relaxed)
    }
}

/// Publishes chunks, and waits for their acknowledgements.
struct ChunkWriter<'a> {
    client: &'a Client,
    bucket: &'a Bucket,
    own_subject: Subject,
    acknowledgements: Subscriber,
    unacknowledged: usize,
}

impl<'a> ChunkWriter<'a> {
    async fn start(client: &'a Client, bucket: &'a Bucket, own_subject: String) -> Result<Self, ObjectError> {
        let own_subject = Subject::from(own_subject);
        let subscribed = client.subscribe(own_subject.clone()).await;
        let acknowledgements = subscribed.map_err(|error| ObjectError::not_connected(bucket, &error))?;
        Ok(Self { client, bucket, own_subject, acknowledgements, unacknowledged: 0 })
    }

    /// Publishes, and waits until at most so many publications are not acknowledged.
    async fn publish(
        &mut self,
        subject: Subject,
        payload: Bytes,
        may_remain: usize,
    ) -> Result<(), ObjectError> {
        let sent = self.client.publish_with_reply(subject, self.own_subject.clone(), payload).await;
        sent.map_err(|error| ObjectError::not_connected(self.bucket, &error))?;
        self.unacknowledged += 1;
        while self.unacknowledged > may_remain {
            let next = tokio::time::timeout(ACKNOWLEDGEMENT_TIMEOUT, self.acknowledgements.next()).await;
            let next = next.ok().flatten().ok_or_else(|| ObjectError::NoResponse(self.bucket.clone()))?;
            self.check(&next)?;
            self.unacknowledged -= 1;
        }
        Ok(())
    }

    fn check(&self, acknowledgement: &Message) -> Result<(), ObjectError> {
        let bucket = self.bucket.clone();
        if acknowledgement.status == Some(StatusCode::NO_RESPONDERS) {
            return Err(ObjectError::NoBucket(bucket));
        }
        let refused = |reason: String| ObjectError::Refused { bucket: self.bucket.clone(), reason };
        let response: JetStreamResponse =
            serde_json::from_slice(&acknowledgement.payload).map_err(|error| refused(error.to_string()))?;
        match response {
            JetStreamResponse { error: Some(error), .. } => Err(refused(error.description)),
            JetStreamResponse { stream: Some(stream), .. } if stream == self.bucket.stream() => Ok(()),
            _ => Err(refused("another stream has the subjects of the bucket".to_owned())),
        }
    }
}
