"""Finds the error messages in the Rust source of the workspace, with what is written beside them: causes, remedies and hints.

Messages come from
- `#[error("…")]` attributes (thiserror): cause and remedy are in the doc comment of the variant;
- calls of constructors of errors (rust_error_types.py), and of functions and closures that pass a text on to one;
- texts that are put into a variant of an error type, such as `SkillError::InvalidEntry("listed twice")`: details of the variant;
- warnings and errors in the log (tracing);
- functions and constants with texts of errors, which docs/reference/errors/extraction.toml names; for functions that pass
  on what a library says, it has the texts.
"""

import re
from dataclasses import dataclass, field

from rust_error_types import (
    CONSTRUCTORS,
    EXIT_CODES,
    FAILURE_NOTE,
    HTTP_CODE,
    HTTP_NAMES,
    HTTP_STATUS,
    KIND_OF_TYPE,
    MESSAGE_FIELDS,
    MESSAGE_PARAMETER,
    NOT_ERRORS,
    NOT_MESSAGES,
    ONLY_IN,
    OPAQUE_TYPES,
    PASSED_ON,
    TEXT_TYPE,
)
from rust_source import Source, expression_placeholder, split_words, type_placeholder


@dataclass
class Message:
    pattern: str
    kind: str  # variant, cli, tool, http, rpc, model, doctor, page, log, detail
    path: str
    line: int
    name: str = ""  # Type::Variant, or the constructor
    cause: str = ""
    remedy: str = ""
    labels: set = field(default_factory=set)  # exit codes, HTTP statuses and codes, "log"
    parent: str = ""  # of a detail: the variant that quotes it

    def __post_init__(self):
        self.pattern = " ".join(self.pattern.split())

    @property
    def place(self):
        return f"{self.path}:{self.line}"


