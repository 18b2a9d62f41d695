//! Refuses expressions to which the calculator gives a result that their writer hardly meant: it ignores commas within
//! numbers, closes brackets by itself, and takes a division sign after another operator for a reciprocal.

use toolyard_core::ToolError;

/// Fails if the expression is ambiguous or incomplete.
pub(super) fn check_notation(expression: &str) -> Result<(), ToolError> {
    // A comment goes from `#` to the end of the line.
    let without_comment = |line: &'_ str| line.split('#').next().unwrap_or_default().to_owned();
    let expression = expression.lines().map(without_comment).collect::<Vec<_>>().join("\n");
    check_brackets(&expression)?;
    check_operators(&expression)?;
    check_digit_groups(&expression)
}

fn check_brackets(expression: &str) -> Result<(), ToolError> {
    let mut open = 0_usize;
    for character in expression.chars() {
        match character {
            '(' => open += 1,
            ')' if open == 0 => {
                return Err(ToolError::failed("a `)` of the expression has no `(`")
                    .with_hint("open or remove the bracket"));
            }
            ')' => open -= 1,
            _ => {}
        }
    }
    if open > 0 {
        return Err(
            ToolError::failed("a `(` of the expression has no `)`").with_hint("close or remove the bracket")
        );
    }
    Ok(())
}

/// The calculator reads `7 // 2` as 7 / (1/2), and `2 * / 3` as 2 * (1/3).
fn check_operators(expression: &str) -> Result<(), ToolError> {
    let is_division = |character| matches!(character, '/' | '÷' | '∕');
    let mut follows_operator = false;
    for character in expression.chars().filter(|character| !character.is_whitespace()) {
        if follows_operator && is_division(character) {
            return Err(ToolError::failed(format!("the expression has an operator before `{character}`, and no number between"))
                .with_hint("write the missing number, or remove one of the operators; floor(7/2) leaves out the fraction"));
        }
        follows_operator =
            is_division(character) || matches!(character, '*' | '×' | '✕' | '+' | '-' | '−' | '^');
    }
    Ok(())
}

/// Commas separate thousands. Other commas may be decimal ones: the calculator reads `1,5` as 15.
fn check_digit_groups(expression: &str) -> Result<(), ToolError> {
    let is_number_part = |character: char| character.is_ascii_digit() || matches!(character, ',' | '.');
    let mut numbers = expression
        .split(|character| !is_number_part(character))
        .filter(|part| part.contains(|character: char| character.is_ascii_digit()));
    match numbers.find(|number| !has_usual_groups(number)) {
        None => Ok(()),
        Some(number) => Err(ToolError::failed(format!(
            "`{number}` may be a number with a decimal comma, or several numbers"
        ))
        .with_hint("write decimals with a point, as in 1.5, and lists as in sum([1, 2])")),
    }
}

/// Whether the digits before the point are in groups of three, or of two with a last one of three.
fn has_usual_groups(number: &str) -> bool {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let Some((before_last, last)) = whole.rsplit_once(',') else { return !fraction.contains(',') };
    let mut others = before_last.split(',');
    let first = others.next().unwrap_or_default();
    (1..=3).contains(&first.len())
        && !first.starts_with('0')
        && others.all(|group| (2..=3).contains(&group.len()))
        && last.len() == 3
        && !fraction.contains(',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_notations_are_accepted() {
        for expression in [
            "2+3",
            "((1))*2",
            "1,000",
            "12,345,678.25 / 3",
            "12,34,567",
            "5 km / hour",
            "2 ** 3",
            "2+-3",
            "--2",
            "f = x: 2x; f 3",
            "10 % 3",
            "12 * 4 # hours, per week (as usual",
            "5'11\"",
            "@2024-01-31",
        ] {
            assert!(check_notation(expression).is_ok(), "{expression}");
        }
    }

    #[test]
    fn ambiguous_and_incomplete_expressions_are_refused() {
        for (expression, reason) in [
            ("(2+3", "no `)`"),
            ("2+3)", "no `(`"),
            (")(", "no `(`"),
            ("2 * / 3", "before `/`"),
            ("7 // 2", "before `/`"),
            ("2 × ÷ 3", "before `÷`"),
            ("1,5", "decimal comma"),
            ("1,2", "decimal comma"),
            ("3 * 0,125,5", "decimal comma"),
            ("1,2345", "decimal comma"),
            ("(1, 2)", "decimal comma"),
            (",5", "decimal comma"),
            ("1,,000", "decimal comma"),
            ("0,125", "decimal comma"),
            ("1234,567", "decimal comma"),
            ("1.234,567", "decimal comma"),
        ] {
            let error = check_notation(expression).expect_err(expression);
            assert!(error.message().contains(reason), "{expression}: {}", error.message());
        }
    }
}
