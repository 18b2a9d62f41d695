//! `toolyard servers test`: starts servers, a few at a time, and reports each outcome as soon as it is known.

use std::{
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::time::timeout;
use toolyard_mcp_client::{ConnectError, ManagedServer, McpManager, Session, ToolOffer};

use super::{
    describe_failure,
    failure_cache::{ServerFailure, ServerFailures},
    logs::has_log_lines,
    pending_servers::PendingServers,
    print_approve_hint, print_unusable_tools, server_json, tool_names, tools_not_offered,
};
use crate::{
    commands::doctor::check_start,
    config::CliContext,
    error::{CliError, ExitStatus},
    terminal::{Output, pluralize, progress::with_live_progress},
};

/// Most people have fewer servers, so that one that hangs delays no other.
const MAX_CONCURRENT_TESTS: usize = 16;
/// After this time, the servers that are still starting are named.
const SLOW_START: Duration = Duration::from_secs(10);

struct TestOutcome {
    server: Arc<ManagedServer>,
    outcome: Result<Arc<Session>, ConnectError>,
    duration: Duration,
}

/// Starts servers and stops them again. Fails if one of them failed, after all were tested; the exit code tells some from
/// all.
pub(super) async fn test(
    manager: &McpManager,
    servers: &[Arc<ManagedServer>],
    context: &CliContext,
    output: &Output,
) -> Result<(), CliError> {
    let pending = PendingServers::for_all(servers);
    let report = |tested: &TestOutcome| {
        if !output.is_json() {
            print_outcome(tested, output);
        }
    };
    let (pending, report) = (&pending, &report);
    let tests = servers.iter().map(|server| async move {
        let started = Instant::now();
        let outcome = manager.connect(server.config().id.as_str()).await;
        let tested = TestOutcome { server: Arc::clone(server), outcome, duration: started.elapsed() };
        report(&tested);
        pending.remove(server);
        server.stop().await;
        tested
    });
    let all = stream::iter(tests).buffer_unordered(MAX_CONCURRENT_TESTS).collect::<Vec<_>>();
    let all = report_if_slow(all, SLOW_START, || {
        let names = pending.names();
        if !names.is_empty() {
            output.message(&format!(
                "still starting after {} s: {names}. A first start may download packages; `startup_timeout` limits it",
                SLOW_START.as_secs()
            ));
        }
    });
    let subject = || match pending.names() {
        names if names.is_empty() => "servers to stop".to_owned(),
        names => names,
    };
    let mut all = with_live_progress(subject, all).await?;
    all.sort_by(|one, other| one.server.config().id.cmp(&other.server.config().id));
    let mut failures = ServerFailures::read(context);
    for TestOutcome { server, outcome, duration } in &all {
        let error = outcome.as_ref().err();
        let failure = |error| ServerFailure::new(&describe_failure(error, &server.config().id), *duration);
        failures.record(server.config(), error.map(failure));
    }
    failures.write(context);
    if output.is_json() {
        output.json(&all.iter().map(outcome_json).collect::<Vec<_>>());
    }
    let failed: Vec<&TestOutcome> = all.iter().filter(|tested| tested.outcome.is_err()).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = failed.iter().map(|tested| tested.server.config().id.as_str()).collect();
    let message =
        format!("{} of {} failed: {}", failed.len(), pluralize(all.len(), "server"), names.join(", "));
    let status = if failed.len() == all.len() { ExitStatus::Unreachable } else { ExitStatus::Failed };
    let hint = failed.iter().find_map(|tested| failure_hint(&tested.server, context));
    let failure = CliError::new(status, message).with_optional_hint(hint);
    Err(if output.is_json() { failure.without_message() } else { failure })
}

/// Awaits this work, and calls `report` once if it takes longer than `limit`.
async fn report_if_slow<T>(work: impl Future<Output = T>, limit: Duration, report: impl FnOnce()) -> T {
    let mut work = pin!(work);
    if let Ok(done) = timeout(limit, work.as_mut()).await {
        return done;
    }
    report();
    work.await
}

/// What prevents the start of a server that failed, or else its log if there is one.
fn failure_hint(server: &ManagedServer, context: &CliContext) -> Option<String> {
    let config = server.config();
    let log = || format!("show the log: toolyard servers logs {}", config.id);
    check_start(config, context).or_else(|| has_log_lines(server, context).then(log))
}

fn outcome_json(TestOutcome { server, outcome, duration }: &TestOutcome) -> Value {
    json!({
        "server": server_json(server, None),
        "milliseconds": duration.as_millis(),
        "protocol": outcome.as_ref().ok().map(|session| session.revision()),
        "server_name": outcome.as_ref().ok().map(|session| session.about().name.clone()),
        "error": outcome.as_ref().err().map(|error| toolyard_core::redact(&error.to_string()).into_owned()),
    })
}

fn print_outcome(TestOutcome { server, outcome, duration }: &TestOutcome, output: &Output) {
    let (config, approvals, seconds) = (server.config(), server.tool_approvals(), duration.as_secs_f64());
    match outcome {
        Ok(session) => {
            let offered = tool_names(server, &approvals, ToolOffer::Offered);
            let mut tools = vec![pluralize(offered.len(), "tool")];
            tools.extend(tools_not_offered(server, &approvals));
            let (revision, tools) = (session.revision(), tools.join("; "));
            output.line(&format!("{}   ready in {seconds:.1} s, protocol {revision}, {tools}", config.id));
            let newly_approved = approvals.newly_approved.iter().map(String::as_str);
            let enabled: Vec<&str> = newly_approved.filter(|name| offered.contains(name)).collect();
            if !enabled.is_empty() {
                let names = enabled.join(", ");
                output.message(&format!("  {}: new tools, now enabled: {names}", config.id));
            }
            print_unusable_tools(&approvals, output);
            print_approve_hint(config, &approvals, output);
        }
        Err(error) => {
            let error = describe_failure(error, &config.id);
            let error = toolyard_core::redact(&error);
            output.line(&format!("{}   failed after {seconds:.1} s: {error}", config.id));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn slow_work_is_reported_while_it_goes_on() {
        let (report, reported) = oneshot::channel();
        // The work ends only after the report.
        let done = report_if_slow(reported, Duration::from_millis(1), || report.send(7).unwrap()).await;
        assert_eq!(done, Ok(7));
        report_if_slow(async {}, Duration::from_mins(1), || panic!("this was not slow")).await;
    }
}
