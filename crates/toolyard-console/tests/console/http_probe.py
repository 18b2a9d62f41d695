"""Plain HTTP requests to the console, with any header and cookie, and the forms of its pages."""

from __future__ import annotations

import http.client
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urlencode, urlsplit

SESSION_COOKIE = "toolyard_console"


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: str

    def header(self, name: str) -> str:
        return "; ".join(value for key, value in self.headers if key.lower() == name)

    def session(self) -> str | None:
        """The value of the session cookie that the answer sets."""
        found = re.search(rf"{SESSION_COOKIE}=([^;]+)", self.header("set-cookie"))
        return found and found[1]


@dataclass
class Form:
    page: str
    action: str
    fields: list[tuple[str, str]] = field(default_factory=list)

    def kind(self) -> str:
        """The action without names and ids, and the names of the fields."""
        path = re.sub(r"(/console/[a-z-]+/)[^/?]+", r"\1NAME", urlsplit(self.action).path)
        return f"{path} {' '.join(sorted({name for name, _ in self.fields if name != 'csrf'}))[:60]}".strip()


class Visitor:
    """Sends requests with one session, without following redirections."""

    def __init__(self, url: str, session: str | None = None) -> None:
        self.address, self.url, self.session = urlsplit(url).netloc, url, session

    def request(self, method: str, path: str, fields: list[tuple[str, str]] | None = None, headers: dict[str, str] | None = None) -> Answer:
        sent = {"Cookie": f"{SESSION_COOKIE}={self.session}"} if self.session else {}
        body = None
        if fields is not None:
            body = urlencode(fields)
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection = http.client.HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, path, body, {**sent, **(headers or {})})
            response = connection.getresponse()
            is_stream = "event-stream" in (response.headers.get("content-type") or "")
            text = "" if is_stream else response.read().decode(errors="replace")
            return Answer(response.status, response.getheaders(), text)
        finally:
            connection.close()

    def get(self, path: str, headers: dict[str, str] | None = None) -> Answer:
        return self.request("GET", path, None, headers)

    def forms(self, paths: list[str]) -> list[Form]:
        """The forms of these pages that change something, one of each kind."""
        found: dict[str, Form] = {}
        for path in paths:
            for form in _forms(path, self.get(path).body):
                found.setdefault(form.kind(), form)
        return list(found.values())


def sign_in(link: str) -> tuple[Visitor, Answer]:
    """Follows a one-time link."""
    parts = urlsplit(link)
    visitor = Visitor(f"{parts.scheme}://{parts.netloc}")
    answer = visitor.get(f"{parts.path}?{parts.query}")
    visitor.session = answer.session()
    return visitor, answer


def _forms(page: str, html: str) -> list[Form]:
    parser = _FormParser(page)
    parser.feed(html)
    return parser.forms


class _FormParser(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.page, self.forms, self._current = page, [], None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "form":
            is_post = values.get("method", "").lower() == "post"
            self._current = Form(self.page, values.get("action") or self.page) if is_post else None
            if self._current:
                self.forms.append(self._current)
        elif self._current and tag in ("input", "textarea", "button", "select") and values.get("name"):
            is_unchecked = values.get("type") in ("radio", "checkbox") and "checked" not in values
            if not is_unchecked:
                self._current.fields.append((values["name"], values.get("value", "")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._current = None
