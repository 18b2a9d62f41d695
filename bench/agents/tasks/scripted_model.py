"""A perfect model behind an OpenAI-compatible endpoint: it replies to each request of a task with the plan and the answer of that task."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from task import Task
from world import World


class ScriptedModel:
    """Serves on a port of its own; `task` is the one it is being asked about."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.task: Task | None = None
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                reply_to(self, model.reply(request))

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def reply(self, request: dict) -> str | None:
        """The reply; none to what a perfect plan never needs: a second plan or other arguments."""
        if self.task is None:
            return None
        wanted = request.get("response_format", {}).get("json_schema", {}).get("name")
        if wanted is None:
            return self.world.fill(self.task.answer)
        if wanted != "plan" or is_second_plan(request):
            return None
        steps = self.task.plan
        plan = {"steps": steps} if len(steps) > 1 else {"call": {key: steps[0][key] for key in ("tool_type", "arguments")}}
        return self.world.fill(json.dumps(plan, ensure_ascii=False))


def is_second_plan(request: dict) -> bool:
    last = json.dumps(request["messages"][-1], ensure_ascii=False)
    return any(text in last for text in ("Done so far", "已经完成的部分", "Note: "))


def reply_to(handler: BaseHTTPRequestHandler, text: str | None) -> None:
    if text is None:
        body = b'{"error":{"message":"a perfect plan does not need this request"}}'
        handler.send_response(400)
        handler.send_header("Content-Type", "application/json")
    else:
        chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
        events = "".join(f"data: {json.dumps(event)}\n\n" for event in (chunk, end)) + "data: [DONE]\n\n"
        body = events.encode()
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)
