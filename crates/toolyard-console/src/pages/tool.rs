//! One tool: description, statistics, schemas, and a form to try a call.

use std::borrow::Cow;

use askama::Template;
use axum::{
    Router,
    extract::{Path, State},
    response::Response,
    routing::get,
};
use http::StatusCode;
use serde_json::{Map, Value, json};
use toolyard_core::escape_unsafe;

use crate::{
    api::{ApiFailure, ToolCallResult, ToolDetails},
    form_fields::{FormFields, SignedForm},
    format::{duration, percent, pretty_json, rfc3339, shorten, time, url_encode},
    forms::{FieldError, FormField, SchemaForm},
    page::{Notice, Page, Section, render_failure, render_with},
    pages::tools::tool_path,
    request_context::Visitor,
    router::ConsoleState,
    text::{CommonText, ToolsText, fill},
};

/// Longer texts are cut, so that a page stays small.
const MAX_SCHEMA_CHARS: usize = 20_000;
const MAX_RESULT_CHARS: usize = 30_000;
const MAX_DESCRIPTION_CHARS: usize = 6_000;

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    page: Page,
    text: &'static ToolsText,
    details: ToolDetails,
    /// Path to which the form is submitted.
    path: String,
    form: SchemaForm,
    notice: Option<Notice>,
    result: Option<ToolCallResult>,
}

/// Rounded, because older calls count less.
struct StatisticsRow {
    calls: String,
    failures: String,
    success: String,
    median: String,
    p95: String,
    /// For programs and for people.
    last_used: Option<(String, String)>,
}

pub(super) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/tools/{name}", get(show).post(call))
}

async fn show(State(state): State<ConsoleState>, visitor: Visitor, Path(name): Path<String>) -> Response {
    let details = match read_tool(&state, &visitor, &name).await {
        Ok(details) => details,
        Err(failure) => return render_failure(&visitor, Section::Tools, &failure),
    };
    let form = SchemaForm::of(&details.input_schema);
    render_tool(&visitor, details, form, StatusCode::OK, None, None)
}

async fn read_tool(state: &ConsoleState, visitor: &Visitor, name: &str) -> Result<ToolDetails, ApiFailure> {
    state.api.get(visitor.role(), &tool_path_of_api(visitor, name)).await
}

fn tool_path_of_api(visitor: &Visitor, name: &str) -> String {
    let parameters = FormFields::parse(visitor.context.query.as_bytes());
    let path = format!("/tools/{}", url_encode(name));
    match parameters.find("source") {
        Some(source) => format!("{path}?source={}", url_encode(source)),
        None => path,
    }
}

/// The form shows hidden characters in the names of properties; the tool gets the names of its schema.
fn restore_names(arguments: &mut Map<String, Value>, verbatim_schema: &Value) {
    for field in SchemaForm::of(verbatim_schema).fields {
        if let Cow::Owned(shown) = escape_unsafe(&field.property)
            && let Some(value) = arguments.remove(&shown)
        {
            arguments.insert(field.property, value);
        }
    }
}

fn render_tool(
    visitor: &Visitor,
    details: ToolDetails,
    form: SchemaForm,
    status: StatusCode,
    notice: Option<Notice>,
    result: Option<ToolCallResult>,
) -> Response {
    let text = ToolsText::of(visitor.language());
    let page = Page::new(visitor, Section::Tools, details.tool.name.clone());
    let path = tool_path(&details.tool.name, &details.tool.source);
    render_with(status, &ToolPage { page, text, details, path, form, notice, result })
}

/// Calls the tool with what was entered, and shows the result.
async fn call(State(state): State<ConsoleState>, Path(name): Path<String>, form: SignedForm) -> Response {
    let SignedForm { visitor, fields } = form;
    let text = ToolsText::of(visitor.language());
    let details = match read_tool(&state, &visitor, &name).await {
        Ok(details) => details,
        Err(failure) => return render_failure(&visitor, Section::Tools, &failure),
    };
    let mut form = SchemaForm::of(&details.input_schema);
    let Some(mut arguments) = form.read(&fields) else {
        let notice = Notice::error(text.check_fields);
        return render_tool(&visitor, details, form, StatusCode::BAD_REQUEST, Some(notice), None);
    };
    match state.api.get_verbatim::<ToolDetails>(visitor.role(), &tool_path_of_api(&visitor, &name)).await {
        Ok(verbatim) => restore_names(&mut arguments, &verbatim.input_schema),
        Err(failure) => return render_failure(&visitor, Section::Tools, &failure),
    }
    match send_call(&state, &visitor, &details, arguments).await {
        Ok(result) => render_tool(&visitor, details, form, StatusCode::OK, None, Some(result)),
        Err(failure) => {
            let notice = if failure.is_not_offered() {
                Notice::error(CommonText::of(visitor.language()).not_offered)
            } else {
                Notice::failure(&failure, visitor.language())
            };
            render_tool(&visitor, details, form, failure.status, Some(notice), None)
        }
    }
}

async fn send_call(
    state: &ConsoleState,
    visitor: &Visitor,
    details: &ToolDetails,
    arguments: Map<String, Value>,
) -> Result<ToolCallResult, ApiFailure> {
    let path = format!("/tools/{}/call", url_encode(&details.tool.name));
    let body = json!({ "arguments": arguments, "source": details.tool.source });
    state.api.post(visitor.role(), &path, &body).await
}

impl ToolPage {
    fn description(&self) -> String {
        shorten(self.details.tool.description.trim(), MAX_DESCRIPTION_CHARS).into_owned()
    }

    fn schema(&self, schema: &Value) -> String {
        shorten(&pretty_json(schema), MAX_SCHEMA_CHARS).into_owned()
    }

    fn result_heading(&self, result: &ToolCallResult) -> String {
        let text = if result.is_error { self.text.result_error } else { self.text.result_done };
        fill(text, duration(result.duration_ms))
    }

    fn output(&self, result: &ToolCallResult) -> String {
        shorten(&result.output, MAX_RESULT_CHARS).into_owned()
    }

    /// The structured result, unless the text is the same.
    fn structured(&self, result: &ToolCallResult) -> Option<String> {
        let structured = result.structured.as_ref()?;
        let is_same = serde_json::from_str::<Value>(&result.output).is_ok_and(|output| output == *structured);
        (!is_same).then(|| self.schema(structured))
    }

    fn truncation(&self, result: &ToolCallResult) -> Option<String> {
        result.result_id.as_ref().map(|id| fill(self.text.truncated, id))
    }

    fn error_text(&self, error: &FieldError) -> &'static str {
        match error {
            FieldError::Missing => self.text.error_missing,
            FieldError::NotANumber => self.text.error_number,
            FieldError::NotAnInteger => self.text.error_integer,
            FieldError::NotAChoice => self.text.error_choice,
            FieldError::InvalidJson => self.text.error_json,
        }
    }

    fn label(&self, field: &FormField) -> String {
        if self.form.is_raw { self.text.raw_arguments.to_owned() } else { field.property.clone() }
    }

    fn statistics(&self) -> Option<StatisticsRow> {
        let statistics = self.details.statistics.as_ref()?;
        Some(StatisticsRow {
            calls: format!("{:.0}", statistics.weighted_calls),
            failures: format!("{:.0}", statistics.weighted_failures),
            success: percent(statistics.success_rate),
            median: duration(statistics.p50_ms),
            p95: duration(statistics.p95_ms),
            last_used: statistics.last_used_at.map(|at| (rfc3339(at), time(at))),
        })
    }
}
