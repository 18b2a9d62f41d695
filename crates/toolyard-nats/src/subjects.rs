//! The subjects of a cluster. All begin with its prefix.

use std::{fmt, sync::Arc};

use toolyard_core::WorkerEndpoint;

/// Names of subjects.
#[derive(Debug, Clone)]
pub(crate) struct Subjects {
    prefix: Arc<str>,
    own: ProcessNumber,
}

/// The number of a process in subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessNumber(pub(crate) u64);

impl fmt::Display for ProcessNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Subjects {
    pub(crate) fn new(prefix: Arc<str>, own: u64) -> Self {
        Self { prefix, own: ProcessNumber(own) }
    }

    /// Opens an exchange with a service of one process.
    pub(crate) fn request(&self, process: u64, service: &str) -> String {
        format!("{}.process.{}.{service}", self.prefix, ProcessNumber(process))
    }

    /// All requests to this process.
    pub(crate) fn own_requests(&self) -> String {
        self.request(self.own.0, "*")
    }

    /// What the subjects of messages for exchanges of this process begin with.
    pub(crate) fn own_exchanges(&self) -> String {
        format!("{}.exchange.{}", self.prefix, self.own)
    }

    /// What the subjects begin with at which gateways receive objects.
    pub(crate) fn objects(&self) -> String {
        format!("{}.object", self.prefix)
    }

    /// What is told to a service of all processes.
    pub(crate) fn notice(&self, service: &str) -> String {
        format!("{}.all.{service}", self.prefix)
    }

    /// Everything that is told to all processes.
    pub(crate) fn notices(&self) -> String {
        self.notice("*")
    }

    /// Where processes say that they are alive.
    pub(crate) fn alive(&self) -> String {
        format!("{}.alive", self.prefix)
    }

    /// The name of the service that the processes of this cluster register with NATS.
    pub(crate) fn service_name(&self) -> String {
        format!("{}-gateway", self.prefix.replace('.', "-"))
    }
}

/// The subjects of one group of workers. All that a worker receives begins with `PREFIX.worker.GROUP.`, so that its permissions
/// need no more than that.
#[derive(Debug, Clone)]
pub(crate) struct WorkerSubjects {
    prefix: Arc<str>,
    group: Arc<str>,
}

/// Hexadecimal digits of a definition's hash in subjects: 128 bits.
const HASH_DIGITS: usize = 32;
/// Characters of a tool's name in subjects, for people who read them.
const MAX_TOOL_CHARS: usize = 64;

impl WorkerSubjects {
    pub(crate) fn new(prefix: Arc<str>, group: &str) -> Self {
        Self { prefix, group: group.into() }
    }

    /// Calls of one definition of a tool, which is also the name of their queue group.
    pub(crate) fn call(&self, endpoint: &WorkerEndpoint) -> String {
        let (tool, hash) = endpoint_parts(endpoint);
        format!("{}.worker.{}.call.{tool}.{hash}", self.prefix, self.group)
    }

    /// What `nats micro` shows as the name of an endpoint.
    pub(crate) fn endpoint_name(endpoint: &WorkerEndpoint) -> String {
        let (tool, hash) = endpoint_parts(endpoint);
        format!("{tool}-{}", hash.get(..8).unwrap_or(&hash))
    }

    /// Requests to a service of one process.
    pub(crate) fn request(&self, process: u64, service: &str) -> String {
        format!("{}.worker.{}.process.{}.{service}", self.prefix, self.group, ProcessNumber(process))
    }

    /// What the subjects of messages for exchanges of a process begin with.
    pub(crate) fn exchanges(&self, process: u64) -> String {
        format!("{}.worker.{}.exchange.{}", self.prefix, self.group, ProcessNumber(process))
    }

    /// What the subjects begin with at which workers of the group receive objects.
    pub(crate) fn objects(&self) -> String {
        format!("{}.worker.{}.object", self.prefix, self.group)
    }

    /// Where processes of the group say that they are there.
    pub(crate) fn announcements(&self) -> String {
        worker_announcements(&self.prefix, &self.group)
    }

    /// The name of the service that the processes of the group register with NATS.
    pub(crate) fn service_name(&self) -> String {
        format!("{}-worker-{}", self.prefix.replace('.', "-"), self.group)
    }
}

fn endpoint_parts(endpoint: &WorkerEndpoint) -> (String, String) {
    let plain =
        |character: char| if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' };
    let tool = endpoint.tool.chars().take(MAX_TOOL_CHARS).map(plain).collect();
    let mut hash = endpoint.definition.to_string();
    hash.truncate(HASH_DIGITS);
    (tool, hash)
}

/// Where processes of a group, or of all groups (`*`), say that they are there.
pub(crate) fn worker_announcements(prefix: &str, group: &str) -> String {
    format!("{prefix}.worker-announce.{group}")
}

/// Where gateways ask all workers to announce themselves.
pub(crate) fn worker_roll_call(prefix: &str) -> String {
    format!("{prefix}.worker-roll-call")
}

/// The subject of an exchange among those of a process.
pub(crate) fn exchange_subject(exchanges: &str, id: u64) -> String {
    format!("{exchanges}.{id:x}")
}

/// The last part of a subject.
pub(crate) fn last_part(subject: &str) -> &str {
    subject.rsplit_once('.').map_or(subject, |(_, last)| last)
}

/// The exchange that a subject belongs to.
pub(crate) fn exchange_id(subject: &str) -> Option<u64> {
    u64::from_str_radix(last_part(subject), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_exchange_is_read_back_from_its_subject() {
        let subjects = Subjects::new("a.b".into(), 7);
        assert_eq!(exchange_id(&exchange_subject(&subjects.own_exchanges(), 0xbeef)), Some(0xbeef));
        assert_eq!(subjects.request(0xff, "call"), "a.b.process.00000000000000ff.call");
        assert_eq!(last_part(&subjects.notice("mcp")), "mcp");
        assert_eq!(exchange_id("a.b.exchange.zz"), None);
    }

    #[test]
    fn all_that_a_worker_receives_begins_with_its_group() {
        let subjects = WorkerSubjects::new("a.b".into(), "office");
        let endpoint = WorkerEndpoint {
            tool: "files.read >*/\u{e9}".into(),
            definition: toolyard_core::ContentHash::of("definition"),
        };
        let call = subjects.call(&endpoint);
        let received =
            [&call, &subjects.request(7, "catalogue"), &subjects.exchanges(7), &subjects.objects()];
        for subject in received {
            assert!(subject.starts_with("a.b.worker.office."), "{subject}");
        }
        assert!(call.starts_with("a.b.worker.office.call.files_read_____."), "{call}");
        assert!(!call.contains(['*', '>', ' ']) && call.split('.').count() == 7, "{call}");
        let other = WorkerEndpoint { definition: toolyard_core::ContentHash::of("other"), ..endpoint };
        assert_ne!(call, subjects.call(&other));
    }
}
