"""HTTP servers of the attacker: a language model that obeys, a search engine that records, and a web server that misbehaves."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class WebServer:
    """A web server on a free port. `handle(request)` returns (status, headers, body)."""

    def __init__(self, handle):
        self.requests = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                self.body = self.rfile.read(length)
                outer.requests.append((self.command, self.path, dict(self.headers), self.body.decode(errors="replace")))
                status, headers, body = handle(self)
                body = body.encode() if isinstance(body, str) else body
                self.send_response(status)
                for key, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(key, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_):
                pass

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass  # the peer went away

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class SearchEngine(WebServer):
    """Imitates SearXNG and records every query: what arrives here has left the machine."""

    def __init__(self, snippet="nothing"):
        self.snippet = snippet
        super().__init__(self.search)

    def search(self, request):
        result = {"title": "A page", "url": "https://example.com/", "content": self.snippet, "engine": "x", "score": 1.0}
        return (
            200,
            {},
            json.dumps(
                {
                    "query": "q",
                    "number_of_results": 1,
                    "results": [result],
                    "answers": [],
                    "suggestions": [],
                    "infoboxes": [],
                    "corrections": [],
                    "unresponsive_engines": [],
                }
            ),
        )

    def received(self):
        """Everything that was sent, as one text."""
        return "\n".join(f"{path}\n{json.dumps(headers)}\n{body}" for _, path, headers, body in self.requests)


class ModelServer(WebServer):
    """A language model with the OpenAI chat API; `reply(messages, request)` is its mind."""

    def __init__(self, reply):
        self.reply = reply
        self.prompts = []
        super().__init__(self.complete)

    def complete(self, request):
        if request.command == "GET":
            return 200, {}, json.dumps({"object": "list", "data": [{"id": "obedient", "object": "model"}]})
        wanted = json.loads(request.body)
        messages = wanted["messages"]
        self.prompts.append(messages)
        text = self.reply(messages, wanted)
        text = text if isinstance(text, str) else json.dumps(text)
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        if not wanted.get("stream"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            return (
                200,
                {},
                json.dumps(
                    {
                        "id": "x",
                        "object": "chat.completion",
                        "created": 1,
                        "model": "obedient",
                        "choices": [choice],
                        "usage": usage,
                    }
                ),
            )

        def chunk(delta, reason=None):
            return (
                "data: "
                + json.dumps(
                    {
                        "id": "x",
                        "object": "chat.completion.chunk",
                        "created": 1,
                        "model": "obedient",
                        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
                    }
                )
                + "\n\n"
            )

        body = chunk({"role": "assistant", "content": text}) + chunk({}, "stop")
        body += (
            "data: "
            + json.dumps(
                {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "obedient", "choices": [], "usage": usage}
            )
            + "\n\ndata: [DONE]\n\n"
        )
        return 200, {"Content-Type": "text/event-stream"}, body

    def toml(self, name="obedient"):
        return f'[models.{name}]\nurl = "{self.url}/v1"\nmodel = "obedient"\ntool_calling = "schema"\n'


def text_of(messages):
    """All messages as one text, oldest first."""
    return "\n".join(
        message["content"] if isinstance(message.get("content"), str) else json.dumps(message.get("content"))
        for message in messages
    )


def plan(*steps):
    """A plan as models write it: (id, tool, arguments[, depends on])."""
    return json.dumps(
        {
            "steps": [
                {
                    "id": step[0],
                    "tool_type": step[1],
                    "arguments": step[2],
                    **({"dependencies": step[3]} if len(step) > 3 else {}),
                }
                for step in steps
            ]
        }
    )
