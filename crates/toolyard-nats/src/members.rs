//! [`Members`]: which processes of the cluster are alive. Each registers with NATS' service API and answers its pings; one ping
//! is enough for all, because the answers go to a subject that all of them read. A process that shuts down says so there.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use async_nats::{
    Client,
    connection::State,
    service::{PingResponse, Service, ServiceExt as _},
};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::subjects::{ProcessNumber, Subjects};

/// A process pings if it heard no other one ping for this long, give or take a quarter.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// A process that did not answer for so long is not a member.
const SILENT_AFTER: Duration = Duration::from_millis(3_500);
/// The field of a service's metadata that has the number of its process.
const PROCESS: &str = "process";
/// The field that has its name, for people.
const NAME: &str = "name";
/// Names and versions of processes are cut to this length.
const MAX_NAME_CHARS: usize = 64;
/// How long a process that stopped answering is remembered, for people.
const REMEMBER_LOST_FOR: Duration = Duration::from_mins(10);
/// If there are more, lost processes are forgotten first, then new ones are ignored.
const MAX_MEMBERS: usize = 4_096;

/// A process of the cluster, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterMember {
    /// Its number.
    pub number: u64,
    /// What it calls itself; `None` for processes of earlier versions.
    pub name: Option<String>,
    /// Its version.
    pub version: String,
    /// Whether it is there.
    pub state: MemberState,
    /// How long ago it answered.
    pub silent_for: Duration,
}

/// Whether a process is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// It answers.
    Seen,
    /// It is shutting down.
    Leaving,
    /// It stopped answering without leaving.
    Lost,
}

/// The processes that are alive.
#[derive(Debug)]
pub(crate) struct Members {
    own: u64,
    name: Arc<str>,
    heard: Mutex<BTreeMap<u64, KnownMember>>,
    answers: Mutex<Option<async_nats::Subscriber>>,
    /// Registered until it is stopped; dropping it does nothing.
    service: Mutex<Option<Service>>,
}

#[derive(Debug)]
struct KnownMember {
    at: Instant,
    name: Option<String>,
    version: String,
    is_leaving: bool,
}

/// What a process says that shuts down. Processes of earlier versions ignore it.
#[derive(Debug, Serialize, Deserialize)]
struct LeaveNotice {
    leaving: String,
}

impl Members {
    pub(crate) async fn join(
        client: &Client,
        subjects: &Subjects,
        own: u64,
        name: Arc<str>,
    ) -> Result<Arc<Self>, async_nats::Error> {
        let answers = client.subscribe(subjects.alive()).await?;
        let metadata = HashMap::from([
            (PROCESS.to_owned(), ProcessNumber(own).to_string()),
            (NAME.to_owned(), name.to_string()),
        ]);
        let service = client
            .service_builder()
            .description("A process of a Toolyard cluster")
            .metadata(metadata)
            .start(subjects.service_name(), env!("CARGO_PKG_VERSION"))
            .await?;
        Ok(Arc::new(Self {
            own,
            name,
            heard: Mutex::default(),
            answers: Mutex::new(Some(answers)),
            service: Mutex::new(Some(service)),
        }))
    }