class Extraction:
    def __init__(self, sources, settings):
        self.sources, self.settings = sources, settings
        self.messages, self.unresolved = [], []
        self.constants, self.types, self.shared_helpers = {}, {}, {}
        self.exit_codes = self._numbers("crates/toolyard/src/error.rs", r"^    (\w+) = (\d+),")
        self.rpc_codes = self._numbers("crates/toolyard-mcp/src/error_code.rs", r"pub const (\w+): i64 = (-\d+);")
        for source in sources:
            self._read_constants(source)
        for source in sources:
            self._read_variants(source)
        for source in sources:
            self._read_calls(source)
            self._read_details(source)
            self._read_log(source)
        self._read_named_places()

    def _numbers(self, path, pattern):
        code = "".join(source.code for source in self.sources if source.path == path)
        return {name: int(number) for name, number in re.findall(pattern, code, re.M)}

    # --- thiserror -----------------------------------------------------------

    def _read_constants(self, source):
        for match in re.finditer(r"\b(?:const|static) (\w+): &(?:'static )?str =", source.code):
            if text := source.string_at(match.end()):
                self.constants[match.group(1)] = text[2]
                self.constants[source.path, match.group(1)] = text[2]
        for match in re.finditer(r"\bconst (\w+): (?:usize|u\d+|i\d+) = ([\d_*<+\- ]+);", source.code):
            self.constants[source.path, match.group(1)] = f"{eval(match.group(2)):,}".replace(",", "")

    def _constant(self, source, name):
        return self.constants.get((source.path, name)) or self.constants.get(name)

    def _read_variants(self, source):
        for match in re.finditer(r"#\[error\(", source.code):
            opening = match.end() - 1
            name, fields = self._item_after(source, source.closing(opening) + 2)
            owner = source.innermost(source.enums, match.start()) or name
            self.types.setdefault(owner, set()).add(name)
            text = source.string_at(opening + 1)
            if text is None:
                continue  # transparent: the inner error has an entry of its own
            pattern = self._pattern(source, text[2], source.arguments(opening)[1:], fields)
            cause, remedy = split_docs(source.docs_before(match.start()))
            qualified = name if owner == name else f"{owner}::{name}"
            place = (source.path, source.line(match.start()))
            self.messages.append(Message(pattern, "variant", *place, qualified, cause, remedy))

    @staticmethod
    def _item_after(source, position):
        """The name of the variant or struct after an attribute, and its fields: (name, type)."""
        item = re.compile(
            r"(?:\s|#\[[^\]]*\]|\bpub(?:\([^)]*\))?\s|\bstruct\s|\benum\s)*(\w+)(?:<[^>]*>)?\s*([({]?)"
        ).match(source.code, position)
        fields = []
        for start, end in source.arguments(item.end() - 1) if item.group(2) else []:
            text = re.sub(r"#\[[^\]]*\]|\bpub(?:\([^)]*\))?\s", "", source.code[start:end]).strip()
            if item.group(2) == "(":
                fields.append((str(len(fields)), text))
            elif ":" in text:
                key, kind = text.split(":", 1)
                fields.append((key.strip(), kind.strip()))
        return item.group(1), fields

    # --- format strings ------------------------------------------------------

    def _pattern(self, source, template, arguments=(), fields=()):
        """The message with names instead of values."""
        types = dict(fields)
        named, positional = {}, []
        for start, end in arguments:
            text = source.code[start:end].strip()
            if key := re.match(r"(\w+)\s*=(?!=)\s*", text):
                named[key.group(1)] = text[key.end() :]
            else:
                positional.append((start, end, text))
        next_positional = iter(range(len(positional)))

        def value(key):
            if key == "":
                index = next(next_positional, None)
                return self._argument(source, positional[index], types) if index is not None else "VALUE"
            if key in named:
                return self._constant(source, named[key]) or ("SECONDS" if "as_secs" in named[key] else split_words(key))
            if key.isdigit():
                if int(key) < len(positional) and key not in types:
                    return self._argument(source, positional[int(key)], types)
                return type_placeholder(types.get(key, "String"))
            if constant := self._constant(source, key):
                return constant
            return name_placeholder(key, types.get(key))

        def replace(match):
            if match.group() in ("{{", "}}"):
                return match.group()[0]
            placeholder = value(match.group(1).split(":")[0].strip())
            # A value that follows a word without a space is an optional addition.
            before, after = template[match.start() - 1 : match.start()], template[match.end() : match.end() + 1]
            is_addition = before.isalpha() or before in ("}", ")") or before == "`" != after
            return "…" if is_addition else placeholder

        return re.sub(r"\{\{|\}\}|\{([^{}]*)\}", replace, template)

    def _argument(self, source, argument, types):
        start, end, text = argument
        text = text.lstrip(".&*")
        if "as_secs" in text:
            return "SECONDS"
        field_name = re.match(r"(\w+)(?=$|\.\w+\(\)$)", text)
        if field_name and field_name.group(1) in types:
            key = field_name.group(1)
            return type_placeholder(types[key]) if key.isdigit() else name_placeholder(key, types[key])
        if re.match(r"(?:\w+::)*pluralize\(", text):
            noun = [value for _, _, value in source.strings_in(start, end)]
            return f"NUMBER {noun[0]}s" if noun else "NUMBER"
        if constant := self._constant(source, text):
            return constant
        scaled = re.fullmatch(r"([A-Z_]+)\s*(/|>>)\s*([\d_]+)", text)
        if scaled and (constant := self._constant(source, scaled.group(1))):
            number, divisor = int(constant), int(scaled.group(3))
            return str(number // divisor if scaled.group(2) == "/" else number >> divisor)
        return expression_placeholder(source.code[start:end])

    # --- constructors --------------------------------------------------------

    def _read_calls(self, source):
        code = source.code
        helpers = self._helpers(source)
        names = {**{name: (*found, "", "", []) for name, found in CONSTRUCTORS.items()}, **helpers}
        for name, match in find_calls(code, names):
            if source.path.startswith(ONLY_IN.get(name, "")):
                self._read_call(source, match, name, *names[name])
        for owner, start, end in source.impls:
            for name, (index, kind) in CONSTRUCTORS.items():
                if owner in OPAQUE_TYPES and name.startswith(owner + "::"):
                    for match in re.compile(r"\bSelf::" + name.split("::")[1] + r"\(").finditer(code, start, end):
                        self._read_call(source, match, name, index, kind, "", "", [])

    def _read_call(self, source, match, name, index, kind, parent, hint_of_helper, labels_of_helper):
        arguments = source.arguments(match.end() - 1)
        if len(arguments) <= index:
            return
        texts = self._texts(source, *arguments[index])
        place = (source.path, source.line(match.start()))
        expression = " ".join(source.text[slice(*arguments[index])].split())
        if texts is None and kind == "note":
            return
        if texts is None:
            function, parameters = source.function_around(match.start())
            variable = re.match(r"&?(\w+)", expression).group(1)
            is_passed_on = variable in dict(parameters) and self._is_constructor(source, function, match.start())
            in_closure = any(start < match.start() < end for start, end in source.helper_closures)
            if not is_passed_on and not in_closure:
                self.unresolved.append((source.path, place[1], name, expression))
            return
        labels = self._labels(source, name, arguments, match.start()) or labels_of_helper
        hint = self._hint(source, match.start(), source.closing(match.end() - 1) + 1) or hint_of_helper
        hints = self._paired_hints(source, expression, match.start())
        for text in texts:
            if kind == "note" and not FAILURE_NOTE.match(text):
                continue  # an ordinary message
            if kind == "model":
                parent = "ModelError"
            if name == "ApiError::store_unavailable":
                text += "; retry"
            elif name == "CliError::file":
                text = f"failed to {text} FILE: ERROR"
            remedy = hints.get(text, hint)
            self.messages.append(Message(text, kind, *place, name, remedy=remedy, labels=set(labels), parent=parent))

    def _paired_hints(self, source, name, position):
        """The hint of each message, if `let (NAME, hint) = …` has both: one tuple for each message."""
        function = max((match.start() for match in re.finditer(r"\bfn \w+", source.code[:position])), default=0)
        assigned = [*re.compile(r"\blet \(" + re.escape(name) + r", hint\) =(?!=)").finditer(source.code, function, position)]
        if not assigned:
            return {}
        start, paired = assigned[-1].end(), {}
        for opening in re.compile(r"(?<![\w!])\(").finditer(source.code, start, expression_end(source, start)):
            parts = source.arguments(opening.start())
            if len(parts) == 2:
                hint = " · ".join(self._texts(source, *parts[1]) or [])
                paired |= {text: hint for text in self._texts(source, *parts[0]) or []}
        return paired

    def _is_constructor(self, source, function, position):
        owner = source.innermost(source.impls, position)
        names = {f"{owner}::{function}", function or "", f".{function}"}
        return bool(names & (set(CONSTRUCTORS) | set(self._helpers(source))))

    def _labels(self, source, name, arguments, position):
        owner, _, constructor = name.partition("::")
        if owner == "CliError":
            status = EXIT_CODES.get(constructor)
            if constructor == "new":
                found = re.search(r"ExitStatus::(\w+)", source.code[slice(*arguments[0])])
                status = found and self.exit_codes.get(found.group(1))
            return [f"exit code {status}"] if status else []
        if owner in ("Outcome", "response", "rpc_error"):
            codes = [number for name, number in self.rpc_codes.items() if any(f"::{name}" in source.code[slice(*part)] for part in arguments)]
            codes = codes or ([-32602] if constructor == "invalid_params" else [-32603] if constructor == "internal_error" else [])
            return [f"JSON-RPC {code}" for code in codes[:1]]
        if owner != "ApiError":
            return []
        status, code = HTTP_STATUS.get(constructor), HTTP_CODE.get(constructor)
        if constructor in ("not_found", "failed", "conflict", "unavailable"):
            text = source.string_at(arguments[0][0])
            code = text[2] if text else None
        for start, end in self._struct_updates(source, position):
            named = re.search(r"StatusCode::(\w+)", source.code[start:end])
            status = HTTP_NAMES.get(named.group(1), status) if named else status
            coded = re.search(r"\bcode: Some\(", source.code[start:end])
            text = coded and source.string_at(start + coded.end())
            if not coded and re.search(r"[{,]\s*code\s*,", source.code[start:end]):
                coded = [*re.compile(r"\blet code = Some\(").finditer(source.code, max(start - 300, 0), start)]
                text = coded and source.string_at(coded[-1].end())
            code = text[2] if text else code
        parts = ["HTTP", str(status or ""), f"`{code}`" if code else ""]
        return [" ".join(part for part in parts if part)] if status or code else []

    @staticmethod
    def _struct_update(source, position):
        """The range of the struct expression `Type { …, ..CALL }` around a call."""
        if not re.search(r"\.\.\s*$", source.code[max(position - 8, 0) : position]):
            return None
        brace = source.enclosing_brace(position)
        return (brace, position)

    def _struct_updates(self, source, position):
        """The ranges of all struct expressions that change the result of a call: around it, and `..NAME` of its variable."""
        if changed := self._struct_update(source, position):
            yield changed
            position = changed[0] - len(re.search(r"\w+\s*$", source.code[: changed[0]]).group())
        assigned = re.search(r"\blet (\w+) =\s*$", source.code[max(position - 60, 0) : position])
        if assigned:
            end = source.closing(source.enclosing_brace(position))
            if use := re.compile(r"\.\." + assigned.group(1) + r"\b").search(source.code, position, end):
                yield (source.enclosing_brace(use.start()), use.start())

    def _hint(self, source, start, position):
        """The hints in the method calls that follow (`.with_hint("…")`), or in the struct expression around a call."""
        hints = []
        if changed := self._struct_update(source, start):
            if found := re.compile(r"\bhint(?:: |,)").search(source.code, *changed):
                end = source.statement_end(found.end())
                hints += self._texts(source, found.end() if ":" in found.group() else found.start(), end) or []
        hints += self._chained_hints(source, position)
        # `let error = …; error.with_hint("…")`
        if not hints and (assigned := re.search(r"\blet (\w+) =\s*$", source.code[max(start - 60, 0) : start])):
            end = source.closing(source.enclosing_brace(start))
            for use in re.compile(r"\b" + assigned.group(1) + r"\b").finditer(source.code, position, end):
                hints += self._chained_hints(source, use.end())
        return " · ".join(dict.fromkeys(hints))

    def _chained_hints(self, source, position):
        hints = []
        chain = re.compile(r"\s*(?:\)\s*)?\.(\w+)\(")
        while call := chain.match(source.code, position):
            end = source.closing(call.end() - 1)
            if call.group(1) in ("with_hint", "with_operator_hint", "with_optional_hint"):
                hints += self._texts(source, call.end(), end) or []
            position = end + 1
        return hints

    def _helpers(self, source):
        """Functions and closures of this file that pass a text on to an error: which argument it is, kind, variant."""
        if source.helpers is None:
            source.helpers = {**self._shared_helpers(source), **dict(self._helper_functions(source)), **dict(self._helper_closures(source))}
        return source.helpers

    def _shared_helpers(self, source):
        """Helpers of other files of the crate: associated functions of errors, and functions that this file imports."""
        crate = source.path.split("/")[1]
        if crate not in self.shared_helpers:
            others = [other for other in self.sources if other.path.split("/")[1] == crate]
            found = {name: helper for other in others for name, helper in self._helper_functions(other)}
            is_shared = lambda name: not name.startswith((".", "Self::")) and name not in NOT_ERRORS
            self.shared_helpers[crate] = {name: helper for name, helper in found.items() if is_shared(name)}
        imported = set(re.findall(r"\b[a-z]\w*\b", " ".join(re.findall(r"^use [^;]*;", source.code, re.M))))
        return {
            name: helper
            for name, helper in self.shared_helpers[crate].items()
            if "::" in name or name in imported
        }

    def _helper_functions(self, source):
        errors = set(self.types) | set(OPAQUE_TYPES)
        for match in re.finditer(r"\bfn (\w+)(?:<[^>]*>)?\(", source.code):
            opening = match.end() - 1
            result = re.compile(r"\s*->\s*(?:Result<.*, |Box<)?(?:\w+::)*(\w+)>*\s*(?:where|\{)").match(
                source.code, source.closing(opening) + 1
            )
            owner = source.innermost(source.impls, match.start())
            kind = result and (owner if result.group(1) == "Self" else result.group(1))
            if kind not in errors or f"{owner}::{match.group(1)}" in CONSTRUCTORS or match.group(1) in CONSTRUCTORS:
                continue
            body = (result.end() - 1, source.closing(source.code.index("{", result.end() - 1)))
            parameters = [source.code[slice(*part)].strip() for part in source.arguments(opening)]
            has_self = bool(parameters) and re.fullmatch(r"(?:&(?:'\w+ )?)?(?:mut )?self", parameters[0])
            # A function that can succeed may take a text that is no message.
            names = r"message|reason|problem|detail" if "Result<" in result.group() else MESSAGE_PARAMETER
            for index, parameter in enumerate(parameters[1:] if has_self else parameters):
                name, _, type_name = parameter.partition(":")
                if not TEXT_TYPE.match(type_name.strip()) or not re.fullmatch(names, name.strip()):
                    continue
                prefixes = ["."] if has_self else [f"{owner}::", "Self::"] if owner else [""]
                for prefix in prefixes:
                    parent = self._variant_in(source, *body, owner)
                    yield prefix + match.group(1), (
                        index,
                        KIND_OF_TYPE.get(kind, "detail"),
                        parent,
                        self._hints_in(source, *body),
                        self._labels_in(source, *body),
                    )

    def _helper_closures(self, source):
        errors = "|".join(sorted(set(self.types) | set(OPAQUE_TYPES)))
        for match in re.finditer(r"\blet (\w+) =\s*(?:move )?\|([^|]*)\|", source.code):
            end = source.statement_end(match.end())
            body = source.code[match.end() : end]
            if not re.search(r"\b(?:" + errors + r")\b", body):
                continue
            for index, parameter in enumerate(match.group(2).split(",")):
                if re.fullmatch(MESSAGE_PARAMETER, parameter.partition(":")[0].strip()):
                    opaque = re.search(r"\b(" + "|".join(OPAQUE_TYPES) + r")::", body)
                    kind = KIND_OF_TYPE[opaque.group(1)] if opaque else "detail"
                    source.helper_closures.append((match.end(), end))
                    parent = self._variant_in(source, match.end(), end, None)
                    yield match.group(1), (
                        index,
                        kind,
                        parent,
                        self._hints_in(source, match.end(), end),
                        self._labels_in(source, match.end(), end),
                    )

    def _labels_in(self, source, start, end):
        """The labels of the first constructor in a range."""
        for name, match in find_calls(source.code[:end], CONSTRUCTORS):
            if match.start() >= start:
                return self._labels(source, name, source.arguments(match.end() - 1), match.start())
        return []

    def _hints_in(self, source, start, end):
        hints = []
        for call in re.compile(r"\.with_(?:operator_|optional_)?hint\(").finditer(source.code, start, end):
            hints += self._texts(source, call.end(), source.closing(call.end() - 1)) or []
        return " · ".join(hints)

    def _variant_in(self, source, start, end, owner):
        for match in re.compile(r"\b(\w+)(?:::(\w+))?\s*[({]").finditer(source.code, start, end):
            kind = owner if match.group(1) == "Self" and owner else match.group(1)
            if kind in self.types and (match.group(2) or kind) in self.types[kind]:
                return f"{kind}::{match.group(2)}" if match.group(2) else kind
        return ""

    # --- texts of expressions ------------------------------------------------

    def _texts(self, source, start, end, depth=0):
        """The texts that an expression can have: []: it only passes an error on; None: unknown."""
        code = source.code[start:end]
        stripped = code.strip().lstrip("&")
        if depth > 4:
            return None
        if PASSED_ON.fullmatch(re.sub(r"\s+", "", stripped)):
            variable = re.fullmatch(r"\w+", stripped)
            texts = variable and self._variable(source, stripped, start, depth)
            return texts or []
        if constant := self._constant(source, stripped):
            return [constant]
        if texts := list(self._literals(source, start, end)):
            return texts
        if re.fullmatch(r"(?:Some\()?&?\*?\w+(?:\.(?:into|clone|to_owned|to_string|as_str|as_deref|as_ref)\(\))*\)?", stripped):
            name = re.search(r"\w+", stripped.replace("Some(", "")).group()
            return self._variable(source, name, start, depth)
        return None

    def _literals(self, source, start, end):
        position = start
        whole = source.code[start:end].strip().lstrip("&").removesuffix(".to_owned()").removesuffix(".into()")
        for begin, stop, value in source.strings_in(start, end):
            if begin < position:
                continue
            before = source.code[max(begin - 60, 0) : begin]
            if re.search(r"\b(?:format|format_args|write|writeln)!\(\s*(?:\w+,\s*)?$", before):
                opening = source.code.rindex("(", 0, begin)
                arguments = source.arguments(opening)
                index = next(i for i, part in enumerate(arguments) if part[0] <= begin < part[1])
                yield self._pattern(source, value, arguments[index + 1 :])
                position = source.closing(opening)
            elif re.search(r"(?:pluralize\([^()]*|join\(|split\(|\[|env::var\(|strip_prefix\(|starts_with\(|contains\(|ends_with\(|== )$", before):
                continue
            elif " " in value.strip() or source.code[begin:stop] == whole:
                yield value

    def _variable(self, source, name, position, depth):
        """The texts of a variable: those of the statement that assigns it, above in the same function."""
        function = max((match.start() for match in re.finditer(r"\bfn \w+", source.code[:position])), default=0)
        plain = re.compile(r"\blet (?:mut )?" + name + r"(?::[^=;]*)? =(?!=)")
        tuples = re.compile(r"\blet \(((?:[^)=]*,)?\s*" + name + r"\s*(?:,[^)=]*)?)\) =(?!=)")
        in_scope = lambda found: source.closing(source.enclosing_brace(found.start()) or 0) >= position
        if assigned := [found for found in plain.finditer(source.code, function, position) if in_scope(found)]:
            start = assigned[-1].end()
            return self._texts(source, start, expression_end(source, start), depth + 1)
        if assigned := [found for found in tuples.finditer(source.code, function, position) if in_scope(found)]:
            names = [part.strip() for part in assigned[-1].group(1).split(",")]
            start = assigned[-1].end()
            return self._tuple_texts(source, start, expression_end(source, start), names.index(name), len(names), depth + 1)
        return None

    def _tuple_texts(self, source, start, end, index, count, depth):
        """The texts at one place of the tuples that an expression can be."""
        found = []
        for opening in re.compile(r"(?<![\w!])\(").finditer(source.code, start, end):
            parts = source.arguments(opening.start())
            if len(parts) == count:
                found += self._texts(source, *parts[index], depth) or []
        return found or self._texts(source, start, end, depth)

    # --- texts in variants ---------------------------------------------------

    def _read_details(self, source):
        """Texts that are put into a field of an error."""
        for match in re.finditer(r"(?<![\w:])(?:\w+::)*(\w+)::(\w+)\s*([({])", source.code):
            owner = source.innermost(source.impls, match.start()) if match.group(1) == "Self" else match.group(1)
            if match.group(2) in self.types.get(owner, ()):
                self._read_detail(source, match, f"{owner}::{match.group(2)}")
        structs = {name for name, variants in self.types.items() if name in variants}
        for match in re.finditer(r"(?<![\w:])(\w+)\s*([({])", source.code) if structs else ():
            if match.group(1) in structs and not re.search(r"(?:\b(?:struct|enum|impl|for|let)|->|>)\s*$", source.code[max(match.start() - 16, 0) : match.start()]):
                self._read_detail(source, match, match.group(1))

    def _read_detail(self, source, match, name):
        opening = match.end() - 1
        if re.match(r"\s*(?:=>|=\s|\||if\b)", source.code[source.closing(opening) + 1 :][:12]):
            return  # a pattern
        if name == "RpcError" and source.path.endswith("rpc_error.rs"):
            return
        for start, end in source.arguments(opening):
            text = source.code[start:end]
            field_name = re.match(r"\s*(\w+)\s*(:(?!:)|$)", text)
            if match.group(match.lastindex) == "{":
                if not field_name or field_name.group(1) in NOT_MESSAGES:
                    continue
                if field_name.group(2):
                    start += field_name.end()
                elif field_name.group(1) not in MESSAGE_FIELDS:
                    continue
            for text in self._texts(source, start, end) or []:
                kind = "rpc" if name == "RpcError" else "detail"
                self.messages.append(Message(text, kind, source.path, source.line(match.start()), name, parent=name))

    # --- the log -------------------------------------------------------------

    def _read_log(self, source):
        for match in re.finditer(r"\b(?:tracing::)?(warn|error)!\(", source.code):
            opening = match.end() - 1
            arguments = source.arguments(opening)
            text = None
            for index, (start, end) in enumerate(arguments):
                if candidate := source.string_at(start):
                    text = self._pattern(source, candidate[2], arguments[index + 1 :])
            line = source.line(match.start())
            if text is None:
                call = " ".join(source.text[opening : source.closing(opening) + 1].split())
                self.unresolved.append((source.path, line, f"{match.group(1)}!", call))
            else:
                self.messages.append(Message(text, "log", source.path, line, match.group(1), labels={"log"}))

    # --- what the others would overlook ----------------------------------------

    def overlooked(self):
        """Errors in forms that are not read: types with an error trait of their own, and functions that fail with a text."""
        named = {(entry["path"], entry.get("function")) for key in ("texts", "failing_texts") for entry in self.settings.get(key, [])}
        for source in self.sources:
            for match in re.finditer(r"\bimpl (?:std::error::|error::)?Error for (\w+)", source.code):
                if match.group(1) not in OPAQUE_TYPES:
                    yield source.path, source.line(match.start()), f"`{match.group(1)}` is an error without #[error(…)]"
            for match in re.finditer(r"\bfn (\w+)(?:<[^>]*>)?\([^{;]*?-> Result<[^{;]*, (?:String|&'static str)>\s*\{", source.code):
                if (source.path, match.group(1)) not in named:
                    yield source.path, source.line(match.start()), f"`{match.group(1)}` fails with a text that is not read"

    # --- functions and constants with texts of errors --------------------------

    def _read_named_places(self):
        for entry in self.settings.get("texts", []):
            path, kind = entry["path"], entry.get("kind", "detail")
            source = next((source for source in self.sources if source.path == path), None)
            name = entry.get("function") or entry.get("constant") or entry["field"]
            pattern = {"function": r"\bfn {}\b", "constant": r"\b(?:const|static) {}\b", "field": r"^\s*{}: (?=\")"}
            kind_of_place = next(key for key in pattern if key in entry)
            match = source and re.search(pattern[kind_of_place].format(name), source.code, re.M)
            if not match:
                raise SystemExit(f"docs/reference/errors/extraction.toml: {path} has no {kind_of_place} `{name}`")
            if kind_of_place == "function":
                opening = source.code.index("{", match.end())
                span = (opening, source.closing(opening))
            else:
                span = (match.end(), source.statement_end(match.end()))
            # What a library says is not in the code; the function passes it on.
            for text in entry.get("library_texts") or dict.fromkeys(self._literals(source, *span)):
                if kind_of_place == "field":
                    text = self._pattern(source, text)
                labels = {entry["label"]} if "label" in entry else set()
                line = source.line(match.start())
                self.messages.append(Message(text, kind, path, line, name, entry.get("cause", ""), entry.get("remedy", ""), labels, entry.get("parent", "")))


def find_calls(code, names):
    """The calls of functions with these names. Those that begin with a dot, or may follow one, are found after any text."""
    anywhere = [name for name in names if name in ("Error::custom", "reporter.error", "notes.push") or name.startswith(".")]
    others = [name for name in names if name not in anywhere]
    # `..ApiError::failed(…)` is a call, `api.failed(…)` is another one.
    for prefix, group in (("", anywhere), (r"(?<![\w:])(?:(?<=\.\.)|(?<!\.))", others)):
        alternatives = [re.escape(name).replace(r"\.", r"\s*\.") for name in sorted(group, key=len, reverse=True)]
        for match in re.finditer(prefix + "(" + "|".join(alternatives) + r")\(", code):
            if not re.search(r"\bfn\s+$", code[max(match.start() - 12, 0) : match.start()]):
                yield re.sub(r"\s", "", match.group(1)), match


def expression_end(source, start):
    """Where the statement ends whose expression starts here."""
    depth = 0
    for match in re.compile(r"[()\[\]{};]").finditer(source.code, start):
        character = match.group()
        if depth == 0 and character in ";)]}":
            return match.start()
        depth += (character in "([{") - (character in ")]}")
    return len(source.code)


def name_placeholder(key, kind):
    if key in ("error", "cause") or kind and "Error" in kind and "ErrorKind" not in kind:
        return "ERROR"
    return split_words(key)


def split_docs(docs):
    """Cause and remedy of a doc comment."""
    paragraphs = [" ".join(part.split()) for part in "\n".join(docs).split("\n\n")]
    remedy = [part.removeprefix("Remedy: ") for part in paragraphs if part.startswith("Remedy: ")]
    cause = [part for part in paragraphs if part and not part.startswith("Remedy: ")]
    return (cause[0] if cause else ""), (remedy[0] if remedy else "")


def read_sources(root):
    sources = []
    for path in sorted(root.glob("crates/*/src/**/*.rs")):
        relative = path.relative_to(root).as_posix()
        if not re.search(r"(?:_tests|/tests|/testing|/test_\w+|/fixtures?)\.rs$|/tests/|/testing/", relative):
            sources.append(Source(relative, path.read_text()))
    return sources


def http_codes(sources):
    """The values of `error.code` of the HTTP API."""
    before_code = re.compile(
        r"::(?:not_found|failed|conflict|unavailable)\(\s*$|\bconflict\($|StatusCode::\w+(?:,| =>)\s*(?:Some\()?$"
        r"|\bcode(?:: | = )Some\($|\bIdempotencyError::\w+\(_\) => $|\bSTORE_UNAVAILABLE: &str = $"
    )
    return {
        value
        for source in sources
        if source.path.startswith("crates/toolyard-gateway/src/")
        for start, _, value in source.strings
        if re.fullmatch(r"[a-z]+(?:_[a-z]+)+|forbidden", value) and before_code.search(source.code[max(start - 60, 0) : start])
    }
