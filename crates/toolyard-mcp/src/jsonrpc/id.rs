//! [`RequestId`]: the id of a request that the other side sent.

use serde::{Deserialize, Serialize};
use toolyard_core::RawJson;

/// The id of an incoming request: a JSON number or string, kept as sent so that the response repeats it exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub RawJson);
