//! What clients read about a run that has no answer yet.

use toolyard_agent::{RunEvent, RunUpdate, StepEnd};
use toolyard_core::RunId;

const SUSPENDED_NOTICE_START: &str = "Waiting for approval: ";

/// Tells a client that its run is suspended. A model may read this, so it does not say how to give the approval.
pub(super) fn suspended_notice(run: &RunId, waiting_for: &[String]) -> String {
    let named = waiting_for.iter().map(|entry| match entry.parse::<i64>() {
        Ok(approval) => format!("approval {approval}"),
        Err(_) => entry.clone(),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let details = if named.is_empty() { String::new() } else { format!(" ({named})") };
    format!(
        "{SUSPENDED_NOTICE_START}a step would change something or pass data outside, and must be allowed first{details}. \
         The run continues after the decision (run {run})."
    )
}

/// The run that a message is about, if it ends with a [`suspended_notice`].
pub(super) fn run_of_suspended_notice(message: &str) -> Option<RunId> {
    let (_, notice) = message.trim_end().rsplit_once(SUSPENDED_NOTICE_START)?;
    let run = notice.strip_suffix(").")?.rsplit_once("(run ")?.1;
    let is_run_id = !run.is_empty() && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_run_id.then(|| RunId::from(run))
}

/// A line about progress of a run, or a piece of its model's reasoning.
pub(super) fn progress_line(update: &RunUpdate) -> Option<String> {
    let event = match update {
        RunUpdate::ReasoningDelta { text } => return Some(text.clone()),
        RunUpdate::Event { event, .. } => event,
        _ => return None,
    };
    match event {
        RunEvent::Planned { plan, .. } => {
            let steps = plan.steps.iter().map(|step| format!("{} ({})", step.id, step.tool_type));
            Some(format!("plan: {}\n", steps.collect::<Vec<_>>().join(", ")))
        }
        RunEvent::StepEnded { step, outcome, .. } => Some(match outcome {
            StepEnd::Done { .. } => format!("{step}: done\n"),
            StepEnd::Failed { message, .. } | StepEnd::Unknown { message } => format!("{step}: {message}\n"),
            StepEnd::Skipped { because } => format!("{step}: skipped, because {because} failed\n"),
            StepEnd::Denied { by } => format!("{step}: denied by {by}\n"),
            StepEnd::Simulated => format!("{step}: simulated\n"),
            _ => format!("{step}: ended\n"),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suspended_notice_names_the_run_and_no_way_to_approve_it() {
        let text = suspended_notice(&"01J".into(), &["step write".to_owned()]);
        assert!(text.starts_with(SUSPENDED_NOTICE_START) && text.contains("step write"), "{text}");
        for instruction in ["approve", "POST", "/runs", "toolyard", "--yes"] {
            assert!(!text.contains(instruction), "{text}");
        }
        let of_call = suspended_notice(&"01J".into(), &["2".to_owned(), "step 3".to_owned()]);
        assert!(of_call.contains("(approval 2, step 3)"), "{of_call}");
        assert_eq!(run_of_suspended_notice(&of_call), Some("01J".into()));
        assert_eq!(run_of_suspended_notice(&text), Some("01J".into()));
        assert_eq!(run_of_suspended_notice(&format!("Said before.\n\n{text}\n")), Some("01J".into()));
        for other in
            ["An answer (run 01J).", "Waiting for approval: well", "Waiting for approval: (run ../x).", ""]
        {
            assert_eq!(run_of_suspended_notice(other), None, "{other}");
        }
    }
}
