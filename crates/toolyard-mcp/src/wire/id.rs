//! The id of a request that the other side made, to be given back as it came.

use serde::{Deserialize, Serialize};
use toolyard_core::RawJson;

/// An id chosen by the other side: any JSON number or string, kept as its own text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub RawJson);
