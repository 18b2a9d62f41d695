//! The HTML of the pages: no scripts, nothing from elsewhere.

use std::{fmt::Write as _, sync::LazyLock};

use aws_lc_rs::digest::{SHA256, digest};
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, StatusCode, header};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem;color:#1d2330}\
h1{font-size:1.3rem}dt{color:#5a6375}dd{margin:0 0 .6rem;font-weight:600;overflow-wrap:anywhere}\
input{font:inherit;width:100%;box-sizing:border-box;padding:.5rem;margin:.3rem 0 1rem}\
button{font:inherit;padding:.5rem 1.2rem}.error{color:#a3182a}\
@media (prefers-color-scheme:dark){body{background:#14171d;color:#e5e8ee}dt{color:#9aa4b5}.error{color:#ff8a94}}";

static CONTENT_SECURITY_POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_TYPE, "text/html; charset=utf-8"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // With `no-referrer`, browsers send `Origin: null` with our own forms, which then look forged.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// A page.
#[derive(Debug, Default)]
pub(super) struct Page {
    status: StatusCode,
    title: &'static str,
    body: String,
    /// Where the browser goes at once.
    next: Option<String>,
    cookie: Option<HeaderValue>,
}

impl Page {
    pub(super) fn new(status: StatusCode, title: &'static str) -> Self {
        Self { status, title, ..Self::default() }
    }

    /// Adds a paragraph.
    pub(super) fn text(mut self, text: &str) -> Self {
        self.add(&format!("<p>{}</p>", escape(text)));
        self
    }

    /// Adds a paragraph about a failure.
    pub(super) fn error(mut self, text: &str) -> Self {
        self.add(&format!("<p class=\"error\">{}</p>", escape(text)));
        self
    }

    /// Adds names with their values.
    pub(super) fn facts(mut self, facts: &[(&str, &str)]) -> Self {
        self.add("<dl>");
        for (name, value) in facts {
            self.add(&format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)));
        }
        self.add("</dl>");
        self
    }

    /// Adds a form that is posted to this page.
    pub(super) fn form(mut self, needs_key: bool, button: &str) -> Self {
        self.add("<form method=\"post\">");
        if needs_key {
            self.add(
                "<label>Your API key of this gateway<input type=\"password\" name=\"key\" autocomplete=\"off\" \
                 required autofocus></label>",
            );
        }
        self.add(&format!("<button>{}</button></form>", escape(button)));
        self
    }

    /// Leads on to another page. It is no redirect, because browsers apply the restriction of forms to redirects, too.
    pub(super) fn leading_to(mut self, url: &str) -> Self {
        self.add(&format!("<p><a href=\"{}\" rel=\"noreferrer\">Continue</a></p>", escape(url)));
        self.next = Some(url.to_owned());
        self
    }

    pub(super) fn with_cookie(mut self, cookie: Option<HeaderValue>) -> Self {
        self.cookie = cookie;
        self
    }

    fn add(&mut self, html: &str) {
        self.body.push_str(html);
    }
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let mut refresh = String::new();
        if let Some(url) = &self.next {
            // Writing to a string does not fail.
            let _ = write!(refresh, "<meta http-equiv=\"refresh\" content=\"0;url={}\">", escape(url));
        }
        let html = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\">{refresh}<title>{title} · Toolyard</title><style>{STYLE}</style></head>\
             <body><h1>{title}</h1>{}</body></html>\n",
            self.body,
            title = escape(self.title),
        );
        let mut response = Response::new(Body::from(html));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        for (name, value) in HEADERS {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY.clone());
        if let Some(cookie) = self.cookie {
            headers.insert(header::SET_COOKIE, cookie);
        }
        response
    }
}

/// Text for HTML, also inside of attributes in quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}
