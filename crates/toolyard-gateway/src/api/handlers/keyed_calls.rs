//! [`KeyedCalls`]: tool calls with an `Idempotency-Key`. This process answers a repeated request with the stored answer, for a day or
//! until the caller has used 1,000 newer keys. A failed call that is safe to repeat is made again.
//!
//! Unlike a run, a call is in no log from which its result could be read again, so keys and answers are in memory only: another
//! process, or this one after a restart, does not know them.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_core::{ContentHash, ErrorKind, ToolError};
use toolyard_hub::PendingEffect;
use toolyard_mcp_server::{RouteBody, RouteRequest, RouteResponse};

use crate::{
    agents::{ApiError, IdempotencyError, RequestIdentity},
    api::error_code::ErrorCode,
};

/// How long a repeated call is recognized.
const RETENTION: Duration = Duration::from_hours(24);
/// Of these, the oldest one that has ended makes room for another one of the same caller.
const MAX_KEYS_PER_CALLER: usize = 1_000;
/// Of all callers. None makes room for the key of another caller, whose call could then be made twice.
const MAX_KEYS: usize = 20_000;
/// When a request whose key found no room may be repeated.
const NO_ROOM_RETRY_AFTER: Duration = Duration::from_mins(1);
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// All answers together. Without its answer, a call is still recognized.
const MAX_TOTAL_ANSWER_BYTES: usize = 32 << 20;

/// The calls with a key. Cheap to clone.
#[derive(Clone)]
pub(in crate::api) struct KeyedCalls {
    /// Oldest first.
    calls: Arc<Mutex<VecDeque<KeyedCall>>>,
    max_per_caller: usize,
    max_total: usize,
}

struct KeyedCall {
    owner: ContentHash,
    key: ContentHash,
    content: ContentHash,
    received_at: Instant,
    state: CallState,
}

enum CallState {
    Running,
    Answered(StoredAnswer),
    /// The call was made; its answer is too large, or has made room for newer ones.
    Executed,
}

struct StoredAnswer {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
}

pub(super) enum CallLookup {
    /// The call is to be made. Without a key there is no reservation.
    New(Option<CallReservation>),
    /// The answer to an earlier, equal request.
    Repeated(RouteResponse),
}

/// A call that is being made. If it is dropped before it is completed or released, the outcome of the call is unknown, unless no call with
/// side effects had started.
pub(super) struct CallReservation {
    calls: KeyedCalls,
    key: ContentHash,
    pending_effect: Arc<PendingEffect>,
    is_complete: bool,
}

/// Whether a call that failed like this may be made again: nothing was called, or the tool is known to be safe to repeat. If it were
/// not, the hub would have reported the outcome as unknown.
pub(super) fn may_be_repeated(error: &ToolError) -> bool {
    error.had_no_effect() || matches!(error.kind(), ErrorKind::Timeout | ErrorKind::ResponseLost)
}

impl KeyedCalls {
    /// Reserves the call of a tool, unless a request with its key was received before.
    pub(super) fn reserve(&self, tool: &str, request: &RouteRequest) -> Result<CallLookup, ApiError> {
        let identity = RequestIdentity::from_request(&format!("/tools/{tool}/call"), request)?;
        let fingerprint = identity.fingerprint();
        let Some(key) = fingerprint.idempotency_key else { return Ok(CallLookup::New(None)) };
        let (owner, now) = (*request.identity.owner(), Instant::now());
        let mut calls = self.lock();
        calls.retain(|call| !call.is_expired(now));
        if let Some(earlier) = calls.iter().find(|call| call.key == key) {
            return earlier.answer_to(&fingerprint.content).map(CallLookup::Repeated);
        }
        if calls.iter().filter(|call| call.owner == owner).count() >= self.max_per_caller {
            // A call that is being made has no answer yet, so it must stay.
            let oldest = calls.iter().position(|call| call.owner == owner && !call.is_running());
            calls.remove(oldest.ok_or_else(too_many_keys)?);
        }
        if calls.len() >= self.max_total {
            return Err(too_many_keys());
        }
        let (content, state) = (fingerprint.content, CallState::Running);
        calls.push_back(KeyedCall { owner, key, content, received_at: now, state });
        drop(calls);
        let (calls, pending_effect) = (self.clone(), Arc::default());
        Ok(CallLookup::New(Some(CallReservation { calls, key, pending_effect, is_complete: false })))
    }

