//! `toolyard runs resume`, `approve` and `cancel`: what is done about runs that are not over.

use std::time::{Duration, Instant};

use toolyard::Toolyard;
use toolyard_agent::{
    AgentError, Ask, CancelToken, RUN_KIND, RunEnd, RunEvent, RunNews, answer_question, ask_to_stop, cancel,
    load, replay,
};
use toolyard_core::{
    Approvals as _, Journal as _, JournalError, Question, RunId, RunLog as _, RunRecord, RunState,
};
use toolyard_store::Store;

use super::{
    asking_setup, built, close, discover,
    driving::{agent, drive, finish},
    kept, prepared, process_name,
    runs::find,
};
use crate::{
    cli::{ApproveRun, ResumeRun},
    failure::{Code, Failure},
    folders::Workplace,
    output::{Output, harmless},
    run_view::{Decider, View, effects_and_arguments},
};

/// A lease of a command is not longer; one of a hub is.
const LONGEST_WAIT: Duration = Duration::from_secs(40);
/// So many open runs are looked at.
const LOOKED_AT: usize = 10_000;

/// Goes on with one run, or with all that are open and that nobody works on.
pub(super) async fn resume(
    arguments: ResumeRun,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let store = kept(workplace)?;
    let yard = ready(workplace, arguments.yes, output).await?;
    let going_on = GoingOn { yard: &yard, yes: arguments.yes, model: arguments.model.as_deref(), output };
    let outcome = match &arguments.run {
        Some(run) => going_on.with(&find(run, store).await?, store).await,
        None => going_on.with_all(store).await,
    };
    close(&yard, workplace).await?;
    outcome
}

/// Notes a person's word on what a run waits for, and goes on with it.
pub(super) async fn approve(
    arguments: ApproveRun,
    workplace: &Workplace,
    output: &Output,
) -> Result<(), Failure> {
    let store = kept(workplace)?;
    let run = find(&arguments.run, store).await?;
    let waiting: Vec<Question> = waiting(&run, arguments.step.as_deref(), store).await?;
    if waiting.is_empty() {
        return Err(Failure::new(Code::BadUse, format!("run {run} waits for no such word"))
            .with_hint(format!("see how it stands: toolyard runs show {run}")));
    }
    if waiting.len() > 1 && arguments.step.is_none() {
        for question in &waiting {
            output.talk(&harmless(&format!(
                "{}: {}",
                question.step.as_deref().unwrap_or_default(),
                question.text
            )));
        }
        let message = format!("run {run} waits for {} words, and each is given by itself", waiting.len());
        return Err(
            Failure::new(Code::BadUse, message).with_hint(format!("toolyard runs approve {run} STEP"))
        );
    }
    for question in &waiting {
        answer_question(store, store, question.id, !arguments.deny, "cli").await?;
        let word = if arguments.deny { "denied" } else { "allowed" };
        let step = question.step.as_deref().unwrap_or_default();
        let what = effects_and_arguments(&question.text).unwrap_or_else(|| question.text.clone());
        output.talk(&harmless(&format!("{word}: {step}, which {what}")));
    }
    if arguments.no_resume {
        return Ok(());
    }
    let yard = ready(workplace, false, output).await?;
    let outcome = GoingOn { yard: &yard, yes: false, model: None, output }.with(&run, store).await;
    close(&yard, workplace).await?;
    outcome
}

