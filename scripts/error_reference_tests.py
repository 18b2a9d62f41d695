"""Tests of scripts/error-reference: which messages it finds, and that it complains. `PYTHONPATH=scripts python3 -m unittest error_reference_tests` runs them."""

import importlib.machinery
import importlib.util
import pathlib
import unittest

from rust_messages import Extraction
from rust_source import Source

PATH = pathlib.Path(__file__).resolve().parent / "error-reference"
LOADER = importlib.machinery.SourceFileLoader("error_reference", str(PATH))
error_reference = importlib.util.module_from_spec(importlib.util.spec_from_loader("error_reference", LOADER))
LOADER.exec_module(error_reference)

VARIANT = '''
enum StoreError {
    /// The disk is full.
    ///
    /// Remedy: make room.
    #[error("failed to write {path}: {0}")]
    Full(String),
}
'''


def extract(code, settings=None, path="crates/toolyard/src/x.rs"):
    return Extraction([Source(path, code)], settings or {})


def found(code, **options):
    return {message.pattern: message for message in extract(code, **options).messages}


def problems_of(code, data=None, settings=None):
    problems, extraction = [], extract(code, settings)
    error_reference.collect(extraction, settings or {}, data or {}, problems)
    error_reference.check_unresolved(extraction, settings or {}, problems)
    return problems


class Messages(unittest.TestCase):
    def test_a_variant_has_cause_and_remedy_of_its_comment(self):
        message = found(VARIANT)["failed to write PATH: TEXT"]
        self.assertEqual((message.cause, message.remedy), ("The disk is full.", "make room."))
        self.assertEqual(message.name, "StoreError::Full")

    def test_a_hint_is_the_remedy(self):
        message = found('fn f() { CliError::usage(format!("no file {}", path.display())).with_hint("pass one") }')["no file PATH"]
        self.assertEqual((message.remedy, message.labels), ("pass one", {"exit code 2"}))

    def test_a_hint_may_be_added_later(self):
        code = 'fn f() { let error = ToolError::failed("no"); error.on_tool(x).with_hint("wait") }'
        self.assertEqual(found(code)["no"].remedy, "wait")

    def test_message_and_hint_may_be_a_tuple(self):
        code = 'fn f() { let (message, hint) = match x { A => ("is denied", "ask somebody"), B => ("is away", "wait") }; ToolError::failed(message).with_hint(hint) }'
        remedies = {pattern: message.remedy for pattern, message in found(code).items()}
        self.assertEqual(remedies, {"is denied": "ask somebody", "is away": "wait"})

    def test_a_variable_of_another_block_is_not_the_hint(self):
        code = 'fn f() { let hint = "wait a while"; match x { A => { let hint = "ask somebody"; g(hint); } } CliError::failed("is away").with_hint(hint) }'
        self.assertEqual(found(code)["is away"].remedy, "wait a while")

    def test_a_function_passes_texts_of_a_library_on(self):
        place = {"path": "crates/toolyard/src/x.rs", "function": "convert", "kind": "tool", "library_texts": ["division by zero"]}
        code = "fn convert(error: MathError) -> ToolError { ToolError::failed(error.to_string()) }"
        self.assertIn("division by zero", found(code, settings={"texts": [place]}))

    def test_functions_and_closures_pass_messages_on(self):
        code = '''
        fn failure(message: &str) -> ToolError { ToolError::failed(message).with_hint("call again") }
        fn f() { failure("it broke"); let usage = |message: &str| CliError::usage(message); usage("no name") }
        '''
        messages = found(code)
        self.assertEqual(messages["it broke"].remedy, "call again")
        self.assertIn("no name", messages)

    def test_a_text_in_a_variant_is_a_detail_of_it(self):
        detail = found(VARIANT + 'fn f() { Err(StoreError::Full("quota of the user".to_owned())) }')["quota of the user"]
        self.assertEqual((detail.kind, detail.parent), ("detail", "StoreError::Full"))

    def test_status_and_code_are_those_of_the_struct_expression(self):
        code = 'fn f() { ApiError { status: StatusCode::FORBIDDEN, code: Some("operator_only"), ..ApiError::bad_request("not you") } }'
        self.assertEqual(found(code)["not you"].labels, {"HTTP 403 `operator_only`"})

    def test_status_and_code_may_be_set_later(self):
        code = 'fn f() { let error = ApiError::bad_request("not here"); ApiError { status: StatusCode::METHOD_NOT_ALLOWED, code: Some("no_method"), ..error } }'
        self.assertEqual(found(code)["not here"].labels, {"HTTP 405 `no_method`"})

    def test_warnings_are_found_and_information_is_not(self):
        messages = found('fn f() { tracing::warn!(%error, "server down"); tracing::info!("server up"); }')
        self.assertEqual(set(messages), {"server down"})

    def test_tests_and_comments_have_no_messages(self):
        code = '// CliError::usage("a")\n#[cfg(test)]\nmod tests { fn f() { CliError::usage("b") } }'
        self.assertEqual(found(code), {})


