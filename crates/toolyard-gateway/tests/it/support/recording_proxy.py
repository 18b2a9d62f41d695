"""A proxy between Toolyard and a real server that records what the server sends.

recording_proxy.py stdio FILE COMMAND ARGS…   records stdout of the server in FILE and its stdin in FILE.sent
recording_proxy.py http FILE PORT UPSTREAM    records response bodies in FILE and request bodies in FILE.sent, one per line

With `unusual-` before `stdio` or `http`, the proxy inserts JSON that changes when it is parsed and serialized.
"""

import http.client
import http.server
import socketserver
import subprocess
import sys
import threading

lock = threading.Lock()
unusual = sys.argv[1].startswith("unusual-")
UNUSUAL_JSON = rb' { "x\u002dunknown" : [ 1.50, 1E+2, -0.0, 123456789012345678901234567890, "\/\u00e4" ] , '


def rewrite(data):
    if unusual:
        for key in (b'"result":{', b'"inputSchema":{', b'"structuredContent":{'):
            data = data.replace(key + b"}", b"\0").replace(key, key[:-1] + UNUSUAL_JSON).replace(b"\0", key + b"}")
    return data


def record(name, data):
    with lock, open(name, "ab") as file:
        file.write(data)


def proxy_stdio(name, command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def forward_input():
        while data := sys.stdin.buffer.readline():
            record(name + ".sent", data)
            server.stdin.write(data)
            server.stdin.flush()
        server.stdin.close()

    threading.Thread(target=forward_input, daemon=True).start()
    while data := rewrite(server.stdout.readline()):
        record(name, data)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    sys.exit(server.wait())


class ProxyHandler(http.server.BaseHTTPRequestHandler):
    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if body:
            record(self.server.file + ".sent", body + b"\n")
        server = http.client.HTTPConnection("127.0.0.1", self.server.upstream)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        server.request(self.command, self.path, body or None, headers)
        response = server.getresponse()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "keep-alive"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        pending = b""

        def send_back(end=b""):
            data = rewrite(pending)
            record(self.server.file, data + end)
            self.wfile.write(data)
            self.wfile.flush()

        try:
            while data := response.read1(65536):
                pending += data
                if pending.endswith(b"\n"):
                    send_back()
                    pending = b""
        finally:
            send_back(end=b"\n")
            server.close()
            self.close_connection = True

    do_GET = do_POST = do_DELETE = forward

    def log_message(self, *words):
        pass


class ProxyServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass


if sys.argv[1].removeprefix("unusual-") == "stdio":
    proxy_stdio(sys.argv[2], sys.argv[3:])
else:
    proxy = ProxyServer(("127.0.0.1", int(sys.argv[3])), ProxyHandler)
    proxy.file, proxy.upstream = sys.argv[2], int(sys.argv[4])
    proxy.serve_forever()
