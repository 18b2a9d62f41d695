//! Detects the type of values in a request, such as URLs, files and dates: a request with a value needs a tool that
//! takes one.

/// The words by which tool definitions name the type of a value; any of them may match. `None` for other words.
pub(crate) fn value_type_names(word: &str) -> Option<&'static [&'static str]> {
    let value = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '/');
    if value.len() < 3 {
        return None;
    }
    if value.contains("://") || value.starts_with("www.") {
        return Some(&["url", "website", "web", "link"]);
    }
    if let Some((_, host)) = value.split_once('@') {
        return host.contains('.').then_some(&["email", "mail"]);
    }
    if is_path(value) {
        return Some(&["file", "path"]);
    }
    let has_only_digits_and =
        |allowed: fn(u8) -> bool| value.bytes().all(|byte| byte.is_ascii_digit() || allowed(byte));
    if has_only_digits_and(|byte| byte == b'.') && value.matches('.').count() == 3 {
        return Some(&["ip"]);
    }
    if has_only_digits_and(|byte| byte == b'-') && value.matches('-').count() == 2 && value.len() >= 8 {
        return Some(&["date"]);
    }
    // A UUID.
    if value.len() == 36 && value.matches('-').count() == 4 {
        return Some(&["id", "identifier"]);
    }
    type_names_by_extension(value)
}

fn is_path(value: &str) -> bool {
    (value.starts_with('/') && value.len() > 3) || value.contains(":\\")
}

fn type_names_by_extension(value: &str) -> Option<&'static [&'static str]> {
    let (_, extension) = value.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "pdf" | "md" | "txt" | "csv" | "xlsx" | "xls" | "docx" | "doc" | "pptx" | "json" | "xml" | "yaml"
        | "html" | "log" | "py" => Some(&["file", "document"]),
        "png" | "jpg" | "jpeg" | "gif" | "svg" | "webp" => Some(&["image", "picture"]),
        "mp3" | "wav" | "flac" | "ogg" => Some(&["audio", "music", "sound"]),
        "mp4" | "mov" | "avi" | "webm" => Some(&["video"]),
        "com" | "org" | "net" | "io" | "de" | "cn" => Some(&["domain", "website", "url"]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_types_are_detected_by_their_format() {
        let first = |word: &str| value_type_names(word).and_then(|kinds| kinds.first()).copied();
        assert_eq!(first("https://example.com,"), Some("url"));
        assert_eq!(first("(bob@example.com)"), Some("email"));
        assert_eq!(first("/data/report.md."), Some("file"));
        assert_eq!(first("test.xlsx"), Some("file"));
        assert_eq!(first("192.168.0.1"), Some("ip"));
        assert_eq!(first("2026-11-15"), Some("date"));
        assert_eq!(first("f3094b2f-501a-4931-aa9c-f2ace5b455e1"), Some("id"));
        assert_eq!(first("3.14"), None);
        assert_eq!(first("well-known"), None);
    }
}
