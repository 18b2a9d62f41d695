//! What only gateways do with JetStream: create buckets and consumers, delete objects.
//!
//! These are four requests of the JetStream API in JSON. The client's `jetstream` feature is not used for them: its object
//! store needs more permissions, follows links to other buckets, and leaves a marker for each deleted object.

use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::objects::{bucket::Bucket, error::ObjectError, reference::ObjectName};

/// How long a request to JetStream may take. On a slow connection, the response waits behind chunks.
const API_TIMEOUT: Duration = Duration::from_secs(10);
/// An object that nobody read or deleted, because a process died, is deleted after this time.
const MAX_OBJECT_AGE: Duration = Duration::from_secs(600);
/// All objects of a bucket at one time. Messages that find no room are sent in frames.
const MAX_BUCKET_BYTES: u64 = 256 << 20;
/// Chunks that are under way to a reader.
const MAX_UNREAD_CHUNKS: u64 = 4;
/// A consumer that nobody listens to ends after this time.
const CONSUMER_LIFETIME: Duration = Duration::from_secs(120);
/// JetStream's code for a bucket that exists with other settings, which are those of the operator.
const STREAM_NAME_IN_USE: u64 = 10_058;

/// What JetStream answers to requests and publications.
#[derive(Debug, Deserialize)]
pub(super) struct JetStreamResponse {
    pub(super) error: Option<JetStreamError>,
    /// The stream that stored a publication.
    pub(super) stream: Option<String>,
    /// Messages that a new consumer will deliver.
    #[serde(default)]
    num_pending: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct JetStreamError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    pub(super) description: String,
}

/// Creates a bucket if there is none. One that the operator created stays as it is.
pub(super) async fn create_bucket(client: &Client, bucket: &Bucket) -> Result<(), ObjectError> {
    let stream = bucket.stream();
    let config = json!({
        "name": stream,
        "description": "messages of Toolyard that are longer than a NATS message",
        "subjects": bucket.subjects(),
        "storage": "memory",
        "num_replicas": 1,
        "discard": "new",
        "max_age": nanoseconds(MAX_OBJECT_AGE),
        "max_bytes": MAX_BUCKET_BYTES,
        "allow_rollup_hdrs": true,
        "allow_direct": true,
    });
    let created = request(client, bucket, format!("$JS.API.STREAM.CREATE.{stream}"), &config).await?;
    match created.error {
        Some(error) if error.err_code != STREAM_NAME_IN_USE => {
            Err(ObjectError::Refused { bucket: bucket.clone(), reason: error.description })
        }
        _ => Ok(()),
    }
}

/// Has the chunks of an object delivered to a subject, a few at a time, as soon as somebody listens there.
pub(super) async fn create_consumer(
    client: &Client,
    bucket: &Bucket,
    object: ObjectName,
    recipient: &str,
) -> Result<(), ObjectError> {
    let (stream, chunks) = (bucket.stream(), bucket.chunks(object));
    let request_subject = format!("$JS.API.CONSUMER.CREATE.{stream}.{object}.{chunks}");
    let config = json!({
        "stream_name": stream,
        "config": {
            "name": object.to_string(),
            "deliver_subject": recipient,
            "filter_subject": chunks,
            "deliver_policy": "all",
            "replay_policy": "instant",
            "ack_policy": "explicit",
            "ack_wait": nanoseconds(CONSUMER_LIFETIME),
            "max_deliver": 1,
            "max_ack_pending": MAX_UNREAD_CHUNKS,
            "inactive_threshold": nanoseconds(CONSUMER_LIFETIME),
            "mem_storage": true,
            "num_replicas": 1,
        },
    });
    let created = request(client, bucket, request_subject, &config).await?;
    match created.error {
        Some(error) => Err(ObjectError::Refused { bucket: bucket.clone(), reason: error.description }),
        None if created.num_pending == 0 => Err(ObjectError::Missing(bucket.clone())),
        None => Ok(()),
    }
}

/// Deletes an object and its consumer. What cannot be deleted goes when its time is over.
pub(super) async fn delete_object(client: &Client, bucket: &Bucket, object: ObjectName) {
    let stream = bucket.stream();
    let purge = format!("$JS.API.STREAM.PURGE.{stream}");
    let (chunks, metadata) =
        (json!({"filter": bucket.chunks(object)}), json!({"filter": bucket.metadata(object)}));
    let deleted = tokio::join!(
        request(client, bucket, format!("$JS.API.CONSUMER.DELETE.{stream}.{object}"), &Value::Null),
        request(client, bucket, purge.clone(), &chunks),
        request(client, bucket, purge, &metadata),
    );
    if let (_, Err(error), _) | (_, _, Err(error)) = deleted {
        tracing::debug!(%bucket, %error, "an object may stay in its bucket until its time is over");
    }
}

async fn request(
    client: &Client,
    bucket: &Bucket,
    subject: String,
    body: &Value,
) -> Result<JetStreamResponse, ObjectError> {
    let payload = if body.is_null() { String::new() } else { body.to_string() };
    let response = tokio::time::timeout(API_TIMEOUT, client.request(subject, payload.into())).await;
    let response = response.map_err(|_elapsed| ObjectError::NoResponse(bucket.clone()))?;
    let response = response.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => ObjectError::NoBucket(bucket.clone()),
        RequestErrorKind::TimedOut => ObjectError::NoResponse(bucket.clone()),
        _ => ObjectError::not_connected(bucket, &error),
    })?;
    serde_json::from_slice(&response.payload)
        .map_err(|error| ObjectError::Refused { bucket: bucket.clone(), reason: error.to_string() })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