    fn store(&self, key: &ContentHash, answer: Option<StoredAnswer>) {
        let mut calls = self.lock();
        if let Some(call) = calls.iter_mut().rev().find(|call| call.key == *key) {
            call.state = answer.map_or(CallState::Executed, CallState::Answered);
        }
        let total: usize = calls.iter().map(KeyedCall::answer_bytes).sum();
        let mut excess = total.saturating_sub(MAX_TOTAL_ANSWER_BYTES);
        for call in calls.iter_mut().filter(|call| matches!(call.state, CallState::Answered(_))) {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(call.answer_bytes());
            call.state = CallState::Executed;
        }
    }

    fn remove(&self, key: &ContentHash) {
        let mut calls = self.lock();
        if let Some(position) = calls.iter().rposition(|call| call.key == *key) {
            calls.remove(position);
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<KeyedCall>> {
        self.calls.lock()
    }
}

impl Default for KeyedCalls {
    fn default() -> Self {
        Self { calls: Arc::default(), max_per_caller: MAX_KEYS_PER_CALLER, max_total: MAX_KEYS }
    }
}

/// Answers are private.
impl fmt::Debug for KeyedCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyedCalls").finish_non_exhaustive()
    }
}

impl KeyedCall {
    fn is_running(&self) -> bool {
        matches!(self.state, CallState::Running)
    }

    fn is_expired(&self, now: Instant) -> bool {
        !self.is_running() && now.saturating_duration_since(self.received_at) > RETENTION
    }

    fn answer_bytes(&self) -> usize {
        match &self.state {
            CallState::Answered(answer) => answer.body.len(),
            CallState::Running | CallState::Executed => 0,
        }
    }

    /// The answer to a later request with the same key.
    fn answer_to(&self, content: &ContentHash) -> Result<RouteResponse, ApiError> {
        if self.content != *content {
            return Err(IdempotencyError::KeyReused.into());
        }
        match &self.state {
            CallState::Answered(answer) => Ok(answer.to_response()),
            CallState::Running => Err(ApiError::conflict(
                ErrorCode::AlreadyStarted,
                "the call with this Idempotency-Key is still running, and is not made again",
            )),
            CallState::Executed => {
                let error = ApiError::conflict(
                    ErrorCode::AlreadyExecuted,
                    "the tool call with this Idempotency-Key was executed, but its answer is not stored; it was not repeated",
                );
                let hint = "look up what the call did; use a new key to call the tool once more";
                Err(ApiError { hint: Some(hint.to_owned()), ..error })
            }
        }
    }
}

impl StoredAnswer {
    /// `None` if the answer is too large to be kept.
    fn new(response: &RouteResponse) -> Option<Self> {
        let RouteBody::Json(body) = &response.body else { return None };
        let RouteResponse { status, headers, .. } = response;
        (body.len() <= MAX_ANSWER_BYTES).then(|| Self {
            status: *status,
            headers: headers.clone(),
            body: body.clone(),
        })
    }

    fn to_response(&self) -> RouteResponse {
        let body = RouteBody::Json(self.body.clone());
        RouteResponse { status: self.status, headers: self.headers.clone(), body }
    }
}

impl CallReservation {
    /// To be set by the call.
    pub(super) fn pending_effect(&self) -> Arc<PendingEffect> {
        Arc::clone(&self.pending_effect)
    }

    /// Keeps the answer for repeated requests.
    pub(super) fn complete(mut self, answer: &RouteResponse) {
        self.calls.store(&self.key, StoredAnswer::new(answer));
        self.is_complete = true;
    }

    /// Forgets the call, so that it can be repeated.
    pub(super) fn release(mut self) {
        self.calls.remove(&self.key);
        self.is_complete = true;
    }
}

impl Drop for CallReservation {
    fn drop(&mut self) {
        match (self.is_complete, self.pending_effect.has_started()) {
            (true, _) => {}
            (false, true) => self.calls.store(&self.key, StoredAnswer::new(&interrupted().into())),
            (false, false) => self.calls.remove(&self.key),
        }
    }
}

/// The error for a key that finds no room.
fn too_many_keys() -> ApiError {
    let message = "too many Idempotency-Keys are in use; nothing was called";
    let error = ApiError::quota_exceeded(message, NO_ROOM_RETRY_AFTER);
    ApiError { code: Some(ErrorCode::TooManyKeys), ..error }
}

/// The answer to repetitions of a call that was cancelled: its client disconnected, or the gateway stops.
fn interrupted() -> ApiError {
    let error = ApiError::failed(
        ErrorCode::OutcomeUnknown,
        "the call was interrupted; whether it took effect is not known",
    );
    ApiError { status: StatusCode::BAD_GATEWAY, ..error }
}

#[cfg(test)]
#[path = "keyed_calls_tests.rs"]
mod tests;
