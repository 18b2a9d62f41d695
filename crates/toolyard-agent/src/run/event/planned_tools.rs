//! Serializes the tools of a plan as a list of `{"step", "tool"}`: step ids are chosen by a model and must not become
//! field names, because redaction treats fields such as `token` as secrets.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PlannedTool;

#[derive(Serialize)]
struct EntryRef<'a> {
    step: &'a str,
    tool: &'a PlannedTool,
}

#[derive(Deserialize)]
struct Entry {
    step: String,
    tool: PlannedTool,
}

pub(super) fn serialize<S: Serializer>(
    tools: &BTreeMap<String, PlannedTool>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tools.iter().map(|(step, tool)| EntryRef { step, tool }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, PlannedTool>, D::Error> {
    let list = Vec::<Entry>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Entry { step, tool }| (step, tool)).collect())
}
