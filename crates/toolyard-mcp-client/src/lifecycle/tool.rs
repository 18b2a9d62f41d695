//! A tool of a server. Before its first call it is the specification's `ConfigOnlyMcpTool`: a definition without a
//! connection.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::time::{Instant, timeout_at};
use toolyard_core::{
    BoxFuture, CallContext, CallerIdentity, ErrorKind, NameClaim, SourceId, SourceInfo, SourceKind,
    SourceSignal, SourceTools, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};
use toolyard_mcp::{
    CallResult,
    definition::{MirroredParameter, mirrored_parameters, requires_task},
};

use crate::{
    config::McpServerConfig,
    lifecycle::{
        back_channel::{
            call_lacks_back_channel, call_needs_modern_session, modern_tool_error, revision_changed_error,
        },
        caller_sessions::CallSession,
        connect_error::ConnectError,
        isolation::{instances::InstanceLease, role::UnfinishedCall},
        server::ManagedServer,
        state::ServerState,
    },
    pinning::ApprovedTool,
    session::{
        error::{LOGIN_CALLER_HINT, RequestError, caller_header_error, login_hint, sign_in_error},
        handle::Session,
        tool_call::ToolCall,
    },
    transport::{error::TransportError, http::headers::mirrored_headers},
};

/// How long before the deadline of a call a slow start is reported, so that the error can say that nothing was sent.
const START_MARGIN: Duration = Duration::from_millis(50);
/// The longest back-off of a server that a retry waits for. The first two are at most 1 s and 2 s.
const MAX_AWAITED_RETRY_DELAY: Duration = Duration::from_secs(3);
/// When a caller may retry that needs an instance of its own while there is no room for it.
const INSTANCE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// A tool of a server.
#[derive(Debug)]
pub struct McpTool {
    tool: Arc<ApprovedTool>,
    /// The claim on its bare name, if it is not the stored one.
    released_claim: Option<Box<NameClaim>>,
    /// Parameters that are repeated in headers, determined at the first call because most tools are never called.
    mirrored: OnceLock<Box<[MirroredParameter]>>,
    server: Arc<ManagedServer>,
}

impl McpTool {
    fn new(tool: Arc<ApprovedTool>, server: Arc<ManagedServer>) -> Self {
        Self {
            released_claim: server.released_claim(&tool).map(Box::new),
            tool,
            mirrored: OnceLock::new(),
            server,
        }
    }

    /// Sets `was_sent` unless nothing of the call left this process.
    async fn execute(
        &self,
        request: &ToolCallRequest,
        context: &CallContext,
        was_sent: &mut bool,
    ) -> Result<ToolOutput, ToolError> {
        // Where headers are used, a tool with invalid header parameters is quarantined; elsewhere they have no meaning.
        let mirrored = self
            .mirrored
            .get_or_init(|| mirrored_parameters(&self.tool.spec.input_schema).unwrap_or_default().into());
        let headers = mirrored_headers(mirrored, &request.arguments);
        let call = ToolCall {
            name: &self.tool.spec.name,
            arguments: &request.arguments,
            headers: &headers,
            idle_timeout: self.server.config.call_timeout,
            caller: context.caller.as_ref(),
            deadline: context.extendable_deadline.as_ref(),
            span: context.span,
        };
        let instance = self.instance(context).await?;
        let server = &instance.server;
        let mut place = self.session(server, context).await?;
        let mut result = call_in(server, &place.session, call, context, was_sent).await;
        // The call was not processed, so it may be sent again in a new session.
        if let Err(error) = &result
            && (error.is_session_expired() || (error.had_no_effect() && place.session.closed().is_some()))
        {
            server.expire_session(&place.session);
            drop(place);
            place = self.session(server, context).await?;
            result = call_in(server, &place.session, call, context, was_sent).await;
        }
        if call_needs_modern_session(&result) && server.note_modern_tool(&self.tool.spec.name, &place.session)
        {
            return Err(modern_tool_error(&self.server.config.id));
        }
        if call_lacks_back_channel(&result) {
            let session = Arc::clone(&place.session);
            drop(place);
            // A start that takes longer goes on, and the next call waits for it.
            let change = timeout_at(start_deadline(context), server.gain_back_channel(&session));
            if change.await.unwrap_or(true) {
                return Err(revision_changed_error(&self.server.config.id));
            }
        }
        let result = match result {
            Ok(result) => result,
            Err(RequestError::Transport(failure @ TransportError::SignInRequired { .. })) => {
                return Err(Box::pin(self.sign_in_error(server, failure)).await);
            }
            Err(error) => {
                let (caller_token_error, is_unsent) =
                    (server.caller_token_error(&error), error.was_never_sent());
                let error = caller_token_error.unwrap_or_else(|| error.into_tool_error(&self.server.config));
                return Err(if is_unsent { server.delay_retry_to_next_start(error) } else { error });
            }
        };
        result.into_output().map_err(|error| error.on_source(&self.server.config.id))
    }

