"""NATS servers from the installed parts."""

import json
import os
import sys
from pathlib import Path

from processes import block_until, spawn


def nats_program():
    parts = os.environ.get("TOOLYARD_PARTS") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "toolyard-parts")
    program = os.path.join(parts, "nats/bin/nats-server")
    if not os.path.exists(program):
        sys.exit("NATS is missing\nhint: scripts/parts installs it")
    return program


def start_nats(folder):
    """One server at a port that it chooses; its process and the port."""
    ports = Path(folder) / "nats"
    ports.mkdir()
    process = spawn([nats_program(), "-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", ports], ports / "log")

    def port():
        texts = [file.read_text() for file in ports.glob("*.ports")]
        return int(json.loads(texts[0])["nats"][0].rsplit(":", 1)[1]) if texts and texts[0] else None

    return process, block_until(port, 10, "NATS listens")
