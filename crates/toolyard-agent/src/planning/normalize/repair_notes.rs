//! Notes about repairs of a plan, for approvers and the log.

use std::collections::BTreeMap;

/// Notes per step; a tool has hardly more parameters.
const MAX_NOTES: usize = 40;

/// Notes about the repairs of a plan, by step id.
pub type RepairNotes = BTreeMap<String, Vec<String>>;

pub(super) fn add_note(notes: &mut RepairNotes, step: &str, note: String) {
    let step_notes = notes.entry(step.to_owned()).or_default();
    if step_notes.len() < MAX_NOTES {
        step_notes.push(note);
    }
}
