//! Concepts by the form of a value: `report.xlsx` is about spreadsheets, `ABC-12` about issues.

/// The kind of every value in a word, and the terms of the concepts that it may mean.
pub(super) fn value_concepts(word: &str) -> Vec<(&'static str, &'static [&'static str])> {
    let mut found: Vec<(&'static str, &'static [&'static str])> = Vec::new();
    // Chinese has no spaces: the value is a run of ASCII inside the word.
    for part in word.split(|letter: char| !letter.is_ascii()) {
        let value = part.trim_matches(|letter: char| {
            !letter.is_ascii_alphanumeric() && !matches!(letter, '/' | '~' | '#' | '@' | '$')
        });
        found.extend(value_concept(value));
    }
    // `报销.xlsx`: the name of the file is not ASCII.
    if found.is_empty()
        && let Some((_, extension)) = word.rsplit_once('.')
    {
        let extension: String = extension.chars().take_while(char::is_ascii_alphanumeric).collect();
        found.extend(concept_of_extension(&extension.to_ascii_lowercase()));
    }
    found
}

fn value_concept(value: &str) -> Option<(&'static str, &'static [&'static str])> {
    if value.len() < 2 {
        return None;
    }
    let lower = value.to_ascii_lowercase();
    if lower.contains("://") || lower.starts_with("www.") {
        return Some(concept_of_url(&lower));
    }
    if let Some((user, host)) = value.split_once('@') {
        return (!user.is_empty() && host.contains('.')).then_some(("e-mail address", &["subject:mail"]));
    }
    if value.starts_with('#') {
        let is_number = value.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        return Some(if is_number {
            ("number", &["subject:issue", "subject:pull request"])
        } else {
            ("channel", &["subject:chat"])
        });
    }
    if value.starts_with('@') {
        return Some(("user name", &["subject:chat", "subject:people"]));
    }
    if is_issue_key(value) {
        return Some(("issue key", &["subject:issue"]));
    }
    if is_clock_time(&lower) {
        return Some(("time", &["subject:calendar", "subject:clock"]));
    }
    if is_arxiv_id(value) {
        return Some(("paper id", &["subject:paper"]));
    }
    if value.starts_with('$') {
        return Some(("amount", &["subject:money", "subject:stock"]));
    }
    if value.starts_with("~/") || (value.starts_with('/') && value.len() > 3) || value.contains(":\\") {
        let by_extension = lower.rsplit_once('.').and_then(|(_, extension)| concept_of_extension(extension));
        return Some(by_extension.unwrap_or(("path", &["subject:file", "subject:folder"])));
    }
    if is_cache_key(value) {
        return Some(("key", &["subject:cache"]));
    }
    let (stem, extension) = lower.rsplit_once('.')?;
    if stem.is_empty() { None } else { concept_of_extension(extension) }
}

fn concept_of_extension(extension: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match extension {
        "xlsx" | "xls" | "xlsm" | "ods" => ("spreadsheet file", &["subject:spreadsheet"]),
        "csv" | "tsv" => ("table file", &["subject:file", "subject:spreadsheet"]),
        "docx" | "doc" | "odt" | "rtf" => ("text document", &["subject:word document"]),
        "pptx" | "ppt" | "odp" | "key" => ("presentation file", &["subject:slides"]),
        "pdf" => ("PDF file", &["subject:pdf", "subject:file"]),
        "png" | "jpg" | "jpeg" | "gif" | "svg" | "webp" | "bmp" | "heic" => {
            ("image file", &["subject:picture", "subject:file"])
        }
        "mp4" | "mov" | "avi" | "webm" | "mkv" => ("video file", &["subject:video"]),
        "db" | "sqlite" | "sqlite3" | "duckdb" | "parquet" | "sql" => ("database file", &["subject:sql"]),
        "fig" => ("design file", &["subject:design"]),
        "zip" | "gz" | "tar" | "tgz" | "7z" | "rar" => ("archive", &["subject:archive", "subject:file"]),
        "tex" | "bib" => ("paper source", &["subject:paper", "subject:file"]),
        "ini" | "conf" | "cfg" | "toml" | "yaml" | "yml" | "env" | "txt" | "md" | "json" | "xml" | "log"
        | "py" | "js" | "ts" | "rs" | "go" | "java" | "c" | "cpp" | "sh" | "html" | "css" | "properties" => {
            ("file name", &["subject:file"])
        }
        "com" | "org" | "net" | "io" | "de" | "cn" | "dev" | "co" | "uk" | "fr" | "jp" => {
            ("domain", &["subject:webpage", "subject:browser"])
        }
        _ => return None,
    })
}

fn concept_of_url(url: &str) -> (&'static str, &'static [&'static str]) {
    const SITES: [(&str, &str, &[&str]); 9] = [
        ("youtu", "video address", &["subject:video"]),
        ("bilibili", "video address", &["subject:video"]),
        ("github.com", "repository address", &["subject:repository"]),
        ("gitlab", "repository address", &["subject:repository"]),
        ("arxiv.org", "paper address", &["subject:paper"]),
        ("figma.com", "design address", &["subject:design"]),
        ("atlassian.net", "issue address", &["subject:issue", "subject:wiki"]),
        ("notion.so", "page address", &["subject:notes"]),
        ("docs.google.com", "document address", &["subject:word document", "subject:spreadsheet"]),
    ];
    let site = SITES.iter().find(|(host, ..)| url.contains(host));
    site.map_or(("address", &["subject:webpage", "subject:browser"]), |(_, what, concepts)| {
        (*what, *concepts)
    })
}

/// Whether a word is written like `SHOP-17`.
fn is_issue_key(value: &str) -> bool {
    value.split_once('-').is_some_and(|(project, number)| {
        project.len() >= 2
            && project.len() <= 10
            && project.bytes().all(|byte| byte.is_ascii_uppercase())
            && !matches!(project, "UTF" | "ISO" | "SHA" | "COVID" | "GPT" | "HTTP" | "RFC" | "UTC" | "GMT")
            && !number.is_empty()
            && number.len() <= 6
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Whether a word is written like `9:30`, `3pm` or `15:00`.
fn is_clock_time(value: &str) -> bool {
    let digits = |text: &str, max: usize| {
        !text.is_empty() && text.len() <= max && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let hours = value.strip_suffix("am").or_else(|| value.strip_suffix("pm")).unwrap_or(value);
    match hours.split_once(':') {
        Some((hour, minute)) => digits(hour, 2) && minute.len() == 2 && digits(minute, 2),
        None => hours.len() < value.len() && digits(hours, 2),
    }
}

/// Whether a word is written like `1706.03762`.
fn is_arxiv_id(value: &str) -> bool {
    value.split_once('.').is_some_and(|(month, number)| {
        month.len() == 4
            && matches!(number.len(), 4 | 5)
            && month.bytes().chain(number.bytes()).all(|byte| byte.is_ascii_digit())
    })
}

/// Whether a word is written like `session:42`.
fn is_cache_key(value: &str) -> bool {
    value.split_once(':').is_some_and(|(name, rest)| {
        name.len() >= 2
            && !rest.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            && !rest.starts_with('/')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_evidence_for_subjects() {
        let kinds = |word: &str| value_concepts(word).first().map(|(_, terms)| terms[0]);
        assert_eq!(kinds("budget.xlsx"), Some("subject:spreadsheet"));
        assert_eq!(kinds("看看报销.xlsx里都写了什么"), Some("subject:spreadsheet"));
        assert_eq!(kinds("把SHOP-17交给小李"), Some("subject:issue"));
        assert_eq!(kinds("settings.ini"), Some("subject:file"));
        assert_eq!(kinds("tom@acme.org,"), Some("subject:mail"));
        assert_eq!(kinds("https://youtu.be/x"), Some("subject:video"));
        assert_eq!(kinds("9:30"), Some("subject:calendar"));
        assert_eq!(kinds("3pm"), Some("subject:calendar"));
        assert_eq!(kinds("#general"), Some("subject:chat"));
        assert_eq!(kinds("session:42"), Some("subject:cache"));
        assert_eq!(kinds("1706.03762"), Some("subject:paper"));
        for other in ["UTF-8", "3.14", "well-known", "pm", "e.g.", "word", "10.0.0.5"] {
            assert_eq!(kinds(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_word_can_be_examined(word in "\\PC{0,30}") {
            value_concepts(&word);
        }
    }
}
