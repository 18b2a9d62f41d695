//! GPT-OSS messages: `<|channel|>commentary to=functions.get_time …<|message|>{…}`.

use super::{
    element::{Element, ParseContext},
    json_call::match_arguments,
    token::{Token, TokenKind, find_token},
};

const MAX_HEADER_BYTES: usize = 300;

/// Matches a message; `text` starts with its token `<|channel|>` or `<|start|>`. Without `<|message|>` within
/// [`MAX_HEADER_BYTES`] it is no message: the first byte is text, and the parser goes on after it.
pub(super) fn match_message(text: &str, context: ParseContext<'_>) -> Element {
    let limit = (0..=text.len().min(MAX_HEADER_BYTES)).rev().find(|at| text.is_char_boundary(*at));
    let start = text.get(..limit.unwrap_or(0)).unwrap_or_default();
    let message = find_token(start, |token| (token.tag == "message").then_some(token.len));
    let Some((at, len)) = message else {
        let is_complete = context.is_final || text.len() > MAX_HEADER_BYTES;
        return if is_complete { Element::Text(1) } else { Element::Incomplete };
    };
    let header = text.get(..at).unwrap_or_default();
    let from = at + len;
    if let Some((_, recipient)) = header.split_once("to=") {
        let name = recipient.split([' ', '<', '\n']).next().unwrap_or_default();
        return match_arguments(text, from, name, context);
    }
    // A message to the user: only its header is hidden.
    if !header.contains("analysis") {
        return Element::Hidden(from);
    }
    // Reasoning, up to `<|end|>` and the like or the next message.
    let end_token =
        |token: &Token| matches!(token.kind, TokenKind::Ignored | TokenKind::Channel).then_some(());
    match find_token(text.get(from..).unwrap_or_default(), end_token) {
        Some((end, ())) => Element::Hidden(from + end),
        None => context.at_end(Element::Hidden(text.len())),
    }
}
