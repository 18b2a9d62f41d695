//! The tools of one server as they stand: in service, out of service with the reason, or quarantined.

use toolyard_core::{ContentHash, ErrorKind, ToolError, ToolSpec};

/// A tool in service.
#[derive(Debug, Clone, PartialEq)]
pub struct InService {
    /// The tool.
    pub spec: ToolSpec,
    /// The hash of the definition that was approved.
    pub pin: ContentHash,
    /// What was overlooked or taken out of the definition.
    pub notes: Vec<String>,
}

/// A tool that may not be called until a person approves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfService {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
    /// How its definition differs from the approved one, in lines.
    pub difference: Vec<String>,
}

/// A definition that cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// Its name, as far as it has one.
    pub name: Option<String>,
    /// Why.
    pub reason: String,
}

/// The tools of one server as they stand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shelf {
    /// Those that may be called.
    pub in_service: Vec<InService>,
    /// Those that wait for a person.
    pub out_of_service: Vec<OutOfService>,
    /// Those that cannot be used.
    pub quarantined: Vec<Quarantined>,
    /// Those that were seen for the first time.
    pub first_seen: Vec<String>,
}

impl Shelf {
    /// What is wrong, in a few words; none if nothing is.
    pub fn concern(&self) -> Option<String> {
        let count = |number: usize, one: &str, many: &str| match number {
            0 => None,
            1 => Some(format!("1 {one}")),
            more => Some(format!("{more} {many}")),
        };
        let changed = count(self.out_of_service.len(), "tool waits for approval", "tools wait for approval");
        let bad = count(self.quarantined.len(), "definition cannot be used", "definitions cannot be used");
        let all: Vec<String> = [changed, bad].into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(", "))
    }

    /// Whether a tool may be called by whoever knows it under this pin.
    pub(super) fn check(&self, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
        if self.in_service.iter().any(|known| *known.spec.name == *tool && known.pin == pin) {
            return Ok(());
        }
        let waiting = self.out_of_service.iter().find(|waiting| waiting.name == tool);
        let error = match waiting {
            Some(waiting) => ToolError::new(ErrorKind::Refused, waiting.reason.clone())
                .with_hint("see what changed, then approve it: toolyard servers approve"),
            None => {
                ToolError::new(ErrorKind::Refused, "the server does not offer it any more, or not like this")
                    .with_hint("list what there is: toolyard tools list")
            }
        };
        Err(error.on_tool(tool))
    }
}
