//! The OpenAPI document, generated from the handlers.

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use toolyard_mcp_server::RouteResponse;
use utoipa::{
    OpenApi, ToSchema,
    openapi::{
        ContentBuilder, ObjectBuilder, OpenApi as OpenApiDocument, Ref,
        path::{HttpMethod, Operation, OperationBuilder, PathItem},
        response::ResponseBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::response::{ApiResponse, ApiResult};

/// The path of the document.
pub(super) const DOCUMENT_PATH: &str = "/api/openapi.json";
/// The schema of run events, which is public like the document.
pub(super) const EVENT_SCHEMA_PATH: &str = "/api/v1/events.schema.json";

/// What describes the whole API.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Toolyard HTTP API",
        version = "1",
        description = "Servers, tools, agents, runs and the audit log of a Toolyard gateway, and an OpenAI-compatible API \
                       in which models are agents. Times are Unix milliseconds and end in `_at`, durations are \
                       milliseconds and end in `_ms`. `/runs…` is an alias of `/api/v1/runs…`."
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
    /// `invalid_request_error` or `server_error`.
    r#type: String,
    /// The parameter that is wrong, if it is one.
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
    for item in document.paths.paths.values_mut() {
        let operations = [&mut item.get, &mut item.post, &mut item.put, &mut item.delete];
        operations.into_iter().flatten().for_each(add_common_errors);
    }
    if let Some(item) = document.paths.paths.get_mut(EVENT_SCHEMA_PATH)
        && let Some(operation) = &mut item.get
    {
        operation.security = Some(Vec::new());
        operation.responses.responses.remove("401");
    }
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

/// What every operation may answer: a request that cannot be read, a missing token, a store that does not answer.
fn add_common_errors(operation: &mut Operation) {
    for (status, description) in [
        ("400", "the request is invalid"),
        ("401", "the token is missing or wrong"),
        ("503", "the store does not answer"),
    ] {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
        let response =
            ResponseBuilder::new().description(description).content("application/json", content).build();
        operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
    }
}

/// A handler that responds with the document.
pub(super) fn serve(
    document: &OpenApiDocument,
) -> impl Fn() -> std::future::Ready<ApiResult> + Clone + Send + Sync + 'static {
    // The document consists of strings and maps with string keys, which always serialize.
    let text = Bytes::from(serde_json::to_vec(document).unwrap_or_default());
    move || std::future::ready(Ok(ApiResponse(RouteResponse::json(StatusCode::OK, text.clone()))))
}