/// Ends a run that nobody works on.
pub(super) async fn cancel_run(run: &RunId, store: &Store, output: &Output) -> Result<(), Failure> {
    match cancel(store, run, &process_name()).await {
        Ok(()) => {
            output.talk(&format!("cancelled run {run}; what it did stays done"));
            Ok(())
        }
        // Whoever works on it hears of it at the next heartbeat.
        Err(AgentError::Journal(JournalError::Held { owner, .. })) => {
            ask_to_stop(store, run, "cli").await?;
            output.talk(&harmless(&format!("asked {owner}, who works on run {run}, to cancel it")));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn waiting(run: &RunId, step: Option<&str>, store: &Store) -> Result<Vec<Question>, Failure> {
    let all = store.waiting().await.map_err(|error| Failure::new(Code::Failed, error))?;
    let is_meant = |question: &Question| {
        question.run == *run && step.is_none_or(|step| question.step.as_deref() == Some(step))
    };
    Ok(all.into_iter().filter(is_meant).collect())
}

/// The yard, with the tools of all servers known.
async fn ready(workplace: &Workplace, yes: bool, output: &Output) -> Result<Toolyard, Failure> {
    let yard = built(prepared(workplace, asking_setup(workplace, yes))).await?;
    discover(&yard, workplace, output).await?;
    Ok(yard)
}

/// Going on with runs.
struct GoingOn<'a> {
    yard: &'a Toolyard,
    yes: bool,
    model: Option<&'a str>,
    output: &'a Output,
}

impl GoingOn<'_> {
    async fn with(&self, run: &RunId, store: &Store) -> Result<(), Failure> {
        let Some(ask) = asked(run, store).await? else {
            return Err(Failure::new(Code::BadUse, format!("run {run} is no question to an agent"))
                .with_hint("only those can be gone on with; see: toolyard runs show"));
        };
        let (agent, model) = agent(self.yard, &ask.agent, self.model)?;
        self.until_free(run, store).await?;
        let stop = CancelToken::default();
        let view = View::new(self.output, &model, Decider::new(self.yes, &stop));
        view.recall(&load(store, run).await?.1);
        let end = drive(&agent, run, &view, &stop).await?;
        finish(run, &end, view, self.output)
    }

    /// Waits until a run is free that a process holds which is gone; one that is worked on is left to whoever does.
    async fn until_free(&self, run: &RunId, store: &Store) -> Result<(), Failure> {
        let began = Instant::now();
        let mut told = false;
        while let Some(owner) = holder(run, store).await? {
            if is_at_work(&owner) || began.elapsed() > LONGEST_WAIT {
                let held = JournalError::Held { run: run.clone(), owner };
                return Err(Failure::from(held)
                    .with_hint("whoever works on it goes on; or cancel it: toolyard runs cancel"));
            }
            if !std::mem::replace(&mut told, true) {
                self.output
                    .talk(&harmless(&format!("{owner} is gone; waiting a moment until its run is free")));
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(())
    }

    /// One after the other; how the last one that did not end well ended is how all did.
    async fn with_all(&self, store: &Store) -> Result<(), Failure> {
        let open = store.runs(LOOKED_AT).await?;
        let open: Vec<_> = open.into_iter().filter(|run| run.state == RunState::Open).rev().collect();
        let (mut outcome, mut found) = (Ok(()), 0);
        for record in open {
            let Some(ask) = asked(&record.id, store).await? else { continue };
            found += 1;
            self.output.talk(&harmless(&format!("run {}   {}", record.id, ask.question)));
            match self.with(&record.id, store).await {
                Ok(()) => {}
                Err(failure) if failure.is(Code::Interrupted) => return Err(failure),
                Err(failure) => {
                    failure.tell(self.output);
                    outcome = Err(failure.silent());
                }
            }
        }
        if found == 0 {
            self.output.talk("nothing is to be gone on with");
        }
        outcome
    }
}

/// Who holds a run whose lease is not over.
async fn holder(run: &RunId, store: &Store) -> Result<Option<String>, Failure> {
    if store.run(run).await?.state != RunState::Open {
        return Ok(None);
    }
    let owner = process_name();
    match store.claim(run, &owner, Duration::from_secs(1)).await {
        Ok(lease) => {
            store.release(&lease, RunState::Open).await?;
            Ok(None)
        }
        Err(JournalError::Held { owner, .. }) => Ok(Some(owner)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a run could be gone on with, and nobody of this machine does.
pub(super) fn is_left(record: &RunRecord, end: Option<&RunEnd>) -> bool {
    record.kind == RUN_KIND
        && record.state == RunState::Open
        && !matches!(end, Some(RunEnd::Suspended { .. }))
        && !record.owner.as_deref().is_some_and(is_at_work)
}

/// Whether a holder is a process of this machine that is still there; its number is part of its name.
fn is_at_work(owner: &str) -> bool {
    let number = owner.split('-').nth(1).and_then(|number| number.parse().ok());
    let process = number.and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| {
        // One that belongs to somebody else is there as well.
        !matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH))
    })
}

/// What was asked in a run; none if it is not an agent's.
async fn asked(run: &RunId, store: &Store) -> Result<Option<Ask>, Failure> {
    let events = store.events(run, 0).await?;
    let first = replay(&events).next();
    Ok(match first {
        Some(RunNews::Event { event: RunEvent::Asked { ask }, .. }) => Some(ask),
        _ => None,
    })
}
