//! Calls in the syntax of Python: `get_time(timezone="Asia/Tokyo")`, alone or in a list.

use serde_json::{Map, Value};

use super::{
    TextCall,
    loose_json::{Brackets, Fault, read_value},
    scanner::{Found, Knowledge},
    shape::{Shape, Standing, clean_name, finish},
    tagged::past_end,
};

/// An answer that is nothing but calls: `[get_time(…), calculate(…)]`, or a line of a block. For known tools only.
pub(super) fn whole(text: &str, standing: Option<Standing>, known: Knowledge<'_>) -> Option<Found> {
    let is_list = text.starts_with('[');
    if standing != Some(Standing::Tagged) && !is_list {
        return None;
    }
    match read(text, known) {
        Ok((calls, used)) => {
            let all_known = calls.iter().all(|call| (known.is_tool)(&call.name));
            (all_known && !calls.is_empty()).then_some(Found::Calls(used, calls))
        }
        Err(Fault::Incomplete) if !known.is_final => Some(Found::Wait),
        Err(_) => None,
    }
}

/// Calls within tags, from `from` on; none if that is no such form.
pub(super) fn calls(text: &str, from: usize, known: Knowledge<'_>) -> Option<Found> {
    match read(text.get(from..)?, known) {
        Ok((calls, used)) => {
            let end = past_end(text, from + used, known);
            let mut concluded = Vec::new();
            for call in calls {
                match finish(call, Standing::Tagged, known.is_tool) {
                    Shape::Calls(found) => concluded.extend(found),
                    Shape::Example => return Some(end.map_or(Found::Wait, Found::Example)),
                    Shape::Other => return Some(end.map_or(Found::Wait, Found::Unreadable)),
                }
            }
            Some(end.map_or(Found::Wait, |end| Found::Calls(end, concluded)))
        }
        Err(Fault::Incomplete) if !known.is_final => Some(Found::Wait),
        Err(Fault::Incomplete) => Some(Found::CutOff(text.len())),
        Err(Fault::Invalid(_)) => None,
    }
}

/// One call, or a list of them.
fn read(text: &str, known: Knowledge<'_>) -> Result<(Vec<TextCall>, usize), Fault> {
    let mut reader = Reader { text, at: 0 };
    let mut calls = Vec::new();
    if reader.accept('[')? {
        while !reader.accept(']')? {
            calls.push(reader.call(known)?);
            if !reader.accept(',')? && reader.peek()? != ']' {
                return Err(Fault::Invalid(reader.at));
            }
        }
    } else {
        calls.push(reader.call(known)?);
    }
    Ok((calls, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The next character that is not blank.
    fn peek(&mut self) -> Result<char, Fault> {
        let trimmed = self.rest().trim_start();
        let next = trimmed.chars().next();
        self.at = self.text.len() - trimmed.len();
        next.ok_or(Fault::Incomplete)
    }

    fn accept(&mut self, character: char) -> Result<bool, Fault> {
        let is_next = self.peek()? == character;
        self.at += if is_next { character.len_utf8() } else { 0 };
        Ok(is_next)
    }

    fn expect(&mut self, character: char) -> Result<(), Fault> {
        if self.accept(character)? { Ok(()) } else { Err(Fault::Invalid(self.at)) }
    }

    fn word(&mut self) -> Result<String, Fault> {
        let first = self.peek()?;
        if !first.is_alphabetic() && first != '_' {
            return Err(Fault::Invalid(self.at));
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = self.rest().find(|c| !is_part(c)).ok_or(Fault::Incomplete)?;
        let word = self.rest().get(..end).unwrap_or_default().to_owned();
        self.at += end;
        Ok(word)
    }

    /// `name(key=value, …)`, `name({…})`, and either within `print(…)`.
    fn call(&mut self, known: Knowledge<'_>) -> Result<TextCall, Fault> {
        let word = self.word()?;
        self.expect('(')?;
        if word == "print" {
            let inner = self.word()?;
            self.expect('(')?;
            let call = self.arguments(&inner, known)?;
            self.expect(')')?;
            return Ok(call);
        }
        self.arguments(&word, known)
    }

    fn arguments(&mut self, name: &str, known: Knowledge<'_>) -> Result<TextCall, Fault> {
        let name = name.strip_suffix(".call").unwrap_or(name);
        let name = clean_name(name, known.is_tool);
        let mut arguments = Map::new();
        if self.peek()? == '{' {
            match self.value()? {
                Value::Object(map) => arguments = map,
                _ => return Err(Fault::Invalid(self.at)),
            }
            self.expect(')')?;
            return Ok(TextCall { id: None, name, arguments, source: None });
        }
        while !self.accept(')')? {
            let key = self.word()?;
            self.expect('=')?;
            self.peek()?;
            let value = self.value()?;
            arguments.insert(key, value);
            if !self.accept(',')? && self.peek()? != ')' {
                return Err(Fault::Invalid(self.at));
            }
        }
        Ok(TextCall { id: None, name, arguments, source: None })
    }

    fn value(&mut self) -> Result<Value, Fault> {
        match read_value(self.rest(), Brackets::Closed) {
            Ok((value, used)) => {
                self.at += used;
                Ok(value)
            }
            Err(Fault::Invalid(at)) => Err(Fault::Invalid(self.at + at)),
            Err(Fault::Incomplete) => Err(Fault::Incomplete),
        }
    }
}
