//! Questions to persons, asked once and answered by whoever is first: here, or at any other door.

use toolyard_core::{Answer, Question, QuestionKind, Resolution, RunId, StepState};

use super::{
    happened::Happened,
    patient::{is_hiccup, patiently},
    prepare::Prepared,
    session::{Context, Session},
};
use crate::{
    Agent, AgentError, Approval, ApprovalDecision, ApprovalQuestion, Run, RunEvent, StepRun, replay::loaded,
};

/// A question that stands.
#[derive(Debug)]
pub(super) struct Asked {
    question: ApprovalQuestion,
    text: String,
    tool: String,
    call: String,
}

/// What a person decided.
#[derive(Debug, Clone)]
pub(super) struct Decided {
    allowed: bool,
    always: bool,
    by: String,
}

/// What a run waits for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// Steps and the numbers of their questions.
    questions: Vec<(String, i64)>,
    /// Steps whose outcome is unknown, and their names in the journal.
    unknown: Vec<(String, String)>,
}

impl Waiting {
    pub(super) fn of(run: &Run) -> Self {
        let mut waiting = Self::default();
        for step in run.steps() {
            let id = step.step.id.clone();
            match &step.approval {
                _ if step.phase.is_unknown() => waiting.unknown.push((id, step.journal_name())),
                Approval::Asked { question, .. } if !step.phase.is_ended() => {
                    waiting.questions.push((id, *question));
                }
                _ => {}
            }
        }
        waiting
    }
}

impl Session<'_> {
    /// Asks about a call; whoever watches is asked as soon as the question stands.
    pub(super) fn ask_person(&mut self, step: StepRun, prepared: &Prepared, known: Option<i64>) {
        let id = step.step.id.clone();
        let standing = &prepared.standing;
        let source = standing.source.as_ref().map(ToString::to_string).unwrap_or_default();
        let question = ApprovalQuestion {
            id: known.unwrap_or_default(),
            step: id.clone(),
            tool: step.step.tool_type.clone(),
            source,
            arguments: prepared.whole.clone(),
            effects: standing.effects.to_owned(),
            notes: prepared.notes.clone(),
        };
        // A tool that changed is asked about in other words.
        let definition: String = standing.identity.chars().take(8).collect();
        let mut text = format!(
            "may `{}` of {} be called ({}, definition {definition}, arguments {})? {}",
            question.tool,
            question.source,
            question.effects,
            prepared.subject.chars().take(8).collect::<String>(),
            question.arguments
        );
        for note in &question.notes {
            text.push_str("; note: ");
            text.push_str(note);
        }
        let asked = Asked { question, text, tool: standing.identity.clone(), call: prepared.subject.clone() };
        self.under_way.persons.insert(id);
        match known {
            Some(_) => self.queue(decide(self.context.clone(), asked.question)),
            None => self.queue(ask(self.context.clone(), step, asked)),
        }
    }

    pub(super) fn asked(&mut self, step: String, asked: Asked) -> Result<(), AgentError> {
        let Asked { question, text, tool, call } = asked;
        let before = self.run.step(&step).map(|step| step.approval.clone());
        if let Some(Approval::Asked { question: before, .. }) = before
            && before != question.id
        {
            // Not before the new one is written down: a crash between the two must not look like a person's no.
            self.queue(superseded(self.context.clone(), before));
        }
        self.note(RunEvent::ApprovalAsked { step, question: question.id, text, tool, call })?;
        self.queue(decide(self.context.clone(), question));
        Ok(())
    }

    pub(super) fn decided(&mut self, step: String, decided: Option<Decided>) -> Result<(), AgentError> {
        self.under_way.persons.remove(&step);
        if !self.is_asked(&step) {
            // Somebody elsewhere was quicker.
            return Ok(());
        }
        match decided {
            Some(Decided { allowed, always, by }) => {
                self.note(RunEvent::ApprovalGiven { step, allowed, always, by })
            }
            None => {
                self.under_way.nobody.insert(step);
                Ok(())
            }
        }
    }

    fn is_asked(&self, step: &str) -> bool {
        self.run.step(step).is_some_and(|step| matches!(step.approval, Approval::Asked { .. }))
    }

    /// What was answered elsewhere while somebody here is still being asked.
    pub(super) fn answered_elsewhere(&mut self, questions: &[Question]) -> Result<(), AgentError> {
        for (step, number) in Waiting::of(&self.run).questions {
            let question = questions.iter().find(|question| question.id == number);
            if let Some(Decided { allowed, always, by }) = question.and_then(answer_of) {
                self.under_way.persons.remove(&step);
                self.note(RunEvent::ApprovalGiven { step, allowed, always, by })?;
            }
        }
        Ok(())
    }

    /// Questions that nobody needs to answer any more.
    pub(super) async fn close_questions(&mut self) {
        for (_, question) in &Waiting::of(&self.run).questions {
            close(&self.context, *question, "the end of the run").await;
        }
    }

    /// What persons said while nobody worked on the run.
    pub(super) async fn hear_persons(&mut self) -> Result<(), AgentError> {
        let heard = heard(&self.context, &Waiting::of(&self.run)).await?;
        heard.into_iter().try_for_each(|event| self.note(event))
    }
}