    /// The instance that serves the caller.
    async fn instance(&self, context: &CallContext) -> Result<InstanceLease, ToolError> {
        let (identity, caller) = (context.identity.as_ref(), context.caller.as_ref());
        // The usual call neither needs a timer nor carries the state of waiting for an instance.
        if let Some(shared) = self.server.shared_instance_for(identity, caller) {
            return Ok(shared);
        }
        let id = &self.server.config.id;
        let deadline = start_deadline(context);
        let instance = self.server.instance_for(identity, caller, deadline);
        let instance = Box::pin(timeout_at(deadline, instance)).await;
        instance
            .map_err(|_elapsed| still_starting(id))?
            .map_err(|error| unavailable(&error, &self.server.config))
    }

    async fn session(
        &self,
        server: &Arc<ManagedServer>,
        context: &CallContext,
    ) -> Result<CallSession, ToolError> {
        let id = &self.server.config.id;
        let (name, pin) = (&*self.tool.spec.name, self.tool.pin);
        let session = async {
            let usual = match server.connect_for(context.span).await {
                Ok(usual) => usual,
                Err(ConnectError::Transport(failure @ TransportError::SignInRequired { .. })) => {
                    return Err(Box::pin(self.sign_in_error(server, failure)).await);
                }
                Err(error) => {
                    let caller_token_error = server.caller_token_start_error(&error);
                    return Err(caller_token_error.unwrap_or_else(|| server.unavailable_error(&error)));
                }
            };
            if server.is_private() {
                return match Box::pin(server.has_definition(&usual, name, pin)).await {
                    Ok(true) => Ok(CallSession::of_private(usual)),
                    Err(RequestError::Transport(failure @ TransportError::SignInRequired { .. })) => {
                        Err(Box::pin(self.sign_in_error(server, failure)).await)
                    }
                    Ok(false) => Err(server.private_definition_error(name)),
                    // Nobody knows its definition: the next call asks again, in a new session if this one is gone.
                    Err(error) => {
                        if error.is_session_expired() {
                            server.expire_session(&usual);
                        } else {
                            server.replace_if_unreachable(&usual, Some(&error));
                        }
                        Err(definition_unknown(&error, id))
                    }
                };
            }
            server
                .check_may_share(&usual, context.identity.as_deref())
                .map_err(|error| unavailable(&error, &server.config))?;
            let place = server.session_for_call(usual, context.caller.as_ref(), (name, pin)).await;
            server.check_family(name, &place.session)?;
            Ok(place)
        };
        let session = timeout_at(start_deadline(context), session).await;
        let session = session.map_err(|_elapsed| still_starting(id))??;
        self.server.check_tool(name, pin)?;
        Ok(session)
    }
}

impl ManagedServer {
    /// The error of a call whose server did not start.
    fn unavailable_error(&self, error: &ConnectError) -> ToolError {
        let unavailable = unavailable(error, &self.config);
        let may_pass = match error {
            ConnectError::Transport(error) => !error.is_unauthorized(),
            ConnectError::TemporarilyUnavailable { .. } => true,
            other => connect_signal(other) == SourceSignal::Faulty,
        };
        if may_pass { self.delay_retry_to_next_start(unavailable) } else { unavailable }
    }

    /// Lets a retry of the call wait for the next start of the server if that is near: an earlier retry would not contact it.
    fn delay_retry_to_next_start(&self, error: ToolError) -> ToolError {
        let ServerState::Down { retry_at, .. } = self.state() else { return error };
        let delay = retry_at.saturating_duration_since(Instant::now());
        let is_near = !delay.is_zero() && delay <= MAX_AWAITED_RETRY_DELAY;
        if is_near { error.with_retry_after(delay) } else { error }
    }
}

impl McpTool {
    /// The error of a call for which the server has no tokens of the caller, with the page at which the caller can sign in.
    async fn sign_in_error(&self, instance: &Arc<ManagedServer>, failure: TransportError) -> ToolError {
        let TransportError::SignInRequired { reason, challenge } = failure else {
            return RequestError::Transport(failure).into_tool_error(&self.server.config);
        };
        let error = sign_in_error(&reason).on_source(&self.server.config.id);
        let Some(owner) = instance.owner() else { return error };
        let (host, config) = (Arc::clone(&instance.host), instance.config.clone());
        let begin =
            move || host.host_environment.begin_sign_in(&config, &owner.identity(), challenge.as_deref());
        // Variables of the configuration may be stored secrets, which are read from files or a keychain.
        match tokio::task::spawn_blocking(begin).await {
            Ok(Some(link)) => error.with_sign_in(link),
            _ => error,
        }
    }
}

