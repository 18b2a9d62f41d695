//! The OpenAPI document, generated from the handlers.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use toolyard_mcp_server::RouteResponse;
use utoipa::{
    OpenApi, ToSchema,
    openapi::{
        ContentBuilder, ObjectBuilder, OpenApi as OpenApiDocument, Ref, RefOr, Schema, Type,
        path::{HttpMethod, Operation, OperationBuilder, PathItem},
        response::{Response, ResponseBuilder},
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    error_code::ErrorCode,
    response::{ApiResponse, ApiResult},
};

/// The path of the document.
pub(super) const DOCUMENT_PATH: &str = "/api/openapi.json";
/// The schema of run events, which is public like the document.
pub(super) const EVENT_SCHEMA_PATH: &str = "/api/v1/events.schema.json";

/// The events of a run.
const EVENT_STREAM_PATH: &str = "/api/v1/runs/{run}/events";

/// Operations that no token leads to.
const OPERATOR_OPERATIONS: [&str; 10] = [
    "GET /api/v1/settings",
    "GET /api/v1/import",
    "POST /api/v1/import",
    "POST /api/v1/servers",
    "PATCH /api/v1/servers/{name}",
    "POST /api/v1/servers/{name}/approve",
    "GET /api/v1/servers/{name}/details",
    "POST /api/v1/servers/{name}/sign-in",
    "POST /api/v1/servers/{name}/stop",
    "POST /api/v1/servers/{name}/connect",
];
/// Tags of operations that need agents.
const AGENT_TAGS: [&str; 4] = ["agents", "approvals", "openai", "runs"];

/// What describes the whole API.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Toolyard HTTP API",
        version = "1",
        description = "Servers, tools and their calls, agents, runs, approvals, the audit log, an overview of the activity, \
                       and the settings of a Toolyard gateway, and an OpenAI-compatible API in which models are agents. \
                       Operations with `x-operator-only` refuse every client (403); the gateway's own console uses them. \
                       Times are Unix milliseconds and end in `_at`, durations are milliseconds and end in `_ms`. \
                       `/runs…` is an alias of `/api/v1/runs…`."
    ),
    components(schemas(ErrorBody)),
    security(("token" = []))
)]
pub(super) struct Document;

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Debug, Serialize, ToSchema)]
struct ErrorDetail {
    /// What failed and why.
    message: String,
    /// OpenAI's: `invalid_request_error`, also for 401, 403, 404 and 409, `rate_limit_error` (429) or `server_error`.
    r#type: String,
    /// The parameter or field of the body that is wrong, if it is one: `limit`, `history[0].role`.
    param: Option<String>,
    /// A stable word, such as `run_not_found`.
    code: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Adds what is not generated: the security scheme, and the path of the document itself.
pub(super) fn complete(document: &mut OpenApiDocument) {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(bearer));
    for (path, item) in &mut document.paths.paths {
        let operations = [
            ("GET", &mut item.get),
            ("POST", &mut item.post),
            ("PUT", &mut item.put),
            ("PATCH", &mut item.patch),
            ("DELETE", &mut item.delete),
        ];
        for (method, operation) in operations {
            let Some(operation) = operation else { continue };
            add_common_errors(operation);
            describe_responses(operation);
            if OPERATOR_OPERATIONS.contains(&format!("{method} {path}").as_str()) {
                mark_operator_only(operation);
            }
        }
    }
    if let Some(item) = document.paths.paths.get_mut(EVENT_SCHEMA_PATH)
        && let Some(operation) = &mut item.get
    {
        operation.security = Some(Vec::new());
        operation.responses.responses.remove("401");
    }
    describe_event_stream(document);
    describe_error_codes(document);
    let object = ObjectBuilder::new().build();
    let content = ContentBuilder::new().schema(Some(object)).build();
    let response =
        ResponseBuilder::new().description("this document").content("application/json", content).build();
    let operation = OperationBuilder::new()
        .summary(Some("Describes the API. Needs no token."))
        .operation_id(Some("openapi"))
        .response("200", response)
        .securities(Some([]))
        .build();
    let path = PathItem::new(HttpMethod::Get, operation);
    document.paths.paths.insert(DOCUMENT_PATH.to_owned(), path);
}

