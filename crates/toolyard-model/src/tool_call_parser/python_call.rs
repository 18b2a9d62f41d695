//! Calls in Python syntax: `get_time(timezone="Asia/Tokyo")`, alone or in a list.

use serde_json::{Map, Value};

use super::{
    ParsedToolCall,
    call_end::skip_call_end,
    call_object::{Interpretation, Markup, check_call, normalize_name},
    element::{Element, ParseContext},
};
use crate::lenient_json::{LenientJsonError, parse_prefix};

/// Matches calls of known tools without tags: `[get_time(…), calculate(…)]` as the whole text, or a line of a code block.
pub(super) fn match_untagged(
    text: &str,
    markup: Option<Markup>,
    context: ParseContext<'_>,
) -> Option<Element> {
    let is_list = text.starts_with('[');
    if markup != Some(Markup::Tagged) && !is_list {
        return None;
    }
    match parse_calls(text, context) {
        Ok((calls, used)) => {
            let are_known = calls.iter().all(|call| (context.is_tool)(&call.name));
            (are_known && !calls.is_empty()).then_some(Element::Calls(used, calls))
        }
        Err(LenientJsonError::Incomplete) if !context.is_final => Some(Element::Incomplete),
        Err(_) => None,
    }
}

/// Matches the content of a tagged call at `from`; `None` if it is not Python syntax.
pub(super) fn match_tagged(text: &str, from: usize, context: ParseContext<'_>) -> Option<Element> {
    match parse_calls(text.get(from..)?, context) {
        Ok((calls, used)) => {
            let end = skip_call_end(text, from + used, context);
            let mut checked = Vec::new();
            for call in calls {
                match check_call(call, Markup::Tagged, context.is_tool) {
                    Interpretation::Calls(calls) => checked.extend(calls),
                    Interpretation::Example => {
                        return Some(end.map_or(Element::Incomplete, Element::Example));
                    }
                    Interpretation::NoCall => {
                        return Some(end.map_or(Element::Incomplete, Element::Malformed));
                    }
                }
            }
            Some(end.map_or(Element::Incomplete, |end| Element::Calls(end, checked)))
        }
        Err(LenientJsonError::Incomplete) if !context.is_final => Some(Element::Incomplete),
        Err(LenientJsonError::Incomplete) => Some(Element::Truncated(text.len())),
        Err(LenientJsonError::Invalid(_)) => None,
    }
}

/// Parses a call or a list of calls; returns the number of bytes used.
fn parse_calls(
    text: &str,
    context: ParseContext<'_>,
) -> Result<(Vec<ParsedToolCall>, usize), LenientJsonError> {
    let mut parser = Parser { text, at: 0 };
    let mut calls = Vec::new();
    if parser.accept('[')? {
        while !parser.accept(']')? {
            calls.push(parser.call(context)?);
            if !parser.accept(',')? && parser.peek()? != ']' {
                return Err(LenientJsonError::Invalid(parser.at));
            }
        }
    } else {
        calls.push(parser.call(context)?);
    }
    Ok((calls, parser.at))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character after whitespace.
    fn peek(&mut self) -> Result<char, LenientJsonError> {
        let trimmed = self.rest().trim_start();
        let next = trimmed.chars().next();
        self.at = self.text.len() - trimmed.len();
        next.ok_or(LenientJsonError::Incomplete)
    }

    fn accept(&mut self, character: char) -> Result<bool, LenientJsonError> {
        let is_next = self.peek()? == character;
        self.at += if is_next { character.len_utf8() } else { 0 };
        Ok(is_next)
    }

    fn expect(&mut self, character: char) -> Result<(), LenientJsonError> {
        if self.accept(character)? { Ok(()) } else { Err(LenientJsonError::Invalid(self.at)) }
    }

    fn identifier(&mut self) -> Result<String, LenientJsonError> {
        let first = self.peek()?;
        if !first.is_alphabetic() && first != '_' {
            return Err(LenientJsonError::Invalid(self.at));
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = self.rest().find(|c| !is_part(c)).ok_or(LenientJsonError::Incomplete)?;
        let identifier = self.rest().get(..end).unwrap_or_default().to_owned();
        self.at += end;
        Ok(identifier)
    }

    /// `name(key=value, …)`, `name({…})`, and either within `print(…)`.
    fn call(&mut self, context: ParseContext<'_>) -> Result<ParsedToolCall, LenientJsonError> {
        let identifier = self.identifier()?;
        self.expect('(')?;
        if identifier == "print" {
            let inner = self.identifier()?;
            self.expect('(')?;
            let call = self.arguments(&inner, context)?;
            self.expect(')')?;
            return Ok(call);
        }
        self.arguments(&identifier, context)
    }

    fn arguments(
        &mut self,
        name: &str,
        context: ParseContext<'_>,
    ) -> Result<ParsedToolCall, LenientJsonError> {
        let name = name.strip_suffix(".call").unwrap_or(name);
        let name = normalize_name(name, context.is_tool);
        let mut arguments = Map::new();
        if self.peek()? == '{' {
            match self.value()? {
                Value::Object(map) => arguments = map,
                _ => return Err(LenientJsonError::Invalid(self.at)),
            }
            self.expect(')')?;
            return Ok(ParsedToolCall { id: None, name, arguments, source: None });
        }
        while !self.accept(')')? {
            let key = self.identifier()?;
            self.expect('=')?;
            self.peek()?;
            let value = self.value()?;
            arguments.insert(key, value);
            if !self.accept(',')? && self.peek()? != ')' {
                return Err(LenientJsonError::Invalid(self.at));
            }
        }
        Ok(ParsedToolCall { id: None, name, arguments, source: None })
    }

    fn value(&mut self) -> Result<Value, LenientJsonError> {
        match parse_prefix(self.rest()) {
            Ok((value, used)) => {
                self.at += used;
                Ok(value)
            }
            Err(LenientJsonError::Invalid(at)) => Err(LenientJsonError::Invalid(self.at + at)),
            Err(LenientJsonError::Incomplete) => Err(LenientJsonError::Incomplete),
        }
    }
}
