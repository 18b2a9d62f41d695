//! What ended, and what that means for the run.

use toolyard_core::{ErrorKind, ResultForm, SourceId, ToolError};
use toolyard_model::{ModelError, ModelReply, Usage};

use super::{
    call::{Purpose, call, learn},
    caps::cap_on_call,
    persons::{Asked, Decided},
    prepare::{Prepared, Unprepared, Verdict, verdict},
    session::Session,
    thought::think,
};
use crate::{AgentError, ModelTask, Phase, RunEvent, RunNews, StepEnd, StepRun, Task, Verification};

/// Larger values are let go of as soon as nobody waits for them.
pub(super) const LARGE: usize = 64 << 10;

/// Something under way ended.
#[derive(Debug)]
pub(super) enum Happened {
    Prepared {
        step: String,
        outcome: Result<Box<Prepared>, Unprepared>,
    },
    Called {
        step: String,
        outcome: Box<CallEnd>,
        milliseconds: u64,
    },
    Looked {
        step: String,
        verification: Verification,
    },
    Thought {
        task: ModelTask,
        outcome: Result<ModelReply, ModelError>,
        /// What was told of it while it was written.
        said: String,
        milliseconds: u64,
    },
    Asked {
        step: String,
        outcome: Result<Box<Asked>, AgentError>,
    },
    Decided {
        step: String,
        outcome: Result<Option<Decided>, AgentError>,
    },
    Heard {
        outcome: Result<Vec<RunEvent>, AgentError>,
    },
    /// Something was remembered; nothing follows from it.
    Learned,
}

/// What came of a call.
#[derive(Debug)]
pub(super) enum CallEnd {
    Done {
        source: Option<SourceId>,
        preview: String,
        size: usize,
        /// What its value looks like, if that is worth remembering.
        form: Option<String>,
        verification: Verification,
    },
    Failed(ToolError),
    /// There is no such tool, and nobody stands in for it.
    NoTool(ToolError),
}

