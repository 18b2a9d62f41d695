"""Stands between Toolyard and a real server and writes down the server's own bytes as they are passed on.

tap.py stdio FILE COMMAND ARGS…   what the program writes goes to FILE, what it is told goes to FILE.told
tap.py http FILE PORT UPSTREAM    the same for the bodies of answers and posts, each on a line of its own

With `odd-` before the first word, what the server writes is spelt as no server spells it, and means the same and more.
"""

import http.client
import http.server
import socketserver
import subprocess
import sys
import threading

lock = threading.Lock()
odd = sys.argv[1].startswith("odd-")
ODD = rb' { "x\u002dunknown" : [ 1.50, 1E+2, -0.0, 123456789012345678901234567890, "\/\u00e4" ] , '


def spelt(data):
    if odd:
        for key in (b'"result":{', b'"inputSchema":{', b'"structuredContent":{'):
            data = data.replace(key + b"}", b"\0").replace(key, key[:-1] + ODD).replace(b"\0", key + b"}")
    return data


def keep(name, data):
    with lock, open(name, "ab") as file:
        file.write(data)


def over_stdio(name, command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell():
        while data := sys.stdin.buffer.readline():
            keep(name + ".told", data)
            server.stdin.write(data)
            server.stdin.flush()
        server.stdin.close()

    threading.Thread(target=tell, daemon=True).start()
    while data := spelt(server.stdout.readline()):
        keep(name, data)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    sys.exit(server.wait())


class Between(http.server.BaseHTTPRequestHandler):
    def pass_on(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if body:
            keep(self.server.file + ".told", body + b"\n")
        server = http.client.HTTPConnection("127.0.0.1", self.server.upstream)
        headers = {name: value for name, value in self.headers.items() if name.lower() != "host"}
        server.request(self.command, self.path, body or None, headers)
        answer = server.getresponse()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection", "keep-alive"):
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        whole = b""

        def pass_back(end=b""):
            data = spelt(whole)
            keep(self.server.file, data + end)
            self.wfile.write(data)
            self.wfile.flush()

        try:
            while data := answer.read1(65536):
                whole += data
                if whole.endswith(b"\n"):
                    pass_back()
                    whole = b""
        finally:
            pass_back(end=b"\n")
            server.close()
            self.close_connection = True

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, *words):
        pass


class Tap(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass


if sys.argv[1].removeprefix("odd-") == "stdio":
    over_stdio(sys.argv[2], sys.argv[3:])
else:
    tap = Tap(("127.0.0.1", int(sys.argv[3])), Between)
    tap.file, tap.upstream = sys.argv[2], int(sys.argv[4])
    tap.serve_forever()
