//! One request as it came in, with everything that is known about whoever made it.

use std::sync::Arc;

use super::{
    McpServer,
    answer::Outcome,
    line::{Hears, Line},
    params::Params,
    room::Room,
    session::Seat,
    speaker::{Era, Speaker},
    state::{Marked, RequestState},
    tool_call::foreign_state,
    work::{Step, Work},
};
use crate::wire::{JsonObject, RequestId};

/// One request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) room: Arc<Room>,
    pub(super) principal: [u8; 32],
    pub(super) speaker: Arc<Speaker>,
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Params,
    /// Whether anything but the answer can be sent.
    pub(super) can_say: bool,
}

impl Asked {
    pub(super) fn seat(&self) -> Seat<'_> {
        Seat { profile: &self.room.profile, principal: &self.principal }
    }

    /// What the client wants to hear while its request is worked on.
    fn hears(&self, server: &McpServer) -> Hears {
        let meta = self.params.meta.as_ref();
        let log = match self.speaker.era() {
            Era::Modern => meta.and_then(|meta| meta.log_level),
            Era::Legacy => Some(server.clients.log_level(self.speaker.conversation)),
        };
        Hears { progress: meta.and_then(|meta| meta.progress_token.clone()), log }
    }

    /// What tells the request from others.
    pub(super) fn marked(&self) -> Marked {
        let params = &self.params;
        let about = params.name.as_deref().or(params.uri.as_deref()).unwrap_or_default().to_owned();
        Marked { method: self.method.clone(), about, arguments: params.arguments.clone() }
    }
}

impl McpServer {
    /// The line to whoever made a request.
    pub(super) fn line(&self, asked: &Asked) -> Line {
        let (speaker, questions) = (Arc::clone(&asked.speaker), Arc::clone(&self.questions));
        let mut line = Line::new(speaker, questions, asked.hears(self));
        line.can_say = asked.can_say;
        line.can_ask = matches!(asked.method.as_str(), "tools/call" | "prompts/get" | "resources/read");
        line.queued = self.config.limits.queued;
        line.trace = asked.params.meta.as_ref().map(|meta| meta.trace.clone()).unwrap_or_default();
        // Whoever offers nothing is never asked.
        let may_wait = asked.speaker.era() == Era::Modern && line.can_ask;
        line.request = (may_wait && asked.speaker.offers != Default::default()).then(|| asked.marked());
        line
    }

    /// What was sealed for this very request.
    pub(super) fn open_state(&self, asked: &Asked, sealed: &str) -> Option<RequestState> {
        let (keys, age) = (&self.config.sessions, self.config.limits.parked_for);
        RequestState::open(keys, &asked.seat(), &asked.marked(), sealed, age)
    }

    /// Goes on with a call that waits here, now that its caller is back.
    pub(super) fn resume(&self, asked: &Asked, instance: u64, number: u64) -> Result<Work, Outcome> {
        let waiting = if instance == self.instance { self.parked.take(number) } else { None };
        let work = waiting.ok_or_else(foreign_state)?;
        work.line.set_hears(asked.hears(self));
        if let Some(responses) = &asked.params.responses {
            work.line.give(responses);
        }
        Ok(work)
    }

    /// Lets a call wait for its caller's answers, and says what they are to be.
    pub(super) fn park(&self, seat: &Seat<'_>, work: Work) -> Outcome {
        let mut requests = JsonObject::new();
        for (key, question) in work.line.open_questions() {
            let mut request = JsonObject::new().with_text("method", &question.method);
            request = match &question.params {
                Some(params) => request.with_raw("params", params),
                None => request.with_object("params", &JsonObject::new()),
            };
            requests = requests.with_object(&key, &request);
        }
        let limits = &self.config.limits;
        let Some(request) = work.line.request.clone() else {
            return Outcome::error(-32603, "this request may not ask anything");
        };
        let Some(number) = self.parked.park(work, limits.parked, limits.parked_for) else {
            return Outcome::error(
                -32603,
                "too many calls wait for answers already; whether this one had an effect is not known",
            );
        };
        let state = RequestState::Parked { instance: self.instance, number };
        let Some(sealed) = state.seal(&self.config.sessions, seat, &request) else {
            return Outcome::error(-32603, "the state could not be sealed");
        };
        let result = JsonObject::new()
            .with_text("resultType", "input_required")
            .with_object("inputRequests", &requests)
            .with_text("requestState", &sealed);
        Outcome::result(result.to_string())
    }

    /// Drives a work to its answer and gives everything that is said on the way to `say`. None if nobody wants it any
    /// more.
    pub(super) async fn finish<F>(
        &self,
        seat: &Seat<'_>,
        mut work: Work,
        mut say: impl FnMut(bytes::Bytes) -> F,
    ) -> Option<Outcome>
    where
        F: Future<Output = ()>,
    {
        loop {
            match work.next().await {
                Step::Said(said) => say(said).await,
                Step::Asks => return Some(self.park(seat, work)),
                Step::Ended(outcome) => return Some(outcome),
                Step::Cancelled => return None,
            }
        }
    }
}
