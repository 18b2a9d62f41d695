"""Serves one model file with llama.cpp's own HTTP server: local_model.py MODEL.gguf PORT THREADS; see scripts/local-model."""

import os
import pathlib
import signal
import sys
import time
import urllib.error
import urllib.request

import xllamacpp


def parameters(model: pathlib.Path, port: int, threads: int) -> xllamacpp.CommonParams:
    """One request at a time, no downloads, loopback only."""
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {model.stem}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 8192
    params.n_parallel = 1
    params.offline = True
    params.use_jinja = True
    params.warmup = False
    params.ui = False
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # Waiting threads sleep: spinning ones would take CPU time from the tools and the agent.
    params.cpuparams.poll = 0
    params.cpuparams_batch.poll = 0
    return params


def wait_until_ready(address: str) -> None:
    for _ in range(600):
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    sys.exit(f"local-model: {address} did not become ready within a minute")


def main() -> None:
    model, port, threads = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    parent = os.getppid()
    # The server's own threads would outlive an ordinary exit.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: os._exit(0))
    server = xllamacpp.Server(parameters(model, port, threads))
    wait_until_ready(server.listening_address)
    print(f"{server.listening_address}/v1 {model.stem}", flush=True)
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(0)


if __name__ == "__main__":
    main()
