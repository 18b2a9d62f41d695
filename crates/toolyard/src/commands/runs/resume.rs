//! `toolyard runs resume`, `approve`, `deny` and `cancel`.

use std::time::{Duration, Instant};

use toolyard::Toolyard;
use toolyard_agent::{
    AGENT_RUN_KIND, AgentError, ApprovalDecision, CancelToken, RunEnd, RunEvent, RunRequest, RunUpdate,
    cancel_run, decide_approval, load_run, replay_updates, request_cancellation,
};
use toolyard_core::{
    ApprovalRecord, Approvals as _, Journal as _, JournalError, RunId, RunLog as _, RunRecord, RunState,
};
use toolyard_store::Store;

use super::{MAX_SEARCHED_RUNS, find_run, show};
use crate::{
    cli::{ApprovalArgs, ResumeArgs},
    commands::{
        agent_run::{drive, load_agent, report_end},
        servers::discovery::discover,
        setup::{build, builder, close, process_owner, require_store, servers_setup},
    },
    config::CliContext,
    error::{CliError, ExitStatus},
    terminal::{
        Output, confirm,
        progress::with_progress,
        run_view::{ApprovalMode, RunView, is_interactive},
    },
};

/// How long to wait for the lease of a dead process to expire; longer than any lease that Toolyard takes.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(70);
const LEASE_POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Duration of a lease that is taken only to learn whether the run is free, and released at once.
const PROBE_LEASE: Duration = Duration::from_secs(1);

/// Resumes one run, or all unfinished runs that no process is working on.
pub(super) async fn resume(
    arguments: ResumeArgs,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let store = require_store(context)?;
    // Found before anything is started: that takes seconds, and there may be nothing to do.
    let (named, unfinished) = match &arguments.run {
        Some(run) => (Some(find_open_run(run, store).await?), Vec::new()),
        None => (None, unfinished_runs(store).await?),
    };
    if named.is_none() && unfinished.is_empty() {
        output.message("No unfinished runs.");
        return Ok(());
    }
    let toolyard = open_interactive(context, output).await?;
    let resumer = Resumer {
        toolyard: &toolyard,
        store,
        approve_all: arguments.yes,
        model: arguments.model.as_deref(),
        output,
    };
    let outcome = match &named {
        Some(run) => resumer.resume(run).await,
        None => resumer.resume_all(unfinished).await,
    };
    close(&toolyard, context).await?;
    outcome
}

/// Approves or denies the calls that a run is waiting for, and resumes the run.
pub(super) async fn decide(
    arguments: ApprovalArgs,
    decision: ApprovalDecision,
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let approve = decision != ApprovalDecision::Deny;
    let store = require_store(context)?;
    let run = find_run(&arguments.run, store).await?;
    let pending = pending_approvals(&run, arguments.step.as_deref(), store).await?;
    if pending.is_empty() {
        let missing = match &arguments.step {
            Some(step) => format!("run {run} is not waiting for an approval of step `{step}`"),
            None => format!("run {run} is not waiting for an approval"),
        };
        return Err(CliError::usage(missing).with_hint(format!("show its state: toolyard runs show {run}")));
    }
    let command = if approve { "approve" } else { "deny" };
    if pending.len() > 1 && arguments.step.is_none() {
        for approval in &pending {
            let step = approval.step.as_deref().unwrap_or_default();
            output.message(&format!("{step}: {}", approval.text));
        }
        let message = format!("run {run} is waiting for {} approvals: decide on each", pending.len());
        return Err(CliError::usage(message).with_hint(format!("toolyard runs {command} {run} STEP")));
    }
    let progress = show::progress(&store.events(&run, 0).await?);
    for approval in &pending {
        let details = progress.approval_details(approval.id);
        if approve && !arguments.yes {
            if !is_interactive() {
                let message = "approval needs a terminal to show the call, or --yes; nothing was approved";
                return Err(CliError::usage(message).with_hint(format!(
                    "read it: toolyard runs show {run} · approve it: toolyard runs approve {run} --yes"
                )));
            }
            // Beside the question, which is never redirected with the data.
            show::print_call(approval, details, |line| output.message(line));
            if !confirm("Approve this call?", "the call was not approved")? {
                return Err(CliError::denied("the call was not approved"));
            }
        }
        decide_approval(store, store, approval.id, decision, "cli").await?;
        let verb = if approve { "Approved" } else { "Denied" };
        let step = approval.step.as_deref().unwrap_or_default();
        let call = match details {
            Some(details) => format!("`{step}` ({}): {}", details.effects, details.arguments),
            None => format!("`{step}`: {}", approval.text),
        };
        output.message(&format!("{verb} {call}"));
    }
    if arguments.no_resume {
        return Ok(());
    }
    let approve_all = false;
    let toolyard = open_interactive(context, output).await?;
    let resumer = Resumer { toolyard: &toolyard, store, approve_all, model: None, output };
    let outcome = resumer.resume(&run).await;
    close(&toolyard, context).await?;
    outcome
}

