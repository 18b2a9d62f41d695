//! Whether a run called a tool that may change something, and so whether its request may be repeated.

use std::collections::BTreeSet;

use toolyard_agent::{NO_TOOL, RunEnd, RunEvent, RunUpdate};

/// Follows the events of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct CallEffects {
    /// Steps of the plans whose call changes nothing.
    harmless_steps: BTreeSet<String>,
    /// Whether a call was started that may change something.
    pub(super) may_have_effect: bool,
}

impl CallEffects {
    pub(super) fn add(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Planned { plan, tools } => {
                for step in &plan.steps {
                    let is_read_only = tools.get(&step.id).is_some_and(|tool| tool.read_only);
                    if is_read_only || step.tool_type == NO_TOOL {
                        self.harmless_steps.insert(step.id.clone());
                    } else {
                        self.harmless_steps.remove(&step.id);
                    }
                }
            }
            RunEvent::StepStarted { step, .. } => {
                self.may_have_effect |= !self.harmless_steps.contains(step);
            }
            _ => {}
        }
    }
}

/// Whether a run of a client that waited for it failed because its model was unavailable, and called no tool that may change
/// something. The client is invited to repeat its request, so the run is not the answer to the repeated one.
pub(super) fn may_be_repeated(updates: impl IntoIterator<Item = RunUpdate>) -> bool {
    let (mut effects, mut is_awaited, mut is_outage) = (CallEffects::default(), false, false);
    for update in updates {
        let RunUpdate::Event { event, .. } = update else { continue };
        effects.add(&event);
        match event {
            RunEvent::Requested { request } => is_awaited = !request.detached,
            RunEvent::Ended { end, .. } => is_outage = is_model_outage(&end),
            _ => is_outage = false,
        }
    }
    is_awaited && is_outage && !effects.may_have_effect
}

/// Whether a run failed because its model was unavailable.
pub(super) fn is_model_outage(end: &RunEnd) -> bool {
    matches!(end, RunEnd::Failed { model_error: Some(kind), .. } if kind.is_outage())
}

#[cfg(test)]
mod tests {
    use toolyard_agent::{Permission, Plan, PlannedTool, RunRequest, Step};
    use toolyard_model::ModelErrorKind;

    use super::*;

    fn step(id: &str, tool: &str) -> Step {
        Step { id: id.to_owned(), tool_type: tool.to_owned(), ..Step::default() }
    }

    fn planned(read_only: bool) -> RunEvent {
        let tool = PlannedTool {
            source: None,
            read_only,
            permission: Permission::Allow,
            reads_private: true,
            open_world: true,
            notes: Vec::new(),
        };
        let plan = Plan { steps: vec![step("think", NO_TOOL), step("call", "tool")] };
        RunEvent::Planned { plan, tools: [("call".to_owned(), tool)].into() }
    }

    fn started(step: &str) -> RunEvent {
        let (step, arguments_preview) = (step.to_owned(), String::new());
        RunEvent::StepStarted {
            step,
            arguments_preview,
            target: String::new(),
            may_change: false,
            call: String::new(),
            notes: Vec::new(),
        }
    }

    fn failed(model_error: Option<ModelErrorKind>) -> RunEvent {
        RunEvent::ended(RunEnd::Failed { message: String::new(), hint: None, model_error })
    }

    fn is_repeatable(detached: bool, events: Vec<RunEvent>) -> bool {
        let request = RunRequest { detached, ..RunRequest::default() };
        let events = std::iter::once(RunEvent::Requested { request }).chain(events);
        may_be_repeated(events.map(|event| RunUpdate::Event { run: "01J".into(), number: 0, event }))
    }

    #[test]
    fn a_request_may_be_repeated_after_an_outage_before_anything_was_changed() {
        let outage = || failed(Some(ModelErrorKind::Unreachable));
        assert!(is_repeatable(false, vec![outage()]));
        assert!(is_repeatable(false, vec![planned(true), started("think"), started("call"), outage()]));
        assert!(!is_repeatable(false, vec![planned(false), started("call"), outage()]));
        assert!(!is_repeatable(false, vec![planned(true), planned(false), started("call"), outage()]));
        assert!(!is_repeatable(false, vec![started("nobody knows"), outage()]));
        assert!(!is_repeatable(true, vec![outage()]), "the client knows the run and can follow it");
        for other in [None, Some(ModelErrorKind::ContextOverflow), Some(ModelErrorKind::Unauthorized)] {
            assert!(!is_repeatable(false, vec![failed(other)]), "{other:?}");
        }
        assert!(!is_repeatable(false, vec![outage(), RunEvent::Resumed { owner: String::new() }]));
    }
}
