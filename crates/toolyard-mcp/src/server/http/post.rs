//! A POST to the endpoint: one message, in whichever era it is written.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use super::{
    super::{
        ServedEras,
        answer::{Outcome, Pieces},
        asked::Asked,
        era::{Said, era_of, modern_speaker, stranger},
        methods::Begun,
        params::Params,
        room::Room,
        session::{Seat, session_id},
        speaker::{Era, Speaker, fields},
        work::{Step, Work},
    },
    body::{Answer, Beat, Events, event, last_event},
    connection::{Accepts, Connection, Session, accepts, unknown_session},
    mirror::check_headers,
    respond,
};
use crate::wire::{Message, RequestId, WireError, WireLimits};

/// The one revision that allowed several messages at once.
const BATCHES: &str = "2025-03-26";

impl Connection {
    /// Answers a POST to the endpoint.
    pub(super) async fn post(&self, mut request: Request<Incoming>, room: &Arc<Room>) -> Response<Answer> {
        let headers = std::mem::take(request.headers_mut());
        let takes = accepts(&headers);
        if !is_json(&headers) {
            let text = "messages are sent as Content-Type: application/json";
            return respond::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, text);
        }
        if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| coding != "identity") {
            let text = "messages are sent as they are, without Content-Encoding";
            return respond::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, -32000, text);
        }
        if !takes.json && !takes.events {
            let text = "answers are application/json or text/event-stream: name both in Accept";
            return respond::refusal(StatusCode::NOT_ACCEPTABLE, -32000, text);
        }
        let text = match self.read_text(request).await {
            Ok(text) => text,
            Err(response) => return response,
        };
        let is_batch = text.trim_ascii_start().starts_with('[');
        let limits = &self.http.server.config.limits;
        let wire =
            WireLimits { message_bytes: limits.message_bytes, depth: limits.depth, ..WireLimits::default() };
        match Message::read(text, &wire) {
            Ok(messages) if is_batch => self.take_batch(&headers, room, messages).await,
            Ok(mut messages) => match messages.pop() {
                Some(Message::Request { id, method, params }) => {
                    self.take_request(&headers, room, takes, id, method, Params::read(params)).await
                }
                Some(message) => self.take_word(&headers, room, message),
                None => respond::status(StatusCode::BAD_REQUEST),
            },
            Err(error) => not_understood(&error),
        }
    }

    /// Takes what needs no answer: notifications, and answers to questions of ours.
    fn take_word(&self, headers: &HeaderMap, room: &Arc<Room>, message: Message) -> Response<Answer> {
        let conversation = match self.session(headers, room) {
            Session::Known(speaker) => Some(speaker.conversation),
            Session::None => None,
            Session::Unknown => return unknown_session(),
        };
        let server = &self.http.server;
        match (message, conversation) {
            (Message::Response { id: Some(id), outcome }, Some(conversation)) => {
                if server.questions.answer(conversation, id, outcome) {
                    respond::status(StatusCode::ACCEPTED)
                } else {
                    nothing_asked()
                }
            }
            (Message::Response { .. }, _) => nothing_asked(),
            (Message::Notification { method, params: Some(params) }, Some(conversation))
                if method == "notifications/cancelled" =>
            {
                // What was read before a fault counts.
                let _ = fields(params.get(), |key, value| {
                    if key == "requestId" {
                        server.flights.cancel(conversation, value.get());
                    }
                    Ok(())
                });
                respond::status(StatusCode::ACCEPTED)
            }
            _ => respond::status(StatusCode::ACCEPTED),
        }
    }

    async fn take_request(
        &self,
        headers: &HeaderMap,
        room: &Arc<Room>,
        takes: Accepts,
        id: RequestId,
        method: String,
        mut params: Params,
    ) -> Response<Answer> {
        let speaker = match self.speaker(headers, room, &method, &mut params) {
            Ok(speaker) => speaker,
            Err(Refused::Outcome(outcome)) => return respond::outcome(&id, outcome),
            Err(Refused::Session) => return unknown_session(),
        };
        let era = speaker.era();
        if method == "initialize" && era == Era::Legacy {
            return self.introduce(room, takes, &id, &params);
        }
        let (room, principal) = (Arc::clone(room), self.http.principal);
        let can_say = takes.events;
        let asked = Asked { room, principal, speaker, id, method, params, can_say };
        if era == Era::Modern
            && let Err(outcome) = check_headers(headers, &asked)
        {
            return respond::outcome(&asked.id, outcome);
        }
        let (id, room) = (asked.id.clone(), Arc::clone(&asked.room));
        match self.http.server.begin(asked) {
            Begun::Done(outcome) => whole(takes, &id, outcome),
            Begun::Works(work) if era == Era::Legacy => {
                let work = work.in_flight(&self.http.server.flights, &id, true);
                self.carry_out(takes, room, id, work).await
            }
            Begun::Works(work) => self.carry_out(takes, room, id, work).await,
        }
    }

    /// Who makes a request; parameters keep what they say about it otherwise.
    fn speaker(
        &self,
        headers: &HeaderMap,
        room: &Arc<Room>,
        method: &str,
        params: &mut Params,
    ) -> Result<Arc<Speaker>, Refused> {
        let meta = params.meta.as_ref().and_then(|meta| meta.version.as_deref());
        let header = Self::version(headers);
        let said = Said { method, header, meta, over_http: true };
        match era_of(self.http.server.config.eras, said)? {
            Era::Modern => {
                let (speaker, meta) = modern_speaker(params.meta.take(), None)?;
                params.meta = Some(meta);
                Ok(Arc::new(speaker))
            }
            // Whoever introduces itself anew has no session yet, whatever it still sends.
            Era::Legacy if method == "initialize" => Ok(stranger(header, fastrand::u64(..))),
            Era::Legacy => match self.session(headers, room) {
                Session::Known(speaker) => Ok(speaker),
                Session::None => Ok(stranger(header, fastrand::u64(..))),
                Session::Unknown => Err(Refused::Session),
            },
        }
    }

    /// Answers `initialize` with a session.
    fn introduce(
        &self,
        room: &Arc<Room>,
        takes: Accepts,
        id: &RequestId,
        params: &Params,
    ) -> Response<Answer> {
        let server = &self.http.server;
        let (outcome, speaker) = server.introduce(room, params);
        let seat = Seat { profile: &room.profile, principal: &self.http.principal };
        let session = session_id(&server.config.sessions, &seat, &speaker);
        let Some(session) = session.and_then(|session| HeaderValue::try_from(session).ok()) else {
            return respond::outcome(id, Outcome::error(-32603, "no session could be made"));
        };
        let mut response = whole(takes, id, outcome);
        response.headers_mut().insert(&respond::SESSION, session);
        response
    }

    /// Drives a work in this very task. As soon as it says something, the answer becomes a stream that drives it on.
    async fn carry_out(
        &self,
        takes: Accepts,
        room: Arc<Room>,
        id: RequestId,
        mut work: Work,
    ) -> Response<Answer> {
        let server = &self.http.server;
        loop {
            match work.next().await {
                Step::Said(said) if takes.events => {
                    let events = Events {
                        server: Arc::clone(server),
                        room,
                        principal: self.http.principal,
                        id: Some(id),
                        work: Some(work),
                        first: Some(event(&said)),
                        beat: Beat::new(self.http.config.stream_beat),
                    };
                    return respond::stream(Answer::Events(Box::new(events)));
                }
                Step::Said(_) => {}
                Step::Asks => {
                    let seat = Seat { profile: &room.profile, principal: &self.http.principal };
                    return whole(takes, &id, server.park(&seat, work));
                }
                Step::Ended(outcome) => return whole(takes, &id, outcome),
                // Nobody waits for an answer.
                Step::Cancelled => return respond::status(StatusCode::ACCEPTED),
            }
        }
    }

    /// Answers several messages at once, which only one revision allowed.
    async fn take_batch(
        &self,
        headers: &HeaderMap,
        room: &Arc<Room>,
        messages: Vec<Message>,
    ) -> Response<Answer> {
        let speaker = match self.session(headers, room) {
            Session::Known(speaker) => speaker,
            Session::None => stranger(Self::version(headers), fastrand::u64(..)),
            Session::Unknown => return unknown_session(),
        };
        // Headers of another revision would promise checks that messages in a batch do not get.
        let other = Self::version(headers).is_some_and(|version| version != BATCHES);
        if other || speaker.version != BATCHES || self.http.server.config.eras == ServedEras::Modern {
            let text = "batches were part of 2025-03-26 only: send messages one by one";
            return respond::refusal(StatusCode::BAD_REQUEST, -32600, text);
        }
        let mut answers = Vec::new();
        for message in messages {
            let Message::Request { id, method, params } = message else {
                self.take_word(headers, room, message);
                continue;
            };
            let (room, principal, speaker) = (Arc::clone(room), self.http.principal, Arc::clone(&speaker));
            let params = Params::read(params);
            let asked = Asked {
                room: Arc::clone(&room),
                principal,
                speaker,
                id: id.clone(),
                method,
                params,
                can_say: false,
            };
            answers.push(async move {
                let outcome = match self.http.server.begin(asked) {
                    Begun::Done(outcome) => Some(outcome),
                    Begun::Works(work) => {
                        let work = work.in_flight(&self.http.server.flights, &id, true);
                        let seat = Seat { profile: &room.profile, principal: &principal };
                        self.http.server.finish(&seat, work, |_| std::future::ready(())).await
                    }
                };
                outcome.map(|outcome| outcome.pieces(&id).line(b"", b""))
            });
        }
        if answers.is_empty() {
            return respond::status(StatusCode::ACCEPTED);
        }
        let answers = futures_util::future::join_all(answers).await;
        let texts: Vec<bytes::Bytes> = answers.into_iter().flatten().collect();
        let body = [b"[".as_slice(), &texts.join(b",".as_slice()), b"]"].concat();
        respond::message(StatusCode::OK, Pieces { head: body.into(), ..Pieces::default() })
    }
}

/// Why nobody can be found who makes a request.
enum Refused {
    Outcome(Outcome),
    Session,
}

impl From<Outcome> for Refused {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// An answer in the form that the client takes.
fn whole(takes: Accepts, id: &RequestId, outcome: Outcome) -> Response<Answer> {
    if takes.json {
        return respond::outcome(id, outcome);
    }
    let only = Pieces { head: last_event(&outcome.pieces(id)), ..Pieces::default() };
    respond::stream(Answer::whole(only))
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// That an answer came to a question that nobody asked, or does not ask any more, or asked in another process.
fn nothing_asked() -> Response<Answer> {
    let text = "this answers nothing that is asked here at this moment";
    respond::refusal(StatusCode::BAD_REQUEST, -32600, text)
}

fn not_understood(error: &WireError) -> Response<Answer> {
    let code = if matches!(error, WireError::NotJson(_)) { -32700 } else { -32600 };
    respond::refusal(StatusCode::BAD_REQUEST, code, &error.to_string())
}