/// Answers a question in nobody's name, so that nobody is bothered with it.
async fn close(context: &Context<'_>, question: i64, by: &str) {
    if let Err(error) = context.parts.approvals.answer(question, Answer::Deny, by).await {
        tracing::warn!(run = %context.lease.run, question, error, "a question stays open that nobody needs to answer");
    }
}

async fn superseded(context: Context<'_>, question: i64) -> Happened {
    close(&context, question, "another question in its place").await;
    Happened::Learned
}

/// Writes a question down. One that was written before a crash and not told about is the same one.
async fn ask(context: Context<'_>, step: StepRun, mut asked: Asked) -> Happened {
    let id = step.step.id.clone();
    let mut again = context.resumed;
    let written = patiently(context.patience(), any, || {
        // A question that could not be told to be written down may be there nevertheless.
        let look = std::mem::replace(&mut again, true);
        written(&context, &step, &asked.text, look)
    });
    let outcome = match written.await {
        Ok(number) => {
            asked.question.id = number;
            Ok(Box::new(asked))
        }
        Err(reason) => Err(AgentError::Approvals(reason)),
    };
    Happened::Asked { step: id, outcome }
}

async fn written(context: &Context<'_>, step: &StepRun, text: &str, look: bool) -> Result<i64, String> {
    let (approvals, run) = (&context.parts.approvals, &context.lease.run);
    let name = step.journal_name();
    if look {
        let same = |question: &&Question| {
            question.answer.is_none()
                && question.step.as_deref() == Some(&name)
                && question.text == *toolyard_core::redact(text)
        };
        if let Some(known) = approvals.of_run(run).await?.iter().find(same) {
            return Ok(known.id);
        }
    }
    approvals.ask(run, Some(&name), QuestionKind::Approval, text).await
}

/// Asks whoever watches. The first answer counts, wherever it was given.
async fn decide(context: Context<'_>, question: ApprovalQuestion) -> Happened {
    let outcome = decision(&context, &question).await.map_err(AgentError::Approvals);
    Happened::Decided { step: question.step, outcome }
}

async fn decision(context: &Context<'_>, question: &ApprovalQuestion) -> Result<Option<Decided>, String> {
    let approvals = &context.parts.approvals;
    let Some(decision) = context.watcher.decide(question).await else {
        return Ok(None);
    };
    let allowed = decision != ApprovalDecision::Deny;
    let answer = if allowed { Answer::Allow } else { Answer::Deny };
    let by = "whoever asked".to_owned();
    let mut attempts = 0_usize;
    let told = patiently(context.patience(), any, || {
        attempts += 1;
        approvals.answer(question.id, answer, &by)
    });
    if told.await? {
        return Ok(Some(Decided { allowed, always: decision == ApprovalDecision::AllowAlways, by }));
    }
    let known = patiently(context.patience(), any, || approvals.question(question.id)).await?;
    // An answer that could not be told to be written down was ours.
    let is_ours =
        known.as_ref().is_some_and(|known| attempts > 1 && known.by.as_deref() == Some(by.as_str()));
    let decided = known.as_ref().and_then(answer_of);
    let always = is_ours && decision == ApprovalDecision::AllowAlways;
    Ok(decided.map(|decided| Decided { always, ..decided }))
}

fn answer_of(question: &Question) -> Option<Decided> {
    let allowed = question.answer? == Answer::Allow;
    Some(Decided { allowed, always: false, by: question.by.clone().unwrap_or_default() })
}

/// Looks once more whether persons elsewhere have answered.
pub(super) async fn hear(context: Context<'_>, waiting: Waiting) -> Happened {
    Happened::Heard { outcome: heard(&context, &waiting).await }
}

async fn heard(context: &Context<'_>, waiting: &Waiting) -> Result<Vec<RunEvent>, AgentError> {
    let (parts, run) = (context.parts, &context.lease.run);
    let mut events = Vec::new();
    for (step, question) in &waiting.questions {
        let known = patiently(context.patience(), any, || parts.approvals.question(*question)).await;
        let known = known.map_err(AgentError::Approvals)?;
        if let Some(Decided { allowed, always, by }) = known.as_ref().and_then(answer_of) {
            events.push(RunEvent::ApprovalGiven { step: step.clone(), allowed, always, by });
        }
    }
    for (step, name) in &waiting.unknown {
        let known = patiently(context.patience(), is_hiccup, || parts.log.step(run, name)).await?;
        if let Some(resolution) = known.and_then(|known| resolution(known.state)) {
            events.push(RunEvent::StepSettled { step: step.clone(), resolution });
        }
    }
    Ok(events)
}

/// Whatever keeps questions does not say whether it will work again.
fn any(_: &String) -> bool {
    true
}

fn resolution(state: StepState) -> Option<Resolution> {
    match state {
        StepState::Done | StepState::Failed => Some(Resolution::Done),
        StepState::NotDone => Some(Resolution::NotDone),
        StepState::Started | StepState::Unknown => None,
    }
}

impl Agent {
    /// Whether something that a suspended run waits for was answered.
    pub(super) async fn is_answered(&self, run: &RunId) -> Result<bool, AgentError> {
        let waiting = Waiting::of(&loaded(&*self.parts.log, run).await?.run);
        for (_, question) in &waiting.questions {
            let known = self.parts.approvals.question(*question).await.map_err(AgentError::Approvals)?;
            if known.is_some_and(|known| known.answer.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
