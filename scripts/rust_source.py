"""Reads Rust source well enough to find messages in it: strings, comments, brackets, functions, without a compiler."""

import bisect
import re

OPENING, CLOSING = "([{", ")]}"
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", "'": "'", '"': '"'}
# A comment, a raw string, a string, or a character (which a lifetime only resembles).
TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*)|(?P<raw>\b(?:br|cr|r)(?P<hashes>\#*)")|(?P<string>")|(?P<char>b?'(?:[^\\'\n]|\\(?:x..|u\{[^}]*\}|.))')""",
    re.X,
)


class Source:
    """A file. `code` is its text with comments and the contents of strings blanked, at the same positions."""

    def __init__(self, path, text):
        self.path, self.text = path, text
        self.strings = []  # (start, end, value), in order
        self.comments = []  # (start, end)
        # What rust_messages finds out about this file: functions and closures that pass messages on.
        self.helpers, self.helper_closures = None, []
        self.code = self._blank(text)
        self._remove_tests()
        self._starts = [start for start, _, _ in self.strings]
        self._closings = self._match_brackets()
        self.impls = self._blocks(r"^impl(?:<[^>]*>)? (?:\S+ for )?(\w+)(?:<[^>]*>)? \{")
        self.enums = self._blocks(r"\benum (\w+)(?:<[^>]*>)?\s*\{")
        self._newlines = [match.start() for match in re.finditer("\n", text)]

    def _blank(self, text):
        code, position = [], 0
        while token := TOKEN.search(text, position):
            code.append(text[position : token.start()])
            start, end = token.start(), token.end()
            if token["comment"]:
                if token["comment"] == "/*":
                    end = text.index("*/", start) + 2
                self.comments.append((start, end))
                code.append(re.sub(r"[^\n]", " ", text[start:end]))
            elif token["char"]:
                code.append("'" + "_" * (end - start - 2) + "'")
            else:
                if token["string"]:
                    closing = re.compile(r'(?:[^"\\]|\\.)*', re.S).match(text, end).end()
                    value = unescape(text[end:closing])
                    after = closing + 1
                else:
                    closing = text.index('"' + token["hashes"], end)
                    value, after = text[end:closing], closing + 1 + len(token["hashes"])
                self.strings.append((start, after, value))
                code.append('"' + re.sub(r"[^\n]", "_", text[start + 1 : after - 1]) + '"')
                end = after
            position = end
        code.append(text[position:])
        return "".join(code)

    def _remove_tests(self):
        """Blanks items that exist in tests only."""
        for attribute in re.finditer(r"#\[cfg\((?:all\()?test\b[^\]]*\]", self.code):
            opening = re.compile(r"[{;]").search(self.code, attribute.end())
            if not opening:
                continue
            end = self._match_brackets()[opening.start()] + 1 if opening.group() == "{" else opening.end()
            blank = re.sub(r"[^\n]", " ", self.code[attribute.start() : end])
            self.code = self.code[: attribute.start()] + blank + self.code[end:]
            self.strings = [item for item in self.strings if not attribute.start() <= item[0] < end]

    def _match_brackets(self):
        closings, open_brackets = {}, []
        for match in re.finditer(r"[()\[\]{}]", self.code):
            if match.group() in OPENING:
                open_brackets.append(match.start())
            elif open_brackets:
                closings[open_brackets.pop()] = match.start()
        return closings

    def _blocks(self, pattern):
        """The named blocks that a pattern finds, which ends with their brace: (name, start, end)."""
        found = re.finditer(pattern, self.code, re.M)
        return [(match.group(1), match.start(), self.closing(match.end() - 1)) for match in found]

    @staticmethod
    def innermost(blocks, position):
        """The name of the innermost block around this position."""
        names = [name for name, start, end in blocks if start < position < end]
        return names[-1] if names else None

    def enclosing_brace(self, position):
        """The brace that opens the block around this position."""
        around = [start for start, end in self._closings.items() if start < position < end and self.code[start] == "{"]
        return max(around, default=None)

    def function_around(self, position):
        """Name and parameters (name, type) of the function around this position."""
        found = None
        for match in re.compile(r"\bfn (\w+)(?:<[^>]*>)?\(").finditer(self.code, 0, position):
            found = match
        if not found:
            return None, []
        parameters = [self.code[slice(*part)].partition(":") for part in self.arguments(found.end() - 1)]
        return found.group(1), [(name.strip().removeprefix("mut "), kind.strip()) for name, _, kind in parameters]

    def line(self, position):
        return bisect.bisect_left(self._newlines, position) + 1

    def closing(self, opening):
        """The position of the bracket that closes the one at this position."""
        return self._closings.get(opening, len(self.code) - 1)

    def strings_in(self, start, end):
        first = bisect.bisect_left(self._starts, start)
        for item in self.strings[first:]:
            if item[0] >= end:
                return
            yield item

    def string_at(self, position):
        """The string that starts at this position, after white space."""
        while position < len(self.code) and self.code[position].isspace():
            position += 1
        first = bisect.bisect_left(self._starts, position)
        if first < len(self.strings) and self.strings[first][0] == position:
            return self.strings[first]
        return None

    def arguments(self, opening):
        """The ranges of the arguments in the brackets that open at this position."""
        end = self.closing(opening)
        return [part for part in self.split(opening + 1, end) if self.code[part[0] : part[1]].strip()]

    def split(self, start, end):
        """The range, split at its commas, but not at those in brackets or closures' parameters."""
        depth, begin, bars = 0, start, False
        for position in range(start, end):
            character = self.code[position]
            if character in OPENING:
                depth += 1
            elif character in CLOSING:
                depth -= 1
            elif character == "|" and depth == 0:
                bars = not bars
            elif character == "," and depth == 0 and not bars:
                yield (begin, position)
                begin = position + 1
        yield (begin, end)

    def statement_end(self, position):
        """Where the statement or field that goes on at this position ends."""
        depth = 0
        for match in re.compile(r"[()\[\]{};,]").finditer(self.code, position):
            character = match.group()
            if character in OPENING:
                depth += 1
            elif character in CLOSING:
                depth -= 1
                if depth < 0:
                    return match.start()
            elif depth == 0:
                return match.start()
        return len(self.code)

    def docs_before(self, position):
        """The doc comment directly above the item whose attributes end at this position."""
        lines, number = self.text.split("\n"), self.line(position) - 2
        docs = []
        while number >= 0:
            line = lines[number].strip()
            if line.startswith("///"):
                docs.append(line[3:].strip())
            elif not line.startswith("#[") or docs:
                break
            number -= 1
        return docs[::-1]


def unescape(text):
    def replace(match):
        code = match.group(1)
        if code[0] == "\n":
            return ""
        if code[0] == "u":
            return chr(int(code[2:-1], 16))
        if code[0] == "x":
            return chr(int(code[1:], 16))
        return ESCAPES.get(code, code)

    return re.sub(r"\\(\n\s*|u\{[^}]*\}|x[0-9a-fA-F]{2}|.)", replace, text, flags=re.S)


def split_words(name):
    """An identifier in upper case: `run_id` and `RunId` are `RUN_ID`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.split("::")[-1]).upper()


WRAPPERS = re.compile(r"^(?:Box|Arc|Option|Vec|Cow|Result|&|'static|dyn|mut|impl|std::|\s)+<?")
TYPE_NAMES = {"STRING": "TEXT", "STR": "TEXT", "PATH_BUF": "PATH", "USIZE": "NUMBER", "U64": "NUMBER", "U32": "NUMBER", "U16": "NUMBER", "I64": "NUMBER", "U8": "NUMBER", "VALUE": "VALUE"}


def type_placeholder(kind):
    name = re.sub(r"<.*", "", WRAPPERS.sub("", kind.strip().rstrip(">"))).strip("&' >")
    name = split_words(name.split("::")[-1])
    if name.endswith("ERROR") or "Error" in kind:
        return "ERROR"
    return TYPE_NAMES.get(name, name or "TEXT")


def expression_placeholder(expression):
    """A name for the value of an expression: that of its last variable or function."""
    expression = re.sub(r"\s+", " ", re.sub(r'"[^"]*"', '""', expression)).strip().lstrip("&*")
    if re.match(r"(?:if|match) |.*\bformat!", expression):
        return "…"
    previous = None
    while previous != expression:
        previous = expression
        expression = re.sub(r"\.(?:display|to_string|as_str|as_ref|as_deref|get|join|iter|len|clone|to_owned|into_owned|message|unwrap_or_default|unwrap_or|unwrap_or_else|as_secs|as_secs_f64|as_millis|trim|0|1|copied|cloned|to_lowercase|escape_default|escape_debug|collect)(?:\([^()]*\))?$", "", expression)
        expression = re.sub(r"\?$|\.await$", "", expression)
    inner = re.match(r"^(?:[\w:]+)\(([^()]*)\)$", expression)
    if inner and re.fullmatch(r"&?[\w.]+(?:, [\w\".&]+)*", inner.group(1)):
        argument = inner.group(1).split(",")[0].lstrip("&")
        if re.search(r"[a-z]", argument):
            expression = argument
    if "error" in expression.lower() and not re.search(r"error_\w", expression):
        return "ERROR"
    names = re.findall(r"[A-Za-z_]\w*", expression)
    names = [name for name in names if not name.isupper()] or names
    return split_words(names[-1]) if names else "VALUE"
