"""A small asynchronous HTTP/1.1 client; it never sends a request twice."""

import asyncio
import json

TOKEN = "a-token-of-more-than-thirty-two-characters"


class Broken(Exception):
    """There is no whole response. `is_silent`: nothing came within the time; otherwise the connection ended or the response is unusable."""

    def __init__(self, text, is_silent=False):
        super().__init__(text)
        self.is_silent = is_silent


class Connection:
    """One keep-alive connection; it is opened again after the peer closed it.

    `key` is the bearer token; None sends no `Authorization`. `inspect` gets every byte that arrives.
    """

    def __init__(self, port, key=TOKEN, inspect=None, timeout=30):
        self.port, self.key, self.inspect, self.timeout = port, key, inspect, timeout
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, headers=(), body=None, what="", timeout=None):
        """Status, headers (lower case) and content. Raises Broken; a request is never sent twice."""
        timeout = timeout or self.timeout
        try:
            status, fields, head, content = await asyncio.wait_for(self._request(method, path, headers, body), timeout)
        except asyncio.TimeoutError:
            self.close()
            raise Broken(f"{method} {path}: no response within {timeout} s", is_silent=True) from None
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            self.close()
            raise Broken(f"{method} {path}: {type(error).__name__}: {error}") from None
        if self.inspect:
            self.inspect(head + content, what or f"{method} {path}")
        return status, fields, content

    async def _request(self, method, path, headers, body):
        if self.writer is None or self.reader.at_eof() or self.writer.is_closing():
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 24)
        text = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *([f"Authorization: Bearer {self.key}"] if self.key else [])]
        lines += [f"{name}: {value}" for name, value in headers]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(text)}"]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + text)
        await self.writer.drain()
        head = await self.reader.readuntil(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        fields = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        content = await self._content(fields)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return int(first.split()[1]), fields, head, content

    async def _content(self, fields):
        if "content-length" in fields:
            return await self.reader.readexactly(int(fields["content-length"]))
        if fields.get("transfer-encoding", "").lower() == "chunked":
            parts = []
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                parts.append(await self.reader.readexactly(size))
                await self.reader.readexactly(2)
            await self.reader.readexactly(2)
            return b"".join(parts)
        content = await self.reader.read(-1)
        self.close()
        return content
