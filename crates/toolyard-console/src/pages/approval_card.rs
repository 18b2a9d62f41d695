//! [`ApprovalCard`]: a tool call that waits for approval, as the approvals page, the page of its run and the chat show it.

use serde_json::{Value, json};

use crate::{
    api::PendingApproval,
    form_fields::FormFields,
    format::{rfc3339, shorten, time, url_encode},
    text::{ApprovalsText, Language, fill},
};

/// Longer texts cannot be approved in the console, because nobody would read all of them.
const MAX_TEXT_BYTES: usize = 20_000;
/// The texts of all approvals on one page; the others follow once these are decided.
const MAX_PAGE_TEXT_BYTES: usize = 40_000;
const MAX_SHOWN_APPROVALS: usize = 40;
/// Characters of a note of a call that can only be denied.
const MAX_CUT_NOTE_CHARS: usize = 200;

/// The page to which a form leads back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReturnTo {
    Approvals,
    Run,
    Chat,
}

impl ReturnTo {
    /// The value of the field `return_to`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Approvals => "approvals",
            Self::Run => "run",
            Self::Chat => "chat",
        }
    }

    /// The page of the field `return_to`; the page of the run without a known value.
    pub(crate) fn parse(fields: &FormFields) -> Self {
        match fields.get("return_to") {
            "approvals" => Self::Approvals,
            "chat" => Self::Chat,
            _ => Self::Run,
        }
    }
}

/// A decision on an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    AllowOnce,
    AllowRun,
    Deny,
}

impl Decision {
    /// The decision of a submitted form; `None` if it has none that is known.
    pub(crate) fn parse(fields: &FormFields) -> Option<Self> {
        Self::of_name(fields.get("decision"))
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        [Self::AllowOnce, Self::AllowRun, Self::Deny].into_iter().find(|decision| decision.name() == name)
    }

    /// The value of the field `decision`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow",
            Self::AllowRun => "allow-run",
            Self::Deny => "deny",
        }
    }

    pub(crate) fn is_allowed(self) -> bool {
        self != Self::Deny
    }

    /// The body of `POST /approvals/APPROVAL`.
    pub(crate) fn body(self) -> Value {
        match self {
            Self::AllowOnce => json!({"allow": true, "scope": "once"}),
            Self::AllowRun => json!({"allow": true, "scope": "run"}),
            Self::Deny => json!({"allow": false}),
        }
    }
}

/// A tool call that waits for approval.
#[derive(Debug)]
pub(crate) struct ApprovalCard {
    pub(crate) text: &'static ApprovalsText,
    pub(crate) approval: PendingApproval,
    /// The arguments with indentation, or the whole text of the API for runs of older versions. Cut if it is too long.
    pub(crate) shown_text: String,
    /// The effects of the tool; `None` if the text has them.
    pub(crate) effects: Option<String>,
    /// Whether effects, arguments and notes are shown one by one.
    pub(crate) has_parts: bool,
    /// Whether the text is cut, so that the call can only be denied.
    pub(crate) is_too_long: bool,
    pub(crate) run_path: String,
    pub(crate) return_to: ReturnTo,
    pub(crate) datetime: String,
    pub(crate) requested: String,
}

impl ApprovalCard {
    pub(crate) fn new(approval: PendingApproval, language: Language, return_to: ReturnTo) -> Self {
        let text = ApprovalsText::of(language);
        let is_too_long = is_too_long(&approval);
        let (has_parts, shown_text) = match approval.arguments.shown() {
            Some(arguments) => (true, arguments),
            None => (false, approval.text.clone()),
        };
        let effects = approval.effects.as_deref().filter(|_| has_parts);
        Self {
            text,
            shown_text: match is_too_long {
                true => shorten(&shown_text, MAX_TEXT_BYTES / 4).into_owned(),
                false => shown_text,
            },
            effects: effects.map(|effects| text.effects(effects)),
            has_parts,
            is_too_long,
            run_path: format!("/console/runs/{}", url_encode(&approval.run)),
            return_to,
            datetime: rfc3339(approval.requested_at),
            requested: time(approval.requested_at),
            approval,
        }
    }

    /// Notes for the approver, as far as they are not part of the text.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let max_chars = if self.is_too_long { MAX_CUT_NOTE_CHARS } else { usize::MAX };
        let notes = self.approval.notes.iter().filter(|_| self.has_parts);
        notes.map(move |note| shorten(note, max_chars).into_owned())
    }

    /// The number of bytes that the card adds to a page, approximately.
    pub(crate) fn byte_count(&self) -> usize {
        self.text_bytes() + 1_600
    }

    fn text_bytes(&self) -> usize {
        self.shown_text.len() + self.notes().map(|note| note.len()).sum::<usize>()
    }
}

/// Whether a call has more text than a person reads, so that the console does not let anybody allow it.
pub(crate) fn is_too_long(approval: &PendingApproval) -> bool {
    let bytes = match approval.arguments.shown() {
        Some(arguments) => arguments.len() + approval.notes.iter().map(String::len).sum::<usize>(),
        None => approval.text.len(),
    };
    bytes > MAX_TEXT_BYTES
}

/// The oldest approvals, as many as fit on a page, and how many follow.
pub(crate) fn approval_cards(
    approvals: Vec<PendingApproval>,
    language: Language,
    return_to: ReturnTo,
) -> (Vec<ApprovalCard>, Option<String>) {
    let count = approvals.len();
    let mut text_bytes = 0;
    let cards = approvals.into_iter().take(MAX_SHOWN_APPROVALS);
    let cards = cards.map(|approval| ApprovalCard::new(approval, language, return_to));
    let cards = cards.take_while(|card| {
        text_bytes += card.text_bytes();
        text_bytes <= MAX_PAGE_TEXT_BYTES
    });
    let cards: Vec<ApprovalCard> = cards.collect();
    let more = count.saturating_sub(cards.len());
    (cards, (more > 0).then(|| fill(ApprovalsText::of(language).more, more)))
}