def lines(code, data=None, path="crates/toolyard/src/x.rs"):
    extraction = extract(code, path=path)
    entries, variants = error_reference.collect(extraction, {}, data or {}, [])
    return error_reference.page(entries, variants, []).split("\n")


class Page(unittest.TestCase):
    def test_an_entry_adds_to_the_hint(self):
        code = 'fn f() { CliError::failed("it rains").with_hint("wait") }'
        self.assertIn("  **Remedy:** Wait · take an umbrella.", lines(code, {"it rains": {"also": "take an umbrella"}}))

    def test_the_file_of_the_entry_decides_on_the_area_of_a_message_in_several(self):
        text = 'fn f() { ToolError::failed("no such tool") }'
        sources = [Source(f"crates/{crate}/src/x.rs", text) for crate in ("toolyard-gateway", "toolyard-hub", "toolyard-hub")]
        for area, shown in (("Tool calls", "Tool calls"), ("Models", "Gateway and HTTP API")):
            data = {"no such tool": {"remedy": "wait", "area": area}}
            entries, _ = error_reference.collect(Extraction(sources, {}), {}, data, [])
            self.assertEqual(entries["no such tool"].area, shown)

    def test_variants_with_the_same_message_keep_their_remedies(self):
        other = VARIANT.replace("StoreError", "Other").replace("The disk is full", "The disk is missing").replace("make room", "mount it")
        expected = "  The disk is full. **Remedy:** Make room. Or: The disk is missing. **Remedy:** Mount it."
        self.assertIn(expected, lines(VARIANT + other))


class Complaints(unittest.TestCase):
    def test_all_is_well(self):
        self.assertEqual(problems_of(VARIANT), [])

    def test_a_variant_without_remedy(self):
        self.assertIn("StoreError::Full needs a doc comment", problems_of(VARIANT.replace("Remedy: ", ""))[-1])

    def test_a_variant_without_comment_whose_text_another_one_has(self):
        code = VARIANT + 'enum Other { #[error("failed to write {path}: {0}")] Full(String) }'
        self.assertEqual(len(problems_of(code)), 1)

    def test_a_message_without_hint_needs_an_entry(self):
        code, entry = 'fn f() { CliError::failed("it rains") }', {"it rains": {"remedy": "wait"}}
        self.assertIn("`it rains` has no remedy", problems_of(code)[0])
        self.assertEqual(problems_of(code, entry), [])

    def test_an_entry_without_message(self):
        self.assertIn("`it snows` is not a message", problems_of(VARIANT, {"it snows": {"remedy": "wait"}})[0])

    def test_two_remedies(self):
        code = 'fn f() { CliError::failed("it rains").with_hint("wait") }'
        self.assertIn("has its remedy in the code", problems_of(code, {"it rains": {"remedy": "go"}})[0])

    def test_an_addition_without_hint(self):
        code = 'fn f() { CliError::failed("it rains") }'
        self.assertIn("write `remedy` in place of `also`", problems_of(code, {"it rains": {"also": "go"}})[-1])

    def test_a_message_that_is_no_literal(self):
        self.assertIn("is not a literal", problems_of("fn f() { CliError::failed(riddle()) }")[0])

    def test_an_error_of_another_form(self):
        self.assertIn("error without #[error", problems_of("impl std::error::Error for Odd {}")[0])
        self.assertIn("fails with a text", problems_of("fn f(x: u8) -> Result<u8, String> { Ok(x) }")[0])


if __name__ == "__main__":
    unittest.main()
