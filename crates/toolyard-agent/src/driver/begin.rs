//! Begins what may be begun, and settles at once what needs no waiting.

use toolyard_core::SourceId;
use toolyard_model::{FinishReason, ModelReply};

use super::{
    call::look,
    caps::cap_on,
    persons::{Waiting, hear},
    prepare::{Wanted, prepare},
    saying::untold,
    session::{Draining, Session, reasoning},
    thinking::{self, Decision},
    thought::think,
};
use crate::{
    AgentError, Approval, Cap, ModelTask, Phase, PlanProblem, RunEnd, RunEvent, RunNews, StepEnd, StepRun,
    Task,
    planning::text::cleaned,
    schedule::{Lane, startable},
    step_value,
};

impl Session<'_> {
    /// Goes on until something must be waited for.
    pub(super) fn advance(&mut self) -> Result<(), AgentError> {
        while self.run.end().is_none() {
            if let Some(draining) = self.draining {
                return self.drained(draining);
            }
            let tasks = self.run.tasks();
            let mut settled = false;
            for task in &tasks {
                settled |= self.settle(task)?;
            }
            if settled {
                continue;
            }
            self.begin_all(&tasks)?;
            if self.draining.is_none() {
                return if self.is_stuck() { self.wait_for_persons() } else { Ok(()) };
            }
        }
        Ok(())
    }

    fn drained(&mut self, draining: Draining) -> Result<(), AgentError> {
        match draining {
            Draining::Cap(cap) if self.under_way.is_idle() => {
                let end = self.capped(cap);
                self.end(end)
            }
            Draining::Cap(_) | Draining::Stop | Draining::LayDown => Ok(()),
        }
    }

    /// Nothing is under way, and nobody is being asked.
    fn is_stuck(&self) -> bool {
        self.under_way.is_idle() && self.under_way.persons.is_empty() && !self.under_way.hearing
    }

    /// Whoever is elsewhere may have answered meanwhile; else the run is laid down.
    fn wait_for_persons(&mut self) -> Result<(), AgentError> {
        if self.under_way.heard_nothing {
            return self.end(RunEnd::Suspended { waiting: self.run.waiting() });
        }
        self.under_way.hearing = true;
        self.queue(hear(self.context.clone(), Waiting::of(&self.run)));
        Ok(())
    }

    /// What can be done about a task without waiting; whether something was.
    fn settle(&mut self, task: &Task) -> Result<bool, AgentError> {
        match task {
            Task::Plan { .. } => self.read_plan(task),
            Task::Reason(step) | Task::Call(step) => self.read_reasoning(step),
            Task::RepairStep(step) => self.read_repair(step),
            Task::Judge(step) => self.read_judgement(step),
            Task::Answer => self.read_answer(),
            Task::Deny(step) => self.deny(step).map(|()| true),
            Task::Skip { step, because } => {
                let outcome = StepEnd::Skipped { because: because.clone() };
                self.over(step, outcome).map(|()| true)
            }
            Task::Rehearse(step) => self.over(step, StepEnd::Rehearsed).map(|()| true),
            Task::GiveUp => self.give_up().map(|()| true),
            Task::End(end) => self.end(end.clone()).map(|()| true),
            Task::Verify(_) | Task::AskPerson(_) => Ok(false),
        }
    }

    fn over(&mut self, step: &str, outcome: StepEnd) -> Result<(), AgentError> {
        self.note(RunEvent::StepEnded { step: step.to_owned(), outcome, milliseconds: 0 })
    }

    fn deny(&mut self, step: &str) -> Result<(), AgentError> {
        let by = match self.run.step(step).map(|step| &step.approval) {
            Some(Approval::Refused { by }) => by.clone(),
            _ => "a person".to_owned(),
        };
        self.over(step, StepEnd::Denied { by })
    }

    /// Begins everything that is not under way and may be.
    fn begin_all(&mut self, tasks: &[Task]) -> Result<(), AgentError> {
        for task in tasks {
            match task {
                Task::Call(_) => {}
                Task::Verify(step) => self.begin_look(step),
                Task::AskPerson(step) => self.begin_asking(step),
                task => self.begin_thought(task)?,
            }
        }
        let ready = tasks.iter().filter_map(|task| match task {
            Task::Call(step) if !self.is_under_way(step) => self.run.step(step),
            _ => None,
        });
        let ready: Vec<StepRun> = ready.cloned().collect();
        let lanes: Vec<Lane<'_>> = ready.iter().map(lane).collect();
        let busy = self.under_way.calls.iter().map(|(step, (source, writes))| Lane {
            step,
            source: source.as_deref(),
            writes: *writes,
        });
        let begin = startable(&lanes, &busy.collect::<Vec<_>>());
        for step in ready.iter().filter(|step| begin.contains(&step.step.id.as_str())) {
            self.begin_call(step);
        }
        Ok(())
    }

    fn is_under_way(&self, step: &str) -> bool {
        let reasoned = ModelTask::Reason { step: step.to_owned() };
        self.under_way.calls.contains_key(step)
            || self.under_way.models.contains(&reasoned)
            || self.under_way.persons.contains(step)
    }

    fn begin_call(&mut self, step: &StepRun) {
        let lane = lane(step);
        let busy = (lane.source.map(str::to_owned), lane.writes);
        self.under_way.calls.insert(step.step.id.clone(), busy);
        self.queue(prepare(self.context.clone(), Wanted::of(&self.run, step)));
    }

    fn begin_look(&mut self, id: &str) {
        if let Some(step) = self.run.step(id).filter(|_| !self.under_way.looks.contains(id)).cloned() {
            self.under_way.looks.insert(id.to_owned());
            let earlier = self.earlier(&step);
            self.queue(look(self.context.clone(), step, earlier));
        }
    }

    fn begin_asking(&mut self, id: &str) {
        let asked = self.under_way.persons.contains(id) || self.under_way.nobody.contains(id);
        if let Some(step) = self.run.step(id).filter(|_| !asked) {
            let wanted = Wanted::of(&self.run, step);
            self.under_way.persons.insert(id.to_owned());
            self.queue(prepare(self.context.clone(), wanted));
        }
    }

    fn begin_thought(&mut self, task: &Task) -> Result<(), AgentError> {
        let Some(wanted) = task.model_task().filter(|wanted| !self.under_way.models.contains(wanted)) else {
            return Ok(());
        };
        if let Some(cap) = self.cap_on(task) {
            self.drain(cap);
            return Ok(());
        }
        if let Task::Reason(id) = task
            && let Some(step) = self.run.step(id).cloned()
        {
            self.started(&step, String::new(), String::new(), Vec::new())?;
        }
        self.under_way.models.insert(wanted.clone());
        self.queue(think(self.context.clone(), self.run.clone(), wanted));
        Ok(())
    }

    pub(super) fn cap_on(&self, task: &Task) -> Option<Cap> {
        cap_on(&self.run, task, self.under_way.models.len())
    }

    /// What the planner said, if it was not read yet.
    fn read_plan(&mut self, task: &Task) -> Result<bool, AgentError> {
        let Some(reply) = task.model_task().and_then(|task| self.run.reply(&task)) else { return Ok(false) };
        match thinking::read_plan(self.context.parts, &self.run, reply) {
            Ok((Decision::Answer(answer), _)) => {
                let cut_off = is_cut_off(reply);
                self.answer(answer, cut_off)?;
            }
            Ok((Decision::Plan(plan), notes)) => {
                self.drop_said();
                let facts = thinking::facts(self.context.parts, &plan, notes);
                self.note(RunEvent::Planned { plan, facts })?;
            }
            Err(problems) => {
                self.drop_said();
                self.note(RunEvent::PlanRefused { problems })?;
            }
        }
        Ok(true)
    }

    /// What a model reasoned for a step, or that it did not.
    fn read_reasoning(&mut self, id: &str) -> Result<bool, AgentError> {
        let Some(step) = self.run.step(id).cloned() else { return Ok(false) };
        if step.phase != Phase::Started || self.under_way.calls.contains_key(id) {
            return Ok(false);
        }
        let task = ModelTask::Reason { step: id.to_owned() };
        if let Some((message, hint)) = self.run.unanswered(&task) {
            let (message, hint) = (message.to_owned(), hint.map(str::to_owned));
            self.over(id, StepEnd::Failed { message, hint, kind: None })?;
            return Ok(true);
        }
        let Some(text) = reasoning(&self.run, &step) else { return Ok(false) };
        let said = self.run.reply(&task).is_some_and(|reply| !reply.text.trim().is_empty());
        if said && text.is_empty() {
            let message = "the model called a tool instead of thinking".to_owned();
            self.over(id, StepEnd::Failed { message, hint: None, kind: None })?;
            return Ok(true);
        }
        let value = self.context.values.put(step.journal_name(), step_value(None, &text));
        let verification = thinking::verify(&step.step, &value, &text, None, &[]);
        let (preview, size) = (super::call::preview(&text), text.chars().count());
        self.over(id, StepEnd::Done { source: None, preview, size })?;
        self.note(RunEvent::Verified { step: id.to_owned(), verification })?;
        Ok(true)
    }

    fn read_repair(&mut self, id: &str) -> Result<bool, AgentError> {
        let task = ModelTask::Repair { step: id.to_owned() };
        let (Some(step), Some(reply)) = (self.run.step(id), self.run.reply(&task)) else { return Ok(false) };
        let step_id = id.to_owned();
        let event = match thinking::read_repair(reply) {
            Ok(arguments) if arguments == step.step.arguments => {
                RunEvent::RepairRefused { step: step_id, reason: "the same arguments again".to_owned() }
            }
            Ok(arguments) => RunEvent::StepRepaired { step: step_id, arguments },
            Err(reason) => RunEvent::RepairRefused { step: step_id, reason },
        };
        self.note(event).map(|()| true)
    }

    fn read_judgement(&mut self, id: &str) -> Result<bool, AgentError> {
        let task = ModelTask::Judge { step: id.to_owned() };
        let (Some(step), Some(reply)) = (self.run.step(id), self.run.reply(&task)) else { return Ok(false) };
        let before = step.verification.clone().unwrap_or_default();
        let verification = thinking::read_judgement(reply, before);
        self.note(RunEvent::Verified { step: id.to_owned(), verification }).map(|()| true)
    }

    /// The final answer, if the model gave one or did not.
    fn read_answer(&mut self) -> Result<bool, AgentError> {
        let said = self.run.reply(&ModelTask::Answer).map(|reply| (cleaned(&reply.text), is_cut_off(reply)));
        if let (None, Some(table)) = (&said, thinking::direct(self.context.parts, &self.run, &self.known())) {
            return self.answer(table, false).map(|()| true);
        }
        match said {
            Some((answer, cut_off)) if !answer.is_empty() => self.answer(answer, cut_off)?,
            None if self.only_rehearsed() => {
                let rehearsal = thinking::rehearsal(self.context.parts, &self.run, &self.known());
                self.answer(rehearsal, false)?;
            }
            None if self.run.unanswered(&ModelTask::Answer).is_none() => return Ok(false),
            _ => match self.without_model() {
                Some(answer) => self.answer(answer, false)?,
                None => self.give_up()?,
            },
        }
        Ok(true)
    }

    fn known(&self) -> Vec<thinking::Known> {
        thinking::known_now(&self.run, &self.context.values)
    }

    /// The answer that can be given without a model.
    pub(super) fn without_model(&self) -> Option<String> {
        thinking::fallback(self.context.parts, &self.run, &self.known())
    }

    fn only_rehearsed(&self) -> bool {
        !self.run.steps().iter().any(StepRun::has_value)
    }

    /// Ends the run with an answer; what was not told of it piece by piece is told now.
    fn answer(&mut self, mut answer: String, cut_off: bool) -> Result<(), AgentError> {
        if untold(&answer, &self.said).is_none() {
            self.drop_said();
        }
        let mut rest = untold(&answer, &self.said).unwrap_or_default().to_owned();
        if cut_off {
            let end = format!("\n\n{}", thinking::cut_off(self.context.parts, &self.run));
            rest.push_str(&end);
            answer.push_str(&end);
        }
        if !rest.is_empty() {
            self.context.watcher.see(&RunNews::AnswerDelta { text: rest, tentative: false });
        }
        let sources = thinking::sources(self.context.parts, &self.known());
        self.end(RunEnd::Answered { answer, sources, cut_off })
    }

    /// What was told is not the answer after all.
    pub(super) fn drop_said(&mut self) {
        if !self.said.is_empty() {
            self.said.clear();
            self.context.watcher.see(&RunNews::AnswerDropped);
        }
    }

    /// Nothing succeeded.
    fn give_up(&mut self) -> Result<(), AgentError> {
        let too_long = self.run.problems().iter().any(|one| matches!(one, PlanProblem::TooLong { .. }));
        if too_long && self.run.steps().is_empty() {
            let end = self.capped(Cap::Steps);
            return self.end(end);
        }
        let round = self.run.round();
        let unplanned = [true, false]
            .into_iter()
            .find_map(|repair| self.run.unanswered(&ModelTask::Plan { round, repair }));
        let (message, hint) = match unplanned {
            Some((message, hint)) => (message.to_owned(), hint.map(str::to_owned)),
            None => thinking::failure(self.context.parts, &self.run, &self.known()),
        };
        self.end(RunEnd::Failed { message, hint })
    }
}

/// Whether the model had to stop before the end of what it wanted to say.
fn is_cut_off(reply: &ModelReply) -> bool {
    reply.finish == FinishReason::Length
}

/// A step as the schedule sees it.
fn lane(step: &StepRun) -> Lane<'_> {
    let source = step.facts.source.as_ref().map(SourceId::as_str);
    Lane { step: &step.step.id, source, writes: !step.facts.read_only }
}
