//! A conversation over two streams, one for each direction: standard input and output, and the first revision's HTTP.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    McpServer,
    answer::{Outcome, error_without_id},
    asked::Asked,
    era::{Said, era_of, modern_speaker, stranger},
    line::{Hears, Line},
    methods::Begun,
    params::Params,
    room::Room,
    session::Seat,
    speaker::{Era, Speaker, fields},
    work::{Step, Work},
};
use crate::wire::{Message, RequestId, WireError, WireLimits};

/// One client's conversation. Everything under way ends when it is dropped.
#[derive(Debug)]
pub(super) struct Duplex {
    server: Arc<McpServer>,
    room: Arc<Room>,
    principal: [u8; 32],
    conversation: u64,
    /// Who introduced itself, in the legacy era.
    speaker: Mutex<Option<Arc<Speaker>>>,
    /// Messages for the client, each on one line.
    out: mpsc::Sender<Bytes>,
    /// Requests that come to an end, and what never does.
    tasks: Mutex<JoinSet<()>>,
    standing: Mutex<JoinSet<()>>,
}

impl Duplex {
    pub(super) fn new(
        server: Arc<McpServer>,
        room: Arc<Room>,
        principal: [u8; 32],
        out: mpsc::Sender<Bytes>,
    ) -> Self {
        let (speaker, tasks, standing) = Default::default();
        let conversation = fastrand::u64(..);
        Self { server, room, principal, conversation, speaker, out, tasks, standing }
    }

    /// Whether it goes on behind this door.
    pub(super) fn is_at(&self, room: &Arc<Room>) -> bool {
        Arc::ptr_eq(&self.room, room)
    }

    /// Takes one text from the client: a message, or several of a batch.
    pub(super) async fn hear(&self, text: String) {
        let limits = &self.server.config.limits;
        let wire =
            WireLimits { message_bytes: limits.message_bytes, depth: limits.depth, ..WireLimits::default() };
        let is_batch = text.trim_ascii_start().starts_with('[');
        let version = self.known().as_ref().map_or("2025-03-26", |speaker| speaker.version);
        match Message::read(text, &wire) {
            Ok(_) if is_batch && version != "2025-03-26" => {
                self.refuse(&WireError::NotJsonRpc("batches were part of 2025-03-26 only")).await;
            }
            Ok(messages) => {
                for message in messages {
                    self.take(message).await;
                }
            }
            Err(error) => self.refuse(&error).await,
        }
    }

    /// Says that something was not understood.
    pub(super) async fn refuse(&self, error: &WireError) {
        let code = if matches!(error, WireError::NotJson(_) | WireError::NotText) { -32700 } else { -32600 };
        self.send(error_without_id(code, &error.to_string()).line(b"", b"")).await;
    }

    /// Waits until all requests under way have ended.
    pub(super) async fn drain(&self) {
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while tasks.join_next().await.is_some() {}
    }

    async fn take(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                self.take_request(id, method, Params::read(params)).await;
            }
            Message::Notification { method, params } if method == "notifications/cancelled" => {
                let mut id = None;
                // What was read before a fault counts.
                let _ = fields(params.as_ref().map_or("{}", |params| params.get()), |key, value| {
                    if key == "requestId" {
                        id = Some(value.get().to_owned());
                    }
                    Ok(())
                });
                if let Some(id) = id {
                    self.server.flights.cancel(self.conversation, &id);
                }
            }
            Message::Notification { .. } => {}
            Message::Response { id: Some(id), outcome } => {
                self.server.questions.answer(self.conversation, id, outcome);
            }
            Message::Response { id: None, .. } => {}
        }
    }

    async fn take_request(&self, id: RequestId, method: String, mut params: Params) {
        let speaker = match self.speaker_of(&method, &mut params) {
            Ok(speaker) => speaker,
            Err(outcome) => return self.answer(&id, outcome).await,
        };
        if method == "initialize" && speaker.era() == Era::Legacy {
            let (outcome, mut speaker) = self.server.introduce(&self.room, &params);
            speaker.conversation = self.conversation;
            let speaker = Arc::new(speaker);
            *self.known() = Some(Arc::clone(&speaker));
            self.answer(&id, outcome).await;
            return self.stand_by(speaker);
        }
        let room = Arc::clone(&self.room);
        let stands = method == "subscriptions/listen";
        let asked =
            Asked { room, principal: self.principal, speaker, id: id.clone(), method, params, can_say: true };
        match self.server.begin(asked) {
            Begun::Done(outcome) => self.answer(&id, outcome).await,
            Begun::Works(work) if self.has_room() => {
                let work = work.in_flight(&self.server.flights, &id, false);
                let tasks = if stands { &self.standing } else { &self.tasks };
                self.carry_out(tasks, id, work);
            }
            Begun::Works(_) => {
                let outcome =
                    Outcome::error(-32603, "too many requests are under way already: wait for some");
                self.answer(&id, outcome).await;
            }
        }
    }

    /// Who makes a request; parameters keep what they say about it otherwise.
    fn speaker_of(&self, method: &str, params: &mut Params) -> Result<Arc<Speaker>, Outcome> {
        let version = params.meta.as_ref().and_then(|meta| meta.version.as_deref());
        let said = Said { method, meta: version, ..Said::default() };
        match era_of(self.server.config.eras, said)? {
            Era::Modern => {
                let (speaker, meta) = modern_speaker(params.meta.take(), Some(self.conversation))?;
                params.meta = Some(meta);
                Ok(Arc::new(speaker))
            }
            Era::Legacy => Ok(self.known().clone().unwrap_or_else(|| stranger(None, self.conversation))),
        }
    }

    /// Works on a request beside all others.
    fn carry_out(&self, tasks: &Mutex<JoinSet<()>>, id: RequestId, work: Work) {
        let (server, room, principal) = (Arc::clone(&self.server), Arc::clone(&self.room), self.principal);
        let out = self.out.clone();
        lock(tasks).spawn(async move {
            let seat = Seat { profile: &room.profile, principal: &principal };
            let said = |said| async {
                // The client is gone: so is soon whatever it asked for.
                let _ = out.send(said).await;
            };
            if let Some(outcome) = server.finish(&seat, work, said).await {
                let _ = out.send(outcome.pieces(&id).line(b"", b"")).await;
            }
        });
    }

    /// Tells a client of the legacy era what changes from now on.
    fn stand_by(&self, speaker: Arc<Speaker>) {
        let line = Line::new(speaker, Arc::clone(&self.server.questions), Hears::default());
        let mut work = self.server.stand_by(&self.room, line);
        let out = self.out.clone();
        lock(&self.standing).spawn(async move {
            while let Step::Said(said) = work.next().await {
                if out.send(said).await.is_err() {
                    return;
                }
            }
        });
    }

    fn has_room(&self) -> bool {
        let all = [&self.tasks, &self.standing].into_iter().map(|tasks| {
            let mut tasks = lock(tasks);
            while tasks.try_join_next().is_some() {}
            tasks.len()
        });
        all.sum::<usize>() < self.server.config.limits.in_flight
    }

    async fn answer(&self, id: &RequestId, outcome: Outcome) {
        self.send(outcome.pieces(id).line(b"", b"")).await;
    }

    async fn send(&self, message: Bytes) {
        // A client that is gone hears nothing any more.
        let _ = self.out.send(message).await;
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Speaker>>> {
        lock(&self.speaker)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
