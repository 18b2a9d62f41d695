//! Requests approvals for calls, and applies decisions made here or elsewhere.

use toolyard_core::{ApprovalId, ApprovalRecord};

use super::{
    super::{
        outcome::TaskOutcome,
        run_driver::RunDriver,
        steps::{argument_view::ArgumentView, prepare::PreparedCall},
    },
    store::{Decision, PendingApproval, PendingDecisions, close, decide, poll_decisions, store_request},
};
use crate::{AgentError, ApprovalDetails, ApprovalRequest, ApprovalState, RunEvent, StepRun};

impl RunDriver<'_> {
    /// Requests an approval; the watcher is asked as soon as the request is stored.
    pub(in crate::driver) fn request_approval(
        &mut self,
        step: StepRun,
        prepared: &PreparedCall,
        view: &ArgumentView,
        pending: Option<ApprovalId>,
    ) {
        let id = step.step.id.clone();
        let tool = &prepared.tool;
        let mut notes = prepared.notes.clone();
        notes.extend(view.notes.iter().cloned());
        if !prepared.disclosed.is_empty() {
            notes.push(format!(
                "the arguments may contain non-public data ({}) and may leave this machine",
                prepared.disclosed
            ));
        }
        let request = ApprovalRequest {
            // Set once the request is stored.
            id: pending.unwrap_or(ApprovalId(0)),
            step: id.clone(),
            tool: step.step.tool_type.clone(),
            source: tool.source.as_ref().map(ToString::to_string).unwrap_or_default(),
            arguments: view.text.clone(),
            effects: tool.effects.clone(),
            notes,
        };
        self.in_flight.approvals.insert(id.clone());
        if pending.is_some() {
            self.queue_decision(request);
            return;
        }
        let pending = PendingApproval {
            text: request_text(&request, prepared),
            request,
            tool: tool.identity.clone(),
            call: prepared.approval_subject.clone(),
        };
        let context = self.context.clone();
        self.queue(async move {
            let outcome = store_request(&context, &step, pending).await;
            TaskOutcome::ApprovalRequested { step: id, outcome }
        });
    }

    fn queue_decision(&mut self, request: ApprovalRequest) {
        let context = self.context.clone();
        self.queue(async move {
            let outcome = decide(&context, &request).await.map_err(AgentError::Approvals);
            TaskOutcome::ApprovalDecided { step: request.step, outcome }
        });
    }

    pub(in crate::driver) fn handle_approval_request(
        &mut self,
        step: String,
        pending: PendingApproval,
    ) -> Result<(), AgentError> {
        let PendingApproval { request, text, tool, call } = pending;
        let previous = self.run.step(&step).map(|step| step.approval.clone());
        if let Some(ApprovalState::Requested { id: previous, .. }) = previous
            && previous != request.id
        {
            // Closing denies the old request. It is closed only after the new one is logged, because after a crash in
            // between the run would take this for an approver's denial.
            let context = self.context.clone();
            self.queue(async move {
                close(&context, previous, "superseded").await;
                TaskOutcome::HousekeepingDone
            });
        }
        let details = Some(Box::new(ApprovalDetails {
            effects: request.effects.clone(),
            arguments: request.arguments.clone(),
            notes: request.notes.clone(),
        }));
        self.record(RunEvent::ApprovalRequested {
            step,
            approval_id: request.id,
            text,
            tool,
            call,
            details,
        })?;
        self.queue_decision(request);
        Ok(())
    }

    pub(in crate::driver) fn handle_approval_decision(
        &mut self,
        step: String,
        decision: Option<Decision>,
    ) -> Result<(), AgentError> {
        self.in_flight.approvals.remove(&step);
        let approval = self.run.step(&step).map(|step| &step.approval);
        if !matches!(approval, Some(ApprovalState::Requested { .. })) {
            // A decision made elsewhere was first.
            return Ok(());
        }
        match decision {
            Some(decision) => self.record(decision.into_event(step)),
            None => {
                self.in_flight.left_undecided.insert(step);
                Ok(())
            }
        }
    }

    /// Applies decisions made elsewhere while the watcher is still being asked.
    pub(in crate::driver) fn apply_stored_decisions(
        &mut self,
        records: &[ApprovalRecord],
    ) -> Result<(), AgentError> {
        for (step, id) in PendingDecisions::of(&self.run).approvals {
            let record = records.iter().find(|record| record.id == id);
            if let Some(decision) = record.and_then(Decision::of) {
                self.in_flight.approvals.remove(&step);
                self.record(decision.into_event(step))?;
            }
        }
        Ok(())
    }

    /// Closes the requests of a run that has finished.
    pub(in crate::driver) async fn close_requests(&mut self) {
        for (_, id) in &PendingDecisions::of(&self.run).approvals {
            close(&self.context, *id, "end of run").await;
        }
    }

    /// Applies the decisions made while no process drove the run.
    pub(in crate::driver) async fn apply_missed_decisions(&mut self) -> Result<(), AgentError> {
        let events = poll_decisions(&self.context, &PendingDecisions::of(&self.run)).await?;
        events.into_iter().try_for_each(|event| self.record(event))
    }
}

/// The stored text of a request. It names the definition, so that the request for a changed tool differs.
fn request_text(request: &ApprovalRequest, prepared: &PreparedCall) -> String {
    let hash_prefix = |hash: &str| hash.chars().take(8).collect::<String>();
    let mut text = format!(
        "may `{}` of {} be called ({}, definition {}, arguments {})? {}",
        request.tool,
        request.source,
        request.effects,
        hash_prefix(&prepared.tool.identity),
        hash_prefix(&prepared.approval_subject),
        request.arguments
    );
    for note in &request.notes {
        text.push_str("; note: ");
        text.push_str(note);
    }
    text
}