async fn call_in(
    server: &Arc<ManagedServer>,
    session: &Arc<Session>,
    call: ToolCall<'_>,
    context: &CallContext,
    was_sent: &mut bool,
) -> Result<CallResult, RequestError> {
    let unfinished = UnfinishedCall::new(server, session, context);
    let result = session.call_tool(call).await;
    unfinished.finish();
    *was_sent |= !result.as_ref().is_err_and(RequestError::was_never_sent);
    server.replace_if_unreachable(session, result.as_ref().err());
    if server.is_private() {
        let is_fault = result
            .as_ref()
            .err()
            .is_some_and(|error| error.clone().into_tool_error(&server.config).is_source_fault());
        server.record_private_outcome(session, is_fault);
    }
    result
}

/// The error of a caller that gave up; whether the start succeeds is not known yet.
fn still_starting(server: &SourceId) -> ToolError {
    ToolError::new(ErrorKind::Unavailable, "the server is still starting; nothing was sent")
        .with_source_signal(SourceSignal::Unknown)
        .with_operator_hint("raise the limit with --timeout")
        .on_source(server)
}

/// The error of a call whose tool could not be compared with its approved definition.
fn definition_unknown(error: &RequestError, server: &SourceId) -> ToolError {
    let message = format!("the server did not list its tools, so nothing was sent: {error}");
    ToolError::new(ErrorKind::Unavailable, message).on_source(server)
}

/// Until when a call waits for the start of its server.
fn start_deadline(context: &CallContext) -> Instant {
    let deadline = Instant::from_std(context.deadline);
    deadline.checked_sub(START_MARGIN).unwrap_or(deadline)
}

fn unavailable(error: &ConnectError, config: &McpServerConfig) -> ToolError {
    let server = &config.id;
    let hint = match error {
        ConnectError::Transport(error) if error.is_unauthorized() => login_hint(server),
        ConnectError::Configuration(_) | ConnectError::NotConfigured | ConnectError::Disabled => {
            format!("see `toolyard servers show {server}`")
        }
        ConnectError::TemporarilyUnavailable { .. } | ConnectError::Cancelled => {
            format!("retry now: toolyard servers test {server}")
        }
        ConnectError::TooManyInstances(_) | ConnectError::Displaced(_) => {
            "raise `[isolation] max_instances`".to_owned()
        }
        _ if config.has_log() => {
            format!("try `toolyard servers test {server}` · logs: toolyard servers logs {server}")
        }
        _ => format!("try `toolyard servers test {server}`"),
    };
    if let ConnectError::Transport(TransportError::CallerHeader(error)) = error {
        return caller_header_error(error).on_source(server);
    }
    let kind = match error {
        ConnectError::Displaced(_) => ErrorKind::SessionLost,
        _ => ErrorKind::Unavailable,
    };
    let unavailable = ToolError::new(kind, error.to_string()).with_operator_hint(hint);
    let unavailable = match error {
        ConnectError::Transport(error) if error.is_unauthorized() => {
            unavailable.with_caller_hint(LOGIN_CALLER_HINT).with_retryable(false)
        }
        ConnectError::Configuration(_) | ConnectError::Disabled => unavailable
            .with_caller_hint("the operator must change the settings of the server")
            .with_retryable(false),
        ConnectError::NotConfigured => unavailable.with_retryable(false),
        ConnectError::Displaced(_) => {
            unavailable.with_caller_hint("begin anew: the next call starts a new session with the server")
        }
        ConnectError::TooManyInstances(_) => unavailable
            .with_caller_hint("retry when other calls have finished")
            .with_retry_after(INSTANCE_RETRY_DELAY),
        _ => unavailable,
    };
    unavailable.with_source_signal(connect_signal(error)).on_source(server)
}

/// A call that is refused while the server waits for its next start says nothing new: if such calls counted against the
/// source, its circuit breaker would stay open after the server has returned.
fn connect_signal(error: &ConnectError) -> SourceSignal {
    match error {
        ConnectError::TemporarilyUnavailable { .. }
        | ConnectError::TooManyInstances(_)
        | ConnectError::Displaced(_)
        | ConnectError::Configuration(_)
        | ConnectError::NotConfigured
        | ConnectError::Disabled
        | ConnectError::Cancelled => SourceSignal::Unknown,
        _ => SourceSignal::Faulty,
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.tool.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let mut was_sent = false;
            let outcome = self.execute(request, context, &mut was_sent).await;
            // Not by the kind of the error, which a server can choose.
            outcome.map_err(|error| if was_sent { error } else { error.mark_never_sent() })
        })
    }

    fn name_claim(&self) -> Option<&NameClaim> {
        Some(self.released_claim.as_deref().unwrap_or(&self.tool.claim))
    }

    fn is_isolated(&self, identity: Option<&CallerIdentity>) -> bool {
        self.server.is_isolated(identity)
    }

    fn is_stateful(&self) -> bool {
        self.server.is_stateful()
    }
}

