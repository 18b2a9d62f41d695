"""A server that proves that it got a secret, by its hash: `secret_server.py NAME [--api-key KEY] [--http]`. The secret is an option,
else the variable `NAME_TOKEN`; over HTTP it is the token of each request. Over HTTP, it prints its port first."""
import hashlib, json, os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

name = sys.argv[1]


def answer(request, token):
    method = request.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": f"whoami_{name}", "description": "Says who calls", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        text = f"token {hashlib.sha256(token.encode()).hexdigest()[:8]}"
        result = {"content": [{"type": "text", "text": text}], "isError": False}
    else:
        return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        body = json.dumps(answer(request, token)).encode() if "id" in request else b""
        self.send_response(200 if body else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send_response(405)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_DELETE = do_GET

    def log_message(self, *_):
        pass


if "--http" in sys.argv:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
token = sys.argv[sys.argv.index("--api-key") + 1] if "--api-key" in sys.argv else os.environ.get(f"{name.upper()}_TOKEN", "")
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        print(json.dumps(answer(request, token)), flush=True)
