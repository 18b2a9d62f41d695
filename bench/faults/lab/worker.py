"""A worker (`toolyard worker`) of the laboratory: one of a group that executes tools of its own servers for the gateways."""

from gateway import Gateway, stdio_settings
from topology import WORKER_GROUP, WORKER_SERVERS


class Worker(Gateway):
    """Like a gateway for the laboratory: it is killed, stopped, restarted and upgraded. Nothing connects to it."""

    def __init__(self, name, folder, binary, nats):
        super().__init__(name, folder, binary, port=0)
        self.nats = nats
        with open(self.settings, "w") as file:
            for server in WORKER_SERVERS:
                file.write("\n".join(stdio_settings(server, folder)) + "\n")

    def mount(self):
        """The disk of a worker is not filled: a worker keeps nothing there."""
        return False

    def serve_command(self):
        return [self.binary, "worker", WORKER_GROUP, "--nats", self.nats]

    def has_served(self):
        return "serves" in self.latest_log()

    async def is_ready(self):
        return self.has_served()
