//! Parses CC-CEDICT dictionaries: `Traditional Simplified [pin1 yin1] /gloss/gloss/`.

/// One entry of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DictionaryEntry {
    /// Traditional spelling.
    pub traditional: String,
    /// Simplified spelling.
    pub simplified: String,
    /// Pronunciation; a capital letter marks a proper name.
    pub pinyin: String,
    /// Definitions as written in the dictionary.
    pub definitions: Vec<String>,
}

/// The entries of a dictionary; comments and malformed lines are skipped.
pub fn parse_cedict(text: &str) -> impl Iterator<Item = DictionaryEntry> {
    text.lines().filter_map(parse_line)
}

fn parse_line(line: &str) -> Option<DictionaryEntry> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let (traditional, rest) = line.split_once(' ')?;
    let (simplified, rest) = rest.split_once(" [")?;
    let (pinyin, rest) = rest.split_once("] /")?;
    let definitions: Vec<String> = rest
        .split('/')
        .map(str::trim)
        .filter(|definition| !definition.is_empty())
        .map(str::to_owned)
        .collect();
    let is_valid = ![traditional, simplified].iter().any(|word| word.is_empty() || word.contains(' '));
    (is_valid && !definitions.is_empty()).then(|| DictionaryEntry {
        traditional: traditional.to_owned(),
        simplified: simplified.to_owned(),
        pinyin: pinyin.to_owned(),
        definitions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_parsed_and_comments_skipped() {
        let text =
            "# CC-CEDICT\r\n#! version=1\r\n刪除 删除 [shan1 chu2] /to delete/to cancel/\r\nnonsense\r\n";
        let read: Vec<DictionaryEntry> = parse_cedict(text).collect();
        assert_eq!(
            read,
            [DictionaryEntry {
                traditional: "刪除".to_owned(),
                simplified: "删除".to_owned(),
                pinyin: "shan1 chu2".to_owned(),
                definitions: vec!["to delete".to_owned(), "to cancel".to_owned()],
            }]
        );
    }

    #[test]
    fn malformed_lines_are_skipped() {
        for line in
            ["", "刪除", "刪除 删除", "刪除 删除 [shan1 chu2]", "刪除 删除 [shan1 chu2] //", " 删除 [a] /x/"]
        {
            assert_eq!(parse_cedict(line).count(), 0, "{line:?}");
        }
    }
}
