"""Stands between Toolyard and a real server and writes down the server's own bytes, without looking at them.

tap.py stdio FILE COMMAND ARGS…   what the program writes goes to FILE, what it is told goes to FILE.told
tap.py http FILE PORT UPSTREAM    the same for the bodies of answers and posts, each on a line of its own
"""

import http.client
import http.server
import socketserver
import subprocess
import sys
import threading

lock = threading.Lock()


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
    while data := server.stdout.readline():
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
        try:
            while data := answer.read1(65536):
                whole += data
                if whole.endswith(b"\n"):
                    keep(self.server.file, whole)
                    whole = b""
                self.wfile.write(data)
                self.wfile.flush()
        finally:
            keep(self.server.file, whole + b"\n")
            server.close()
            self.close_connection = True

    do_GET = do_POST = do_DELETE = pass_on

    def log_message(self, *words):
        pass


class Tap(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        pass


if sys.argv[1] == "stdio":
    over_stdio(sys.argv[2], sys.argv[3:])
else:
    tap = Tap(("127.0.0.1", int(sys.argv[3])), Between)
    tap.file, tap.upstream = sys.argv[2], int(sys.argv[4])
    tap.serve_forever()
