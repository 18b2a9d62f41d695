//! [`ApiClient`]: requests to the HTTP API in the same process.

use std::fmt;

use axum::{Router, body::Body, response::Response};
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toolyard_core::escape_unsafe;
use tower::ServiceExt as _;

use super::ApiFailure;
use crate::{config::AuthorizeRequest, session::Role};

/// Sends requests to the HTTP API. Paths are those below `/api/v1`.
#[derive(Clone)]
pub(crate) struct ApiClient {
    router: Router,
    authorize: AuthorizeRequest,
}

impl ApiClient {
    pub(crate) fn new(router: Router, authorize: AuthorizeRequest) -> Self {
        Self { router, authorize }
    }

    /// `GET` of a resource.
    pub(crate) async fn get<T: DeserializeOwned>(&self, role: Role, path: &str) -> Result<T, ApiFailure> {
        self.send(role, Method::GET, path, None).await
    }

    /// `GET` of a resource that some gateways do not have; `None` without it.
    pub(crate) async fn get_if_offered<T: DeserializeOwned>(
        &self,
        role: Role,
        path: &str,
    ) -> Result<Option<T>, ApiFailure> {
        match self.get(role, path).await {
            Ok(found) => Ok(Some(found)),
            Err(failure) if failure.is_not_offered() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// `POST` with a JSON body.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        role: Role,
        path: &str,
        body: &Value,
    ) -> Result<T, ApiFailure> {
        self.send(role, Method::POST, path, Some(body)).await
    }

    /// Sends a request and reads the JSON of its response. Characters that deceive a reader are made visible in all strings.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        role: Role,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<T, ApiFailure> {
        let mut value = self.send_json(role, method, path, body).await?;
        make_visible(&mut value);
        deserialize(value)
    }

    /// Reads data that is written back: hidden characters stay as they are, so the result is not for display.
    pub(crate) async fn get_verbatim<T: DeserializeOwned>(
        &self,
        role: Role,
        path: &str,
    ) -> Result<T, ApiFailure> {
        deserialize(self.send_json(role, Method::GET, path, None).await?)
    }

    /// Sends a request and reads the JSON of its response, as it is.
    async fn send_json(
        &self,
        role: Role,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ApiFailure> {
        let response = self.send_raw(role, method, path, HeaderMap::new(), body).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await;
        let bytes = bytes.map_err(|_| invalid_answer("the answer of the gateway cannot be read"))?.to_bytes();
        let mut value = if bytes.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&bytes)
                .map_err(|error| invalid_answer(format!("the gateway answered with invalid JSON: {error}")))?
        };
        if !status.is_success() {
            make_visible(&mut value);
            return Err(ApiFailure::of_response(status, value));
        }
        Ok(value)
    }

    /// Sends a request and returns its response as it is, such as an event stream.
    pub(crate) async fn send_raw(
        &self,
        role: Role,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Option<&Value>,
    ) -> Result<Response, ApiFailure> {
        let invalid =
            |_| ApiFailure::of_console(StatusCode::BAD_REQUEST, "invalid_path", "the path cannot be read");
        let uri: Uri = format!("/api/v1{path}").parse().map_err(invalid)?;
        let mut request = Request::new(body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let json = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        (self.authorize)(request.extensions_mut(), role);
        let Ok(response) = self.router.clone().oneshot(request).await;
        Ok(response)
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

fn invalid_answer(message: impl Into<String>) -> ApiFailure {
    ApiFailure::of_console(StatusCode::INTERNAL_SERVER_ERROR, "invalid_answer", message)
}

fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T, ApiFailure> {
    serde_json::from_value(value)
        .map_err(|error| invalid_answer(format!("the gateway answered with unexpected JSON: {error}")))
}

/// Writes hidden and direction-changing characters as `\u{…}`, so that what a person reads is what is there.
fn make_visible(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(visible) = escape_unsafe(text) {
                *text = visible;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(make_visible),
        Value::Object(fields) => {
            let is_unsafe = |key: &String| matches!(escape_unsafe(key), std::borrow::Cow::Owned(_));
            if fields.keys().any(is_unsafe) {
                let taken = std::mem::take(fields);
                fields
                    .extend(taken.into_iter().map(|(key, value)| (escape_unsafe(&key).into_owned(), value)));
            }
            fields.values_mut().for_each(make_visible);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