/// What every operation may answer, unless its own description says more: a request that cannot be read, a missing token, a
/// store that does not answer, a defect; and what those of agents answer where there are none.
fn add_common_errors(operation: &mut Operation) {
    let tags = operation.tags.as_deref().unwrap_or_default();
    let needs_agents = tags.iter().any(|tag| AGENT_TAGS.contains(&tag.as_str()));
    let has_body = operation.request_body.is_some();
    for (status, description, is_possible) in [
        ("400", "the request is invalid", true),
        ("401", "the token is missing or wrong", true),
        ("404", "this gateway offers no agents", needs_agents),
        ("413", "the body is too long", has_body),
        ("500", "the gateway failed to handle the request", true),
        ("503", "the store does not answer", true),
    ] {
        if is_possible {
            let response = error_response(description);
            operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
        }
    }
}

/// Describes responses that have no description of their own.
fn describe_responses(operation: &mut Operation) {
    for (status, response) in &mut operation.responses.responses {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description = default_description(status).to_owned();
        }
    }
}

fn default_description(status: &str) -> &'static str {
    match status {
        "200" => "the result",
        "201" => "what was added",
        "202" => "accepted; the response does not wait for the result",
        "204" => "done",
        "400" => "the request is invalid",
        "403" => "the caller may not do this",
        "404" => "not found, or not enabled in this gateway",
        "409" => "conflicts with the current state",
        "422" => "the request is valid but cannot be executed; `code` says why",
        "429" => "a quota is used up",
        "502" => "the model cannot be reached, and a tool that may change something was called before",
        "503" => "the gateway or its store is unavailable",
        _ => "the gateway failed to handle the request",
    }
}

/// Says which schema the events of a run have.
fn describe_event_stream(document: &mut OpenApiDocument) {
    let description =
        format!("Server-sent events; `data` of each is JSON by the schema at `{EVENT_SCHEMA_PATH}`.");
    let events = ObjectBuilder::new().schema_type(Type::String).description(Some(description)).build();
    let operation = document.paths.paths.get_mut(EVENT_STREAM_PATH).and_then(|item| item.get.as_mut());
    let response = operation.and_then(|operation| operation.responses.responses.get_mut("200"));
    if let Some(RefOr::T(response)) = response {
        let content = ContentBuilder::new().schema(Some(events)).build();
        response.content.insert("text/event-stream".to_owned(), content);
    }
}

/// Lists the codes of errors, as examples: a closed list would break clients when a code is added.
fn describe_error_codes(document: &mut OpenApiDocument) {
    let components = document.components.get_or_insert_default();
    let Some(RefOr::T(Schema::Object(detail))) = components.schemas.get_mut("ErrorDetail") else { return };
    let Some(RefOr::T(Schema::Object(code))) = detail.properties.get_mut("code") else { return };
    let codes = ErrorCode::all();
    let words: Vec<String> = codes.iter().filter_map(|code| Some(format!("`{}`", code.as_str()?))).collect();
    code.description = Some(format!("A stable word. Others may be added to these: {}.", words.join(", ")));
    code.examples = codes;
}

fn error_response(description: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description(description).content("application/json", content).build()
}

/// Says that no token is enough for an operation.
fn mark_operator_only(operation: &mut Operation) {
    let extensions = operation.extensions.get_or_insert_default();
    extensions.insert("x-operator-only".to_owned(), true.into());
    let response = error_response("always, for clients of this API");
    operation.responses.responses.insert("403".to_owned(), response.into());
}

/// A handler that responds with the document.
pub(super) fn serve(
    document: &OpenApiDocument,
) -> impl Fn() -> std::future::Ready<ApiResult> + Clone + Send + Sync + 'static {
    // The document consists of strings and maps with string keys, which always serialize.
    let text = Bytes::from(serde_json::to_vec(document).unwrap_or_default());
    move || std::future::ready(Ok(ApiResponse(RouteResponse::json(StatusCode::OK, text.clone()))))
}
