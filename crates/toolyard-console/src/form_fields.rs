//! [`SignedForm`]: reads submitted forms and refuses those that another site forged.

use axum::{
    extract::{FromRequest, FromRequestParts as _, Request},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};

use crate::{
    api::ApiFailure,
    page::{Section, render_failure},
    request_context::Visitor,
    router::ConsoleState,
    text::CommonText,
};

/// The fields of a form, in order. Names may repeat.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    pub(crate) fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    #[cfg(test)]
    pub(crate) fn of(fields: Vec<(String, String)>) -> Self {
        Self(fields)
    }

    /// The first field of this name; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// The first field of this name.
    pub(crate) fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// All fields of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// A form that a signed-in visitor submitted from one of our pages.
#[derive(Debug)]
pub(crate) struct SignedForm {
    pub(crate) visitor: Visitor,
    pub(crate) fields: FormFields,
}

impl FromRequest<ConsoleState> for SignedForm {
    type Rejection = Response;

    async fn from_request(request: Request, state: &ConsoleState) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let is_same_origin = is_same_origin(&parts.headers);
        let body = Bytes::from_request(Request::from_parts(parts, body), state).await;
        let body = body.map_err(|rejection| {
            let failure =
                ApiFailure::of_console(rejection.status(), "request_too_large", rejection.body_text());
            render_failure(&visitor, Section::Other, &failure)
        })?;
        let fields = FormFields::parse(&body);
        let presented = blake3::hash(fields.get("csrf").as_bytes());
        // Hashes are compared in constant time.
        if !is_same_origin || presented != blake3::hash(visitor.csrf.as_bytes()) {
            let text = CommonText::of(visitor.language());
            let hint = Some(text.forged_form_hint);
            let failure = ApiFailure::translated(StatusCode::FORBIDDEN, text.forged_form, hint);
            return Err(render_failure(&visitor, Section::Other, &failure));
        }
        Ok(Self { visitor, fields })
    }
}

impl SignedForm {
    /// The answer to a form in which a value is missing or unknown. Nothing is guessed, because the form changes something.
    pub(crate) fn render_invalid(&self, section: Section) -> Response {
        let text = CommonText::of(self.visitor.language());
        let hint = Some(text.forged_form_hint);
        let failure = ApiFailure::translated(StatusCode::BAD_REQUEST, text.invalid_form, hint);
        render_failure(&self.visitor, section, &failure)
    }
}

/// Whether a request does not come from a page of another origin, as far as the browser says.
pub(crate) fn is_same_origin(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(http::HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin" && site != b"none") {
        return false;
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let origin = origin.to_str().ok();
    let origin_host =
        origin.and_then(|origin| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")));
    matches!((origin_host, host), (Some(origin), Some(host)) if origin.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_our_own_origin_is_accepted() {
        let check = |origin: Option<&'static str>, site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost:7300"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            if let Some(site) = site {
                headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            }
            is_same_origin(&headers)
        };
        assert!(check(None, None));
        assert!(check(Some("http://localhost:7300"), Some("same-origin")));
        assert!(check(Some("https://LOCALHOST:7300"), None));
        for (origin, site) in [
            (Some("http://localhost:3000"), None),
            (Some("null"), None),
            (None, Some("same-site")),
            (None, Some("cross-site")),
            (Some("http://localhost:7300"), Some("cross-site")),
            (Some("http://localhost:7300.evil.example"), None),
        ] {
            assert!(!check(origin, site), "{origin:?} {site:?}");
        }
    }
}
