"""A small MCP server that keeps state: who is logged in, and a counter.

usage: stateful_server.py FILE [legacy|stateless|modern] [PORT]
On stdio, each process has one state. Over HTTP, a legacy server has one for each session; a modern server, and a stateless one (which
gives its sessions no id), has one in all. FILE gets a line for each process id on stdio, and the port over HTTP.
"""
import http.server, json, os, sys, threading, time, uuid

TOOLS = ["login", "count", "whoami", "wait", "leave", "headers"]


class State:
    def __init__(self):
        self.user, self.counter = "nobody", 0


def text(value):
    return {"content": [{"type": "text", "text": str(value)}]}


def call(state, name, arguments, headers):
    if name == "login":
        state.user = arguments["user"]
    if name == "count":
        state.counter += 1
        return text(f"{state.user} {state.counter}")
    if name == "wait":
        time.sleep(arguments["seconds"])
    if name == "leave":
        os._exit(3)
    if name == "headers":
        return text(json.dumps(headers))
    return text(state.user)


def result_of(state, method, params, headers):
    about = {"tools": {}, "resources": {}, "prompts": {}, "completions": {}}
    information = {"name": "stateful", "version": "1"}
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": about, "serverInfo": information}
    if method == "server/discover":
        return {"supportedVersions": ["2026-07-28"], "capabilities": about, "serverInfo": information}
    if method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
        return {"tools": tools, "resultType": "complete"}
    if method == "tools/call":
        return {**call(state, params["name"], params.get("arguments") or {}, headers), "resultType": "complete"}
    if method == "resources/list":
        return {"resources": [{"uri": "state://user", "name": "user"}], "resultType": "complete"}
    if method == "resources/templates/list":
        return {"resourceTemplates": [], "resultType": "complete"}
    if method == "resources/read":
        return {"contents": [{"uri": "state://user", "text": state.user}], "resultType": "complete"}
    if method == "prompts/list":
        return {"prompts": [{"name": "greet", "arguments": [{"name": "word"}]}], "resultType": "complete"}
    if method == "prompts/get":
        message = {"role": "user", "content": {"type": "text", "text": f"Greet {state.user}"}}
        return {"messages": [message], "resultType": "complete"}
    if method == "completion/complete":
        return {"completion": {"values": [state.user]}, "resultType": "complete"}
    return None


def respond(state, request, headers, is_modern):
    refused = "initialize" if is_modern else "server/discover"
    method = request["method"]
    result = None if method == refused else result_of(state, method, request.get("params") or {}, headers)
    outcome = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
    return {"jsonrpc": "2.0", "id": request["id"], **outcome}


def serve_stdio(file):
    with open(file, "a") as pids:
        pids.write(f"{os.getpid()}\n")
    state = State()
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            print(json.dumps(respond(state, request, {}, False)), flush=True)


def serve_http(file, revision, port):
    sessions, only = {}, State()
    is_modern, has_sessions = revision == "modern", revision == "legacy"

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body=b"", session=None):
            self.send_response(status)
            if session:
                self.send_header("Mcp-Session-Id", session)
            if body:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(405)

        def do_DELETE(self):
            sessions.pop(self.headers.get("Mcp-Session-Id"), None)
            self.answer(200)

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            session = self.headers.get("Mcp-Session-Id")
            if "id" not in request:
                return self.answer(202)
            if request["method"] == "initialize" and has_sessions:
                session = uuid.uuid4().hex
                sessions[session] = State()
            if has_sessions and request["method"] != "server/discover" and session not in sessions:
                return self.answer(404)
            state = sessions.get(session, only)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = ((request.get("params") or {}).get("arguments") or {}).get("status")
            if status:
                return self.answer(status, json.dumps(headers).encode())
            body = json.dumps(respond(state, request, headers, is_modern)).encode()
            self.answer(200, body, session if has_sessions else None)

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    with open(file + ".new", "w") as listening:
        listening.write(str(server.server_address[1]))
    os.rename(file + ".new", file)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    server.serve_forever()


if len(sys.argv) > 2:
    serve_http(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
else:
    serve_stdio(sys.argv[1])