    /// The numbers of the processes that are alive, this one included.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let now = Instant::now();
        let heard = self.heard.lock();
        let alive = heard.iter().filter(|(_, member)| !member.is_silent(now));
        let mut numbers: Vec<u64> = alive.map(|(number, _)| *number).chain([self.own]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The processes that are alive, this one included, and those that were lost in the last minutes.
    pub(crate) fn all(&self) -> Vec<ClusterMember> {
        let now = Instant::now();
        let mut heard = self.heard.lock();
        heard.retain(|_, member| !member.is_forgotten(now));
        let mut members: BTreeMap<u64, ClusterMember> =
            heard.iter().map(|(number, member)| (*number, member.describe(*number, now))).collect();
        // Without a connection, it does not hear itself.
        let own = ClusterMember {
            number: self.own,
            name: Some(self.name.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: if self.service.lock().is_some() { MemberState::Seen } else { MemberState::Leaving },
            silent_for: Duration::ZERO,
        };
        members.insert(self.own, own);
        members.into_values().collect()
    }

    /// Pings and listens, for ever.
    pub(crate) async fn watch(self: Arc<Self>, client: Client, subjects: Subjects) {
        let Some(mut answers) = self.answers.lock().take() else { return };
        let (ping, alive) = (format!("$SRV.PING.{}", subjects.service_name()), subjects.alive());
        loop {
            let pause = PING_INTERVAL.mul_f64(0.75 + fastrand::f64() / 2.0);
            match tokio::time::timeout(pause, answers.next()).await {
                Ok(Some(answer)) => self.record(&answer.payload),
                Ok(None) => return,
                Err(_elapsed) if client.connection_state() != State::Connected => {}
                // Nobody pinged lately.
                Err(_elapsed) => {
                    let _ = client.publish_with_reply(ping.clone(), alive.clone(), Vec::new().into()).await;
                }
            }
        }
    }

    /// Ends the registration, and says so.
    pub(crate) async fn leave(&self, client: &Client, subjects: &Subjects) {
        let service = self.service.lock().take();
        if let Some(service) = service {
            let notice = LeaveNotice { leaving: ProcessNumber(self.own).to_string() };
            if let Ok(notice) = serde_json::to_vec(&notice)
                && client.connection_state() == State::Connected
            {
                // May get lost: then the process counts as lost.
                let _ = client.publish(subjects.alive(), notice.into()).await;
            }
            // An error means that it has ended.
            let _ = service.stop().await;
        }
    }

    fn record(&self, message: &[u8]) {
        if let Ok(answer) = serde_json::from_slice::<PingResponse>(message) {
            self.record_answer(&answer);
        } else if let Ok(LeaveNotice { leaving }) = serde_json::from_slice(message)
            && let Ok(number) = u64::from_str_radix(&leaving, 16)
            && let Some(member) = self.heard.lock().get_mut(&number)
        {
            member.is_leaving = true;
        }
    }

    fn record_answer(&self, answer: &PingResponse) {
        let process = answer.metadata.get(PROCESS);
        let Some(number) = process.and_then(|number| u64::from_str_radix(number, 16).ok()) else { return };
        let now = Instant::now();
        let mut heard = self.heard.lock();
        if let Some(member) = heard.get_mut(&number) {
            member.at = now;
            return;
        }
        if !make_room(&mut heard, now) {
            return;
        }
        let member = KnownMember {
            at: now,
            name: answer.metadata.get(NAME).map(|name| shorten(name)),
            version: shorten(&answer.version),
            is_leaving: false,
        };
        heard.insert(number, member);
    }
}

/// Forgets members so that processes that restart again and again do not fill the memory. Returns whether there is room for one more.
fn make_room(members: &mut BTreeMap<u64, KnownMember>, now: Instant) -> bool {
    members.retain(|_, member| !member.is_forgotten(now));
    if members.len() >= MAX_MEMBERS {
        members.retain(|_, member| !member.is_silent(now));
    }
    members.len() < MAX_MEMBERS
}

impl KnownMember {
    fn is_silent(&self, now: Instant) -> bool {
        now.duration_since(self.at) >= SILENT_AFTER
    }

    /// Whether nobody needs to know of it any more.
    fn is_forgotten(&self, now: Instant) -> bool {
        self.is_silent(now) && (self.is_leaving || now.duration_since(self.at) >= REMEMBER_LOST_FOR)
    }

    fn describe(&self, number: u64, now: Instant) -> ClusterMember {
        let state = match (self.is_leaving, self.is_silent(now)) {
            (true, _) => MemberState::Leaving,
            (false, true) => MemberState::Lost,
            (false, false) => MemberState::Seen,
        };
        ClusterMember {
            number,
            name: self.name.clone(),
            version: self.version.clone(),
            state,
            silent_for: now.duration_since(self.at),
        }
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_members_make_room_before_new_ones_are_ignored() {
        let member = |at| KnownMember { at, name: None, version: String::new(), is_leaving: false };
        let start = Instant::now();
        let later = start + SILENT_AFTER;
        let mut members: BTreeMap<u64, KnownMember> =
            (0..MAX_MEMBERS as u64).map(|number| (number, member(start))).collect();
        assert!(!make_room(&mut members, start), "all of them answer");
        members.insert(0, member(later));
        assert!(make_room(&mut members, later));
        assert_eq!(members.into_keys().collect::<Vec<_>>(), [0], "the lost ones are forgotten");
    }
}