/// Whether clients and agents get an approved tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOffer {
    /// The tool is offered.
    Offered,
    /// The settings of the server exclude the tool.
    Excluded,
    /// The tool can only be called as a task, and calls are not made as tasks.
    TaskOnly,
}

impl ManagedServer {
    /// Whether an approved tool of this server is offered.
    pub fn offer(&self, spec: &ToolSpec) -> ToolOffer {
        if !self.config.tools.allows(&spec.name) {
            ToolOffer::Excluded
        } else if requires_task(spec) {
            ToolOffer::TaskOnly
        } else {
            ToolOffer::Offered
        }
    }

    /// The claim of an approved tool on its bare name, as it counts now.
    pub fn name_claim(&self, tool: &ApprovedTool) -> NameClaim {
        self.released_claim(tool).unwrap_or_else(|| tool.claim.clone())
    }

    fn released_claim(&self, tool: &ApprovedTool) -> Option<NameClaim> {
        self.shared.exclusions.lock().released_claim(&tool.spec.name, &tool.claim)
    }

    /// Whether a stored claim of its tools yields to another source.
    pub(super) fn yields_names(&self) -> bool {
        self.tool_approvals().approved().iter().any(|tool| tool.claim.yields_to.is_some())
    }

    /// Registers the approved tools, all at once.
    pub(super) fn register_tools(self: &Arc<Self>) {
        // Of two changes at once, the later one must not register what it read before the other.
        let _guard = self.register_lock.lock();
        let SourceTools { source, tools, quarantined } = self.source_tools();
        // Registered under the lock, so that the tools of a retired server do not come back.
        let state = self.state.lock();
        if state.lifecycle.is_active() {
            self.host.registrar.replace_with_quarantined(source, tools, quarantined);
        }
    }

    /// The approved tools and those that await approval, as they are registered.
    pub(super) fn source_tools(self: &Arc<Self>) -> SourceTools {
        let approvals = self.tool_approvals();
        let tools = approvals
            .approved()
            .iter()
            .filter(|tool| self.offer(&tool.spec) == ToolOffer::Offered)
            .map(|tool| Arc::new(McpTool::new(Arc::clone(tool), Arc::clone(self))) as Arc<dyn Tool>)
            .collect();
        let source = SourceInfo::new(self.config.id.clone(), SourceKind::Mcp)
            .trusted(self.config.trusted)
            .exclusive(self.config.exclusive)
            .scope(self.host.scope(&self.config))
            .working_folder(self.host.working_folder(&self.config));
        let mut quarantined = approvals.quarantine_notices();
        quarantined.retain(|notice| self.config.tools.allows(&notice.tool));
        SourceTools { source, tools, quarantined }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_refused_before_the_next_start_does_not_count_against_the_server() {
        let excel = McpServerConfig::stdio("excel", "excel-server", [""; 0]);
        let waiting = ConnectError::TemporarilyUnavailable {
            reason: "cannot reach the server".to_owned(),
            retry_in: Duration::from_secs(3),
        };
        for error in [waiting, ConnectError::Cancelled, ConnectError::Disabled, ConnectError::NotConfigured] {
            let error = unavailable(&error, &excel);
            assert_eq!(
                (error.kind(), error.source_signal()),
                (ErrorKind::Unavailable, SourceSignal::Unknown)
            );
        }
        let failed = ConnectError::TimedOut { after: Duration::from_secs(1), stderr: String::new() };
        assert!(unavailable(&failed, &excel).is_source_fault());
    }

    #[test]
    fn a_start_that_needs_the_operator_is_not_retried() {
        let excel = McpServerConfig::stdio("excel", "excel-server", [""; 0]);
        let unauthorized = TransportError::Status {
            status: 401,
            error: None,
            excerpt: None,
            challenge: None,
            retry_after_seconds: None,
        };
        let unset = ConnectError::Configuration("the variable EXCEL_KEY is not set".to_owned());
        let unauthorized = ConnectError::Transport(unauthorized);
        for error in [unauthorized, unset, ConnectError::Disabled, ConnectError::NotConfigured] {
            assert!(!unavailable(&error, &excel).retryable(), "{error}");
        }
        assert!(unavailable(&ConnectError::Cancelled, &excel).retryable());
    }
}
