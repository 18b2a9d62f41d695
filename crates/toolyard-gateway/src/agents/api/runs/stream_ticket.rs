//! [`StreamTickets`]: tickets for the events of one run, which the `EventSource` of a browser sends in its URL because it cannot send
//! a token. URLs end up in the logs of proxies, so a ticket opens little and expires soon.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use aws_lc_rs::rand;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderValue, Method, StatusCode, header::CACHE_CONTROL};
use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use tokio::time::Instant;
use toolyard_core::{CallerIdentity, ContentHash, RunId};
use toolyard_mcp_server::RouteResponse;
use utoipa::ToSchema;

use super::state::READ_TIMEOUT;
use crate::{
    agents::{
        active_runs::ActiveRuns,
        api::error::{ApiError, before, json_of},
    },
    api::error_code::ErrorCode,
};

const TICKET_LIFETIME: Duration = Duration::from_secs(60);
const TICKET_BYTES: usize = 16;
/// Of tickets that have not expired. None makes room for another one: the page that has it may reconnect.
const MAX_TICKETS_PER_CALLER: usize = 1_000;
const MAX_TICKETS: usize = 10_000;

/// The tickets of this process, oldest first. Only their hashes are kept.
#[derive(Debug, Default)]
pub(in crate::agents::api) struct StreamTickets(Mutex<VecDeque<StreamTicket>>);

#[derive(Debug)]
struct StreamTicket {
    hash: ContentHash,
    run: RunId,
    /// Without the token that the caller presented.
    identity: Arc<CallerIdentity>,
    expires_at: Instant,
}

/// A ticket for the events of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::agents::api) struct CreatedStreamTicket {
    /// To be sent as `?ticket=` of the run's `events`, also when the `EventSource` reconnects.
    ticket: String,
    /// Seconds until it expires. A stream that is open then goes on.
    expires_in: u64,
}

impl StreamTickets {
    fn issue(&self, run: &RunId, identity: &CallerIdentity) -> Result<String, ApiError> {
        let mut bytes = [0; TICKET_BYTES];
        rand::fill(&mut bytes).map_err(|_| {
            ApiError::internal(
                "failed to create a stream ticket: the system's random number generator failed",
            )
        })?;
        let ticket = URL_SAFE_NO_PAD.encode(bytes);
        let mut tickets = self.lock();
        let now = Instant::now();
        remove_expired(&mut tickets, now);
        let is_own = |ticket: &&StreamTicket| ticket.identity.owner() == identity.owner();
        let first_to_expire = if tickets.len() >= MAX_TICKETS {
            tickets.front()
        } else if tickets.iter().filter(is_own).count() >= MAX_TICKETS_PER_CALLER {
            tickets.iter().find(is_own)
        } else {
            None
        };
        if let Some(oldest) = first_to_expire {
            return Err(too_many_tickets(oldest.expires_at.saturating_duration_since(now)));
        }
        let hash = ContentHash::of(&ticket);
        let (run, identity) = (run.clone(), Arc::new(identity.without_presented_token()));
        tickets.push_back(StreamTicket { hash, run, identity, expires_at: now + TICKET_LIFETIME });
        Ok(ticket)
    }

    /// To whom the ticket in this query was issued, if the request is for the events of its run.
    pub(in crate::agents::api) fn holder(
        &self,
        method: &Method,
        path: &str,
        query: &str,
    ) -> Option<Arc<CallerIdentity>> {
        if *method != Method::GET {
            return None;
        }
        let run = path.strip_prefix("/api/v1/runs/")?.strip_suffix("/events")?;
        let presented = query.split('&').find_map(|parameter| parameter.strip_prefix("ticket="))?;
        let hash = ContentHash::of(presented);
        let is_valid = |ticket: &&StreamTicket| ticket.hash == hash && ticket.run.as_str() == run;
        let mut tickets = self.lock();
        remove_expired(&mut tickets, Instant::now());
        tickets.iter().find(is_valid).map(|ticket| Arc::clone(&ticket.identity))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<StreamTicket>> {
        self.0.lock()
    }
}

fn remove_expired(tickets: &mut VecDeque<StreamTicket>, now: Instant) {
    while tickets.front().is_some_and(|oldest| oldest.expires_at <= now) {
        tickets.pop_front();
    }
}

fn too_many_tickets(retry_after: Duration) -> ApiError {
    let message = "too many unexpired stream tickets; retry later";
    ApiError { code: Some(ErrorCode::TooManyTickets), ..ApiError::quota_exceeded(message, retry_after) }
}

/// `POST /runs/ID/stream-ticket`.
pub(in crate::agents::api) async fn create(
    runs: &ActiveRuns,
    tickets: &StreamTickets,
    run: &RunId,
    identity: &Arc<CallerIdentity>,
) -> Result<RouteResponse, ApiError> {
    // A run that does not exist has no ticket.
    before(Instant::now() + READ_TIMEOUT, runs.config.log.run(run)).await?;
    let expires_in = TICKET_LIFETIME.as_secs();
    let created = CreatedStreamTicket { ticket: tickets.issue(run, identity)?, expires_in };
    let mut response = json_of(StatusCode::OK, &created);
    response.headers.push((CACHE_CONTROL, HeaderValue::from_static("no-store")));
    Ok(response)
}

#[cfg(test)]
#[path = "stream_ticket_tests.rs"]
mod tests;
