//! The cookie that binds all steps of a sign-in to one browser.
//!
//! Without it, a caller could prove its identity, send the page of the authorization server to somebody else, and receive that
//! person's access. The cookie is `SameSite=Lax`: it comes with the redirects back, but not with a form on another site.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::{HeaderMap, HeaderValue, header};

use super::{
    pending::{STEP_TIMEOUT, SecretHash, hash},
    public_url::PublicUrl,
};

const SECRET_LENGTH: usize = 64;

/// The name of the cookie of a sign-in. `__Host-` keeps other hosts of the same domain from setting it.
fn cookie_name(url: &PublicUrl, id: &str) -> String {
    let prefix = if url.is_https() { "__Host-" } else { "" };
    format!("{prefix}toolyard-sign-in-{id}")
}

/// The secret that the browser has for a sign-in.
pub(super) fn secret<'a>(headers: &'a HeaderMap, url: &PublicUrl, id: &str) -> Option<&'a str> {
    let name = cookie_name(url, id);
    let mut found = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value);
    let secret = found.next().filter(|secret| secret.len() == SECRET_LENGTH)?;
    // A second one may have been set by somebody else.
    found.next().is_none().then_some(secret)
}

/// Whether the request comes from the browser with this secret.
pub(super) fn is_browser(headers: &HeaderMap, url: &PublicUrl, id: &str, expected: &SecretHash) -> bool {
    secret(headers, url, id).is_some_and(|secret| verify_slices_are_equal(&hash(secret), expected).is_ok())
}

/// `Set-Cookie` with a secret.
pub(super) fn set_cookie(url: &PublicUrl, id: &str, secret: &str) -> Option<HeaderValue> {
    let secure = if url.is_https() { "; Secure" } else { "" };
    let text = format!(
        "{}={secret}; Path=/; Max-Age={}; HttpOnly; SameSite=Lax{secure}",
        cookie_name(url, id),
        // Both steps may take their time.
        2 * STEP_TIMEOUT.as_secs()
    );
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Whether a form was submitted from a page of this gateway.
pub(super) fn is_own_form(headers: &HeaderMap, url: &PublicUrl) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_own_origin = |origin: &str| origin.eq_ignore_ascii_case(url.origin());
    text("origin").is_some_and(is_own_origin)
        && text("sec-fetch-site").is_none_or(|site| site == "same-origin")
}
