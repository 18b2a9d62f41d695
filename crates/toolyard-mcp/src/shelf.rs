//! The tools of one server as they stand: in service, out of service with the reason, or quarantined.

use serde::{Deserialize, Serialize};
use toolyard_core::{ContentHash, ErrorKind, RawJson, ToolError, ToolSpec};

use crate::definition::{PinDecision, UsableTool, difference, quick_spec};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutOfService {
    /// Its name.
    pub name: String,
    /// The hash of the definition that waits.
    pub pin: ContentHash,
    /// Why.
    pub reason: String,
    /// How its definition differs from the approved one, in lines.
    pub difference: Vec<String>,
}

/// A definition that cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub(crate) fn check(&self, tool: &str, pin: ContentHash) -> Result<(), ToolError> {
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

/// A definition in lines for people, as if it came in the place of one that says nothing.
fn whole(tool: &UsableTool) -> Vec<String> {
    let nothing = RawJson::from(serde_json::json!({"name": tool.spec.name}));
    difference(&nothing, &tool.definition).unwrap_or_default()
}

/// A shelf as it is kept beside the list it was made from: tools in service are places in that list.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    in_service: Vec<KeptTool>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    out_of_service: Vec<OutOfService>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    quarantined: Vec<Quarantined>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptTool {
    at: usize,
    pin: ContentHash,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// What is shown, where that is not what was sent: hidden text was taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<RawJson>,
}

impl Shelf {
    /// The shelf that follows from a decision.
    pub(crate) fn of(decision: PinDecision) -> Self {
        let in_service = decision.in_service.into_iter();
        let out_of_service = decision.blocked.into_iter();
        let quarantined = decision.quarantined.into_iter();
        Self {
            in_service: in_service
                .map(|tool| InService { spec: tool.spec, pin: tool.hash, notes: tool.notes })
                .collect(),
            out_of_service: out_of_service
                .map(|blocked| OutOfService {
                    name: blocked.tool.spec.name.to_string(),
                    pin: blocked.tool.hash,
                    reason: blocked.reason.to_string(),
                    difference: match blocked.difference.as_slice() {
                        // Nothing to compare it with: all of it is shown.
                        [] => whole(&blocked.tool),
                        _ => blocked.difference,
                    },
                })
                .collect(),
            quarantined: quarantined
                .map(|tool| Quarantined { name: tool.name, reason: tool.reason.to_string() })
                .collect(),
            first_seen: decision.first_seen,
        }
    }

    /// What is kept of a decision on this list.
    pub(crate) fn keep(decision: &PinDecision, list: &[RawJson]) -> Option<RawJson> {
        let in_service = decision.in_service.iter().filter_map(|tool| {
            let at = list.iter().position(|sent| *sent == tool.definition)?;
            let shown = tool.spec.raw.clone().filter(|raw| *raw != tool.definition);
            Some(KeptTool { at, pin: tool.hash, notes: tool.notes.clone(), shown })
        });
        let Self { out_of_service, quarantined, .. } =
            Self::of(PinDecision { in_service: Vec::new(), ..decision.clone() });
        RawJson::from_serialize(&Kept { in_service: in_service.collect(), out_of_service, quarantined }).ok()
    }

    /// The shelf that was kept beside this list; none if the two do not fit together.
    pub(crate) fn kept(kept: &RawJson, list: &[RawJson]) -> Option<Self> {
        let kept: Kept = kept.read().ok()?;
        let tool = |tool: KeptTool| {
            let raw = tool.shown.or_else(|| list.get(tool.at).cloned())?;
            Some(InService { spec: quick_spec(&raw)?, pin: tool.pin, notes: tool.notes })
        };
        Some(Self {
            in_service: kept.in_service.into_iter().map(tool).collect::<Option<_>>()?,
            out_of_service: kept.out_of_service,
            quarantined: kept.quarantined,
            first_seen: Vec::new(),
        })
    }
}