impl Session<'_> {
    pub(super) fn take(&mut self, happened: Happened) -> Result<(), AgentError> {
        match happened {
            Happened::Prepared { step, outcome } => {
                self.under_way.persons.remove(&step);
                match outcome {
                    Ok(prepared) => self.prepared(&step, prepared),
                    Err(unprepared) => self.unprepared(&step, unprepared),
                }
            }
            Happened::Called { step, outcome, milliseconds } => {
                self.under_way.calls.remove(&step);
                self.called(&step, *outcome, milliseconds)
            }
            Happened::Looked { step, verification } => {
                self.under_way.looks.remove(&step);
                self.note(RunEvent::Verified { step, verification })
            }
            Happened::Thought { task, outcome, said, milliseconds } => {
                self.said.push_str(&said);
                self.thought(task, outcome, milliseconds)
            }
            Happened::Asked { step, outcome } => self.asked(step, *outcome?),
            Happened::Decided { step, outcome } => self.decided(step, outcome?),
            Happened::Learned => Ok(()),
            Happened::Heard { outcome } => {
                let events = outcome?;
                self.under_way.hearing = false;
                // Whoever answered once may answer again before the run is laid down.
                self.under_way.heard_nothing = events.is_empty();
                events.into_iter().try_for_each(|event| self.note(event))
            }
        }
    }

    fn thought(
        &mut self,
        task: ModelTask,
        outcome: Result<ModelReply, ModelError>,
        milliseconds: u64,
    ) -> Result<(), AgentError> {
        self.under_way.models.remove(&task);
        match outcome {
            Ok(mut reply) => {
                reply.usage = self.priced(reply.usage);
                self.note(RunEvent::ModelAnswered { task, reply, milliseconds })?;
            }
            Err(error) => {
                let usage = self.priced(error.used());
                let (message, hint) = (error.to_string(), error.hint);
                self.note(RunEvent::ModelFailed { task, message, hint, usage })?;
            }
        }
        self.context.watcher.see(&RunNews::Spent { usage: self.run.spent().usage });
        Ok(())
    }

    /// Tokens that were counted here have no price yet.
    fn priced(&self, usage: Usage) -> Usage {
        match usage.cost_micros {
            0 => Usage { cost_micros: self.context.parts.model.cost(&usage), ..usage },
            _ => usage,
        }
    }

    fn unprepared(&mut self, id: &str, unprepared: Unprepared) -> Result<(), AgentError> {
        self.under_way.calls.remove(id);
        let Unprepared { message, kind } = unprepared;
        let outcome = StepEnd::Failed { message, hint: None, kind: Some(kind) };
        self.note(RunEvent::StepEnded { step: id.to_owned(), outcome, milliseconds: 0 })
    }

    /// A call could be made: decides by what is known now whether it is.
    fn prepared(&mut self, id: &str, prepared: Box<Prepared>) -> Result<(), AgentError> {
        let Some(step) = self.run.step(id).cloned() else { return Ok(()) };
        let verdict = verdict(&self.run, &step, &prepared);
        let has_its_turn = self.under_way.calls.contains_key(id);
        if verdict != Verdict::Start || self.draining.is_some() {
            self.under_way.calls.remove(id);
        }
        if self.draining.is_some() {
            return Ok(());
        }
        match verdict {
            Verdict::Start if has_its_turn => self.start_call(step, prepared),
            // It was asked about, and the rules allow it by now: it takes its turn like others.
            Verdict::Start => {
                let (step, by) = (step.step.id, "rules".to_owned());
                self.note(RunEvent::ApprovalGiven { step, allowed: true, always: false, by })
            }
            Verdict::Ask(question) => {
                self.ask_person(step, &prepared, question);
                Ok(())
            }
            Verdict::Deny => {
                let outcome = StepEnd::Denied { by: "rules".to_owned() };
                self.note(RunEvent::StepEnded { step: step.step.id, outcome, milliseconds: 0 })
            }
            Verdict::Rehearse => {
                self.started(&step, prepared.shown, String::new(), prepared.notes)?;
                let outcome = StepEnd::Rehearsed;
                self.note(RunEvent::StepEnded { step: step.step.id, outcome, milliseconds: 0 })
            }
        }
    }

    /// A step begins, unless it was begun before.
    pub(super) fn started(
        &mut self,
        step: &StepRun,
        shown_arguments: String,
        call: String,
        notes: Vec<String>,
    ) -> Result<(), AgentError> {
        if step.phase != Phase::Waiting {
            return Ok(());
        }
        self.note(RunEvent::StepStarted { step: step.step.id.clone(), shown_arguments, call, notes })
    }

    fn start_call(&mut self, step: StepRun, prepared: Box<Prepared>) -> Result<(), AgentError> {
        if step.phase == Phase::Waiting {
            if let Some(cap) = cap_on_call(&self.run, &prepared.call) {
                self.under_way.calls.remove(&step.step.id);
                self.drain(cap);
                return Ok(());
            }
            let (shown, call) = (prepared.shown.clone(), prepared.call.clone());
            self.started(&step, shown, call, prepared.notes.clone())?;
        }
        let purpose = Purpose::of(&self.run, &self.context.parts.config.name);
        let earlier = self.earlier(&step);
        self.queue(call(self.context.clone(), step, prepared, purpose, earlier));
        Ok(())
    }

    /// What other steps of the same tool with the same arguments brought, to compare with.
    pub(super) fn earlier(&self, step: &StepRun) -> Vec<(String, String)> {
        let same = |other: &&StepRun| {
            other.step.id != step.step.id
                && other.step.tool_type == step.step.tool_type
                && other.step.arguments == step.step.arguments
        };
        let shown = |other: &StepRun| match &other.phase {
            Phase::Ended(StepEnd::Done { preview, .. }) => Some((other.step.id.clone(), preview.clone())),
            _ => None,
        };
        self.run.steps().iter().filter(same).filter_map(shown).collect()
    }

    fn called(&mut self, id: &str, outcome: CallEnd, milliseconds: u64) -> Result<(), AgentError> {
        let step = id.to_owned();
        match outcome {
            CallEnd::Done { source, preview, size, form, verification } => {
                let learned =
                    form.zip(source.clone()).zip(self.run.step(id)).map(|((form, source), step)| {
                        ResultForm { tool: step.step.tool_type.clone(), source, form }
                    });
                let outcome = StepEnd::Done { source, preview, size };
                self.note(RunEvent::StepEnded { step: step.clone(), outcome, milliseconds })?;
                self.note(RunEvent::Verified { step, verification })?;
                if let Some(form) = learned.filter(|_| self.context.parts.forms.is_some()) {
                    self.queue(learn(self.context.clone(), form));
                }
                self.let_go_of_values_before(id);
                Ok(())
            }
            CallEnd::NoTool(error) if self.draining.is_some() => {
                self.note(RunEvent::StepEnded { step, outcome: ended_by(&error), milliseconds })
            }
            CallEnd::NoTool(_) => self.reason_instead(step),
            CallEnd::Failed(error) => {
                self.note(RunEvent::StepEnded { step, outcome: ended_by(&error), milliseconds })
            }
        }
    }

    /// The last of name, capability, reasoning.
    fn reason_instead(&mut self, step: String) -> Result<(), AgentError> {
        let task = ModelTask::Reason { step: step.clone() };
        if let Some(cap) = self.cap_on(&Task::Reason(step)) {
            self.drain(cap);
            return Ok(());
        }
        self.under_way.models.insert(task.clone());
        self.queue(think(self.context.clone(), self.run.clone(), task));
        Ok(())
    }

    /// Large values that only this step still waited for; they can be read from the journal again.
    fn let_go_of_values_before(&self, id: &str) {
        let Some(step) = self.run.step(id) else { return };
        for other in step.step.dependencies.iter().filter_map(|name| self.run.step(name)) {
            let large = other.size() > LARGE;
            let needs_it = |later: &&StepRun| later.step.dependencies.contains(&other.step.id);
            let over = self.run.steps().iter().filter(needs_it).all(|later| later.phase.is_ended());
            if large && over && !other.is_reasoning() {
                self.context.values.forget(&other.journal_name());
            }
        }
    }
}

/// How a step ends whose call failed.
pub(super) fn ended_by(error: &ToolError) -> StepEnd {
    match error.kind() {
        ErrorKind::OutcomeUnknown => StepEnd::Unknown { message: error.to_string() },
        kind => StepEnd::Failed {
            message: error.to_string(),
            hint: error.hint().map(str::to_owned),
            kind: Some(kind),
        },
    }
}
