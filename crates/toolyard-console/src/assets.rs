//! The style sheet and the scripts. Their URLs have a content hash, so that browsers may keep them forever.

use std::{io::Write as _, sync::LazyLock};

use axum::{Router, extract::Path, response::IntoResponse, routing::get};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderMap, StatusCode, header};

use crate::router::ConsoleState;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
/// Digits of the content hash in a URL.
const HASH_DIGITS: usize = 16;

/// A file that pages load.
pub(crate) struct Asset {
    file_name: String,
    content_type: &'static str,
    content: &'static str,
    /// The content as gzip. Pages are not compressed: they hold tokens beside text of others, which must not share a
    /// compressed stream.
    gzipped: Option<Bytes>,
}

impl Asset {
    fn new(stem: &str, extension: &str, content_type: &'static str, content: &'static str) -> Self {
        let hash = blake3::hash(content.as_bytes()).to_hex();
        let hash = hash.get(..HASH_DIGITS).unwrap_or_default();
        let file_name = format!("{stem}.{hash}.{extension}");
        Self { file_name, content_type, content, gzipped: gzip(content.as_bytes()) }
    }

    /// The path of its URL.
    pub(crate) fn url(&self) -> String {
        format!("/console/assets/{}", self.file_name)
    }
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Layout and colours of all pages.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new(
        "console",
        "css",
        CSS,
        concat!(include_str!("../assets/console.css"), include_str!("../assets/graph.css")),
    )
});
/// Small conveniences of all pages.
pub(crate) static CONSOLE_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("console", "js", SCRIPT, include_str!("../assets/console.js")));
/// Live updates of runs and the chat.
pub(crate) static LIVE_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("live", "js", SCRIPT, include_str!("../assets/live.js")));

pub(crate) fn routes() -> Router<ConsoleState> {
    Router::new().route("/console/assets/{name}", get(serve))
}

fn gzip(content: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted =
        headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|encoding| encoding.trim() == "gzip")
}

async fn serve(Path(name): Path<String>, request: HeaderMap) -> impl IntoResponse {
    let assets = [&*STYLE, &*CONSOLE_SCRIPT, &*LIVE_SCRIPT];
    match assets.into_iter().find(|asset| asset.file_name == name) {
        Some(asset) => {
            let headers = [
                (header::CONTENT_TYPE, asset.content_type),
                (header::CACHE_CONTROL, IMMUTABLE),
                (header::VARY, "accept-encoding"),
            ];
            match asset.gzipped.clone().filter(|_| accepts_gzip(&request)) {
                Some(content) => (headers, [(header::CONTENT_ENCODING, "gzip")], content).into_response(),
                None => (headers, asset.content).into_response(),
            }
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
