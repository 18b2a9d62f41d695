//! The subjects of a cluster. All begin with its prefix.

use std::{fmt, sync::Arc};

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

    /// Messages for one end of an exchange, which is in this process.
    pub(crate) fn own_exchange(&self, id: u64) -> String {
        format!("{}.exchange.{}.{id:x}", self.prefix, self.own)
    }

    /// Messages for all exchanges of this process.
    pub(crate) fn own_exchanges(&self) -> String {
        format!("{}.exchange.{}.*", self.prefix, self.own)
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
        assert_eq!(exchange_id(&subjects.own_exchange(0xbeef)), Some(0xbeef));
        assert_eq!(subjects.request(0xff, "call"), "a.b.process.00000000000000ff.call");
        assert_eq!(last_part(&subjects.notice("mcp")), "mcp");
        assert_eq!(exchange_id("a.b.exchange.zz"), None);
    }
}
