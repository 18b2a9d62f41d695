"""A task: a request, the world it finds, what must be true afterwards, and how a perfect model goes about it."""

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from given import Preparation

# The expected value of a key that must not exist any more.
GONE = object()


@dataclass(frozen=True)
class Task:
    """See README.md for each field."""

    name: str
    language: str
    request: str
    plan: list[dict[str, Any]]
    answer: str
    given: Sequence[Preparation] = ()
    changes: dict[str, Any] = field(default_factory=dict)
    may_change: Sequence[str] = ()
    says: Sequence[str | tuple[str, ...]] = ()
    never_says: Sequence[str] = ()
    check: Callable[[dict[str, Any], str], str | None] | None = None

    def problem(self, before: dict[str, Any], after: dict[str, Any], answer: str) -> str | None:
        """The first thing that is not as it must be, if any."""
        return self.wrong_state(before, after) or self.wrong_answer(answer) or (self.check and self.check(after, answer))

    def wrong_state(self, before: dict[str, Any], after: dict[str, Any]) -> str | None:
        for key, expected in self.changes.items():
            if not is_as_expected(after.get(key, GONE), expected):
                return f"{key} is {shown(after.get(key, GONE))}"
        allowed = (*self.changes, *self.may_change)
        for key in before.keys() | after.keys():
            changed = before.get(key, GONE) != after.get(key, GONE)
            if changed and not any(key == name or fnmatch.fnmatchcase(key, name) for name in allowed):
                return f"{key} became {shown(after.get(key, GONE))}"
        return None

    def wrong_answer(self, answer: str) -> str | None:
        for wanted in self.says:
            options = (wanted,) if isinstance(wanted, str) else wanted
            if not any(occurs(option, answer) for option in options):
                return f"the answer lacks {' or '.join(options)}"
        wrong = next((text for text in self.never_says if occurs(text, answer)), None)
        return wrong and f"the answer says {wrong}"


def is_as_expected(value: Any, expected: Any) -> bool:
    if expected is GONE or value is GONE:
        return value is expected
    if callable(expected):
        return bool(expected(value))
    return value == expected


def shown(value: Any) -> str:
    return "missing" if value is GONE else repr(value)[:120]


def occurs(wanted: str, text: str) -> bool:
    """Whether a text says something: whole words and numbers; `1,890` and `1890.0` are 1890."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    before = r"(?<![A-Za-z0-9_])(?<!\d\.)" if wanted[:1].isascii() else ""
    behind = r"(?:\.0+)?(?![A-Za-z0-9_]|\.\d)" if wanted[-1:].isdigit() else r"(?![A-Za-z0-9_])"
    pattern = before + re.escape(wanted) + (behind if wanted[-1:].isascii() else "")
    return re.search(pattern, text, re.IGNORECASE) is not None


def step(id: str, tool: str, arguments: dict[str, Any], after: Sequence[str] = ()) -> dict[str, Any]:
    """One step of a scripted plan; `$id.path` in the arguments refers to an earlier step."""
    return {"id": id, "tool_type": tool, "arguments": arguments, "dependencies": list(after)}


def near(number: float) -> Callable[[Any], bool]:
    """Judges a cell: this number."""
    return lambda value: isinstance(value, int | float) and abs(value - number) < 1e-6


def number_or_formula(number: float, *formulas: str) -> Callable[[Any], bool]:
    """Judges a cell: this number, or one of these formulas."""
    wanted = {formula.upper() for formula in formulas}
    return lambda value: near(number)(value) or isinstance(value, str) and value.upper().replace(" ", "").lstrip("=") in wanted


def one_of(*values: Any) -> Callable[[Any], bool]:
    """Judges a value: one of these; texts without regard to case and surrounding space."""
    plain = [value.strip().lower() if isinstance(value, str) else value for value in values]
    return lambda value: (value.strip().lower() if isinstance(value, str) else value) in plain


def mentions(*words: str, at_most: int = 200) -> Callable[[Any], bool]:
    """Judges a text or a list of texts: it says all of this and is short."""

    def judge(value: Any) -> bool:
        text = value if isinstance(value, str) else "\n".join(map(str, value))
        return len(text) <= at_most and all(occurs(word, text) for word in words)

    return judge
