//! Names in texts that can be compared exactly: files, paths, addresses, channels, cells and quoted passages.

use super::text::{contains_word, is_chinese, quotes};

/// The identifiers of a text, in lower case: paths and file names, mail addresses, web addresses, `#channels` and quoted
/// passages.
pub(super) fn identifiers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let is_boundary = |letter: char| {
        letter.is_whitespace() || "，。；：、！？（）()[]{}<>|*,;!?\"“”「」《》'`".contains(letter)
    };
    for word in text.split(is_boundary) {
        let word = word.trim_matches(['.', ':', '-', '=']);
        found.extend(identifiers_of_word(word).into_iter().map(|name| name.to_lowercase()));
    }
    // “a.png、b.png” are two names.
    let passages = quotes(text);
    found.extend(passages.iter().flat_map(|passage| passage.split('、')).map(normal_quote));
    found.retain(|name| !name.is_empty());
    found.dedup();
    found
}

/// A quoted passage without the punctuation around it.
fn normal_quote(passage: &str) -> String {
    passage
        .trim_matches(|letter: char| letter.is_whitespace() || ".,!?。，！？*".contains(letter))
        .to_lowercase()
}

/// The identifiers of a word. Chinese text may precede and follow them without a space.
fn identifiers_of_word(word: &str) -> Vec<String> {
    if let Some(at) = word.find("http://").or_else(|| word.find("https://")) {
        return vec![
            word.get(at..).unwrap_or_default().split(is_chinese).next().unwrap_or_default().to_owned(),
        ];
    }
    let path_start = word.char_indices().find(|(at, letter)| {
        let before = word.get(..*at).and_then(|before| before.chars().next_back());
        matches!(letter, '/' | '~') && before.is_none_or(is_chinese)
    });
    if let Some((at, _)) = path_start {
        let path = path_at(word.get(at..).unwrap_or_default());
        return if path.len() > 2 { vec![path] } else { Vec::new() };
    }
    let mut found = Vec::new();
    let mut chinese_before = String::new();
    for run in runs(word) {
        if run.starts_with(is_chinese) {
            run.clone_into(&mut chinese_before);
            continue;
        }
        let run = run.trim_end_matches('.');
        let is_mail = run.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
        if is_mail || is_channel(run) || is_file_name(run) {
            found.push(run.to_owned());
        } else if is_extension(run.strip_prefix('.').unwrap_or_default()) && !chinese_before.is_empty() {
            // How much of the Chinese text belongs to the name is not known; its end does.
            let length = chinese_before.chars().count();
            let stem: String = chinese_before.chars().skip(length.saturating_sub(2)).collect();
            found.push(format!("{stem}{run}"));
        }
        chinese_before.clear();
    }
    found
}

/// Runs of Chinese and of other characters.
fn runs(word: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut previous = None;
    for (at, letter) in word.char_indices() {
        let kind = is_chinese(letter);
        if previous.is_some_and(|previous| previous != kind) {
            found.push(word.get(start..at).unwrap_or_default());
            start = at;
        }
        previous = Some(kind);
    }
    found.push(word.get(start..).unwrap_or_default());
    found
}

/// A path at the start of a text. Chinese text after a part of it that is not Chinese follows the path.
fn path_at(text: &str) -> String {
    let mut path = String::new();
    let mut part_is_chinese = None;
    for letter in text.chars() {
        if matches!(letter, '/' | '\\') {
            part_is_chinese = None;
        } else if part_is_chinese.is_none() {
            part_is_chinese = Some(is_chinese(letter));
        } else if part_is_chinese == Some(false) && is_chinese(letter) {
            break;
        }
        path.push(letter);
    }
    path
}

/// `#channel` or `@name`, not `#12`.
fn is_channel(word: &str) -> bool {
    let name = word.strip_prefix(['#', '@']).unwrap_or_default();
    !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_'))
        && !name.chars().all(|letter| letter.is_ascii_digit())
}

/// A name with an extension: `sales.xlsx`, `src/cart.py`, not `3.14`, `e.g` or `v1.2`.
fn is_file_name(word: &str) -> bool {
    let Some((stem, extension)) = word.rsplit_once('.') else { return false };
    let is_abbreviation = stem.len() == 1 && extension.len() == 1;
    is_extension(extension) && !is_abbreviation && stem.chars().any(char::is_alphanumeric)
}

fn is_extension(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric())
        && text.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic())
}

/// Whether a text contains an identifier. A path may be shortened at its start.
pub(super) fn names(text: &str, identifier: &str) -> bool {
    let shortened = identifier.trim_start_matches(['~', '#', '@', '/']);
    text.contains(identifier)
        || (!shortened.is_empty() && text.contains(shortened))
        || names_parts(text, shortened)
        || names_host(text, shortened)
}

/// Whether a command names a folder and what is in it apart: `cd ~/thesis && zip figures.zip figures`.
fn names_parts(text: &str, path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').filter(|part| part.len() > 1).collect();
    parts.len() > 1 && text.contains("cd ") && parts.iter().all(|part| contains_word(text, part))
}

/// Whether a text names a host by its first label and its domain apart: `blog` and `example.org`.
fn names_host(text: &str, name: &str) -> bool {
    name.split_once('.').is_some_and(|(label, domain)| {
        domain.contains('.')
            && !name.contains(['/', '@'])
            && contains_word(text, label)
            && contains_word(text, domain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_found() {
        assert_eq!(
            identifiers("Save it as /data/Sales.xlsx, e.g. beside notes.md."),
            ["/data/sales.xlsx", "notes.md"]
        );
        assert_eq!(identifiers("把report.txt改名为final.txt"), ["report.txt", "final.txt"]);
        assert_eq!(identifiers("pi is 3.14 in v1.2"), [""; 0]);
        assert_eq!(identifiers("Tell #releases and ann@x.org, not #12"), ["#releases", "ann@x.org"]);
        assert_eq!(identifiers("给a@b.cn发“旧项目”"), ["a@b.cn", "旧项目"]);
        assert_eq!(identifiers("在/home/li下新建计划.md"), ["/home/li"]);
        assert_eq!(identifiers("存为新建计划.md"), ["计划.md"]);
        assert_eq!(identifiers("保存在 /home/li/桌面/计划.md。"), ["/home/li/桌面/计划.md"]);
    }
}