/// Cancels a run, or asks the process that is working on it to do so.
pub(super) async fn cancel(run: &RunId, store: &Store, output: &Output) -> Result<(), CliError> {
    match cancel_run(store, store, run, &process_owner()).await {
        Ok(()) => {
            output.message(&format!("cancelled run {run}; completed steps are not undone"));
            Ok(())
        }
        // The owner sees the request when it renews its lease.
        Err(AgentError::Journal(JournalError::Leased { owner, .. })) => {
            request_cancellation(store, run, "cli").await?;
            output.message(&format!("asked {owner} to cancel run {run}"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

async fn pending_approvals(
    run: &RunId,
    step: Option<&str>,
    store: &Store,
) -> Result<Vec<ApprovalRecord>, CliError> {
    let mut pending = store.pending_approvals().await?;
    pending.retain(|approval| {
        approval.run == *run && step.is_none_or(|step| approval.step.as_deref() == Some(step))
    });
    Ok(pending)
}

/// A Toolyard that prompts at the terminal, with the tools of all servers known.
async fn open_interactive(context: &CliContext, output: &Output) -> Result<Toolyard, CliError> {
    let toolyard = build(builder(context, servers_setup(context))).await?;
    discover(&toolyard, context, output).await?;
    Ok(toolyard)
}

struct Resumer<'a> {
    toolyard: &'a Toolyard,
    store: &'a Store,
    approve_all: bool,
    model: Option<&'a str>,
    output: &'a Output,
}

impl Resumer<'_> {
    async fn resume(&self, run: &RunId) -> Result<(), CliError> {
        let Some(request) = run_request(run, self.store).await? else {
            return Err(no_request(run, self.store).await?);
        };
        let (agent, model) = load_agent(self.toolyard, &request.agent, self.model)?;
        self.wait_until_free(run).await?;
        let stop = CancelToken::default();
        let view = RunView::new(self.output, &model, ApprovalMode::new(self.approve_all, &stop));
        view.restore(&load_run(self.store, run).await?.1);
        let end = drive(&agent, run, &view, &stop).await?;
        report_end(run, &end, view, self.output)
    }

    /// Waits for the lease of a dead process to expire; fails if a live process holds it.
    async fn wait_until_free(&self, run: &RunId) -> Result<(), CliError> {
        let Some(owner) = lease_owner(run, self.store).await? else { return Ok(()) };
        if !is_alive(&owner) {
            self.output.message(&format!("{owner} is gone; waiting until its lease on the run expires"));
        }
        let released = async {
            let started = Instant::now();
            while let Some(owner) = lease_owner(run, self.store).await? {
                if is_alive(&owner) || started.elapsed() > MAX_LEASE_WAIT {
                    let leased = JournalError::Leased { run: run.clone(), owner };
                    return Err(CliError::from(leased)
                        .with_hint(format!("retry shortly, or cancel it: toolyard runs cancel {run}")));
                }
                tokio::time::sleep(LEASE_POLL_INTERVAL).await;
            }
            Ok(())
        };
        with_progress("the lease to expire", released).await?
    }

    /// Resumes one run after the other. The exit code is that of the last failure.
    async fn resume_all(&self, unfinished: Vec<(RunId, RunRequest)>) -> Result<(), CliError> {
        let mut outcome = Ok(());
        for (run, request) in unfinished {
            self.output.message(&format!("run {run}   {}", request.question));
            match self.resume(&run).await {
                Ok(()) => {}
                Err(failure) if failure.status() == ExitStatus::Interrupted => return Err(failure),
                Err(failure) => {
                    failure.print(self.output);
                    outcome = Err(failure.without_message());
                }
            }
        }
        outcome
    }
}

/// The run of this name, which has not ended.
async fn find_open_run(run: &str, store: &Store) -> Result<RunId, CliError> {
    let run = find_run(run, store).await?;
    if store.run(&run).await?.state == RunState::Open {
        return Ok(run);
    }
    let hint = format!("show what it did: toolyard runs show {run}");
    Err(CliError::from(AgentError::Finished(run)).with_hint(hint))
}

/// The unfinished runs of agents, the oldest first.
async fn unfinished_runs(store: &Store) -> Result<Vec<(RunId, RunRequest)>, CliError> {
    let mut unfinished = Vec::new();
    for record in store.runs(MAX_SEARCHED_RUNS).await?.into_iter().rev() {
        if record.state == RunState::Open
            && let Some(request) = run_request(&record.id, store).await?
        {
            unfinished.push((record.id, request));
        }
    }
    Ok(unfinished)
}

/// The owner of an unexpired lease on a run.
async fn lease_owner(run: &RunId, store: &Store) -> Result<Option<String>, CliError> {
    if store.run(run).await?.state != RunState::Open {
        return Ok(None);
    }
    match store.claim(run, &process_owner(), PROBE_LEASE).await {
        Ok(lease) => {
            store.release(&lease, RunState::Open).await?;
            Ok(None)
        }
        Err(JournalError::Leased { owner, .. }) => Ok(Some(owner)),
        Err(error) => Err(error.into()),
    }
}

/// Whether a run can be resumed and no live process of this machine is working on it.
pub(super) fn is_orphaned(record: &RunRecord, end: Option<&RunEnd>) -> bool {
    record.kind == AGENT_RUN_KIND
        && record.state == RunState::Open
        && !matches!(end, Some(RunEnd::Suspended { .. }))
        && !record.owner.as_deref().is_some_and(is_alive)
}

/// Whether the owner of a lease is a live process of this machine; its name contains the process id.
fn is_alive(owner: &str) -> bool {
    let pid = owner.split('-').nth(1).and_then(|pid| pid.parse().ok());
    let process = pid.and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| {
        // A permission error means that the process exists.
        !matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH))
            && !is_zombie(process)
    })
}

/// Whether a process has ended and its parent has not noticed yet.
fn is_zombie(process: rustix::process::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')))
}

/// The request that started a run; `None` if it is not an agent's.
/// Why a run has no request that could be resumed.
async fn no_request(run: &RunId, store: &Store) -> Result<CliError, CliError> {
    // The record of a run is written before its request is logged; a process may be killed in between.
    if store.run(run).await?.kind == AGENT_RUN_KIND {
        let message =
            format!("run {run} was never started: its process ended before it recorded the request");
        return Ok(CliError::usage(message).with_hint(format!(
            "nothing was done; close the run and ask again: toolyard runs cancel {run}"
        )));
    }
    Ok(CliError::usage(format!("run {run} is not an agent run"))
        .with_hint(format!("show its steps: toolyard runs show {run}")))
}

async fn run_request(run: &RunId, store: &Store) -> Result<Option<RunRequest>, CliError> {
    let events = store.events(run, 0).await?;
    Ok(match replay_updates(&events).next() {
        Some(RunUpdate::Event { event: RunEvent::Requested { request }, .. }) => Some(request),
        _ => None,
    })
}
