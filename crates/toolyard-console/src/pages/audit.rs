//! The audit log: its records, and the verification of their hash chain.

use askama::Template;
use axum::{Router, extract::State, response::Response, routing::get};

use crate::{
    api::{AuditLogRecord, AuditLogVerification, AuditPage as RecordsPage},
    form_fields::FormFields,
    format::{duration, rfc3339, time, with_query},
    page::{Notice, Page, Pager, Section, render, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::{AuditText, fill},
};

const RECORDS_PER_PAGE: usize = 50;
const SHORT_HASH_CHARS: usize = 10;

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    page: Page,
    text: &'static AuditText,
    notice: Option<Notice>,
    /// The hash to keep, after a verification.
    head: Option<String>,
    /// None if the gateway has no audit log.
    rows: Option<Vec<AuditRow>>,
    pager: Pager,
}

struct AuditRow {
    record: AuditLogRecord,
    datetime: String,
    recorded: String,
    duration: String,
    sources: String,
    outcome: String,
    /// Whether the outcome has a name in the language of the page.
    has_known_outcome: bool,
    outcome_class: &'static str,
    short_hash: String,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/audit", get(list))
}

async fn list(State(state): State<ConsoleState>, visitor: Visitor) -> Response {
    let text = AuditText::of(visitor.language());
    let parameters = FormFields::parse(visitor.context.query.as_bytes());
    let after = parameters.get("after");
    let path = with_query(&format!("/audit?limit={RECORDS_PER_PAGE}"), [("after", after)]);
    let records = match state.api.get_if_offered::<RecordsPage>(visitor.role(), &path).await {
        Ok(records) => records,
        Err(failure) => return render_failure(&visitor, Section::Audit, &failure),
    };
    let (mut notice, mut head) = (None, None);
    if parameters.find("verify").is_some() && records.is_some() {
        match state.api.get::<AuditLogVerification>(visitor.role(), "/audit/verify").await {
            Ok(verification) => {
                notice = Some(verification_notice(&verification, text));
                head = verification.head.filter(|_| verification.intact);
            }
            Err(failure) => notice = Some(Notice::failure(&failure, visitor.language())),
        }
    }
    let page = Page::new(&visitor, Section::Audit, text.title);
    let next = records.as_ref().and_then(|records| records.next.as_deref());
    let pager = Pager::new(&page, "after", next);
    let rows =
        records.map(|records| records.records.into_iter().map(|record| AuditRow::of(record, text)).collect());
    render(&AuditPage { page, text, notice, head, rows, pager })
}

fn verification_notice(verification: &AuditLogVerification, text: &AuditText) -> Notice {
    let lost = verification.lost.filter(|lost| *lost > 0).map(|lost| fill(text.lost, lost));
    if verification.intact {
        let records = verification.records.unwrap_or_default();
        return Notice::success(fill(text.intact, records)).with_hint(lost);
    }
    let number = verification.broken_at.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let notice = Notice::error(fill(text.broken, number));
    match &verification.problem {
        Some(problem) => Notice { hint: Some(problem.clone()), is_english_hint: true, ..notice },
        None => notice.with_hint(lost),
    }
}

impl AuditRow {
    fn of(record: AuditLogRecord, text: &AuditText) -> Self {
        Self {
            outcome: text.outcome_name(&record.outcome),
            has_known_outcome: text.known_outcome(&record.outcome).is_some(),
            datetime: rfc3339(record.recorded_at),
            recorded: time(record.recorded_at),
            duration: duration(u64::try_from(record.duration_ms).unwrap_or_default()),
            sources: record.sources.join(", "),
            outcome_class: match record.outcome.as_str() {
                "ok" | "allow" | "allowed" | "approved" => "state-done",
                "unknown" | "outcome_unknown" => "state-unknown",
                outcome if outcome.starts_with("den") || outcome.contains("fail") => "state-failed",
                _ => "state-idle",
            },
            short_hash: record.hash.chars().take(SHORT_HASH_CHARS).collect(),
            record,
        }
    }
}
