//! Facts by step as a list: names that a model chose must not be names of fields, which are looked at when secrets are
//! taken out.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::StepFacts;

#[derive(Serialize)]
struct Shown<'a> {
    step: &'a str,
    facts: &'a StepFacts,
}

#[derive(Deserialize)]
struct Read {
    step: String,
    facts: StepFacts,
}

pub(super) fn serialize<S: Serializer>(
    facts: &BTreeMap<String, StepFacts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(facts.iter().map(|(step, facts)| Shown { step, facts }))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, StepFacts>, D::Error> {
    let list = Vec::<Read>::deserialize(deserializer)?;
    Ok(list.into_iter().map(|Read { step, facts }| (step, facts)).collect())
}
