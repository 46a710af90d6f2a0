"""A standalone node as a real process, for tests with real clients."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import threading
import time

import pulsar

BINARY = os.environ.get("SEAWALL_BINARY", "target/release/seawall")
READY_SECONDS = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def close_client_of_dead(client):
    """Closes a client whose node was killed: it may find out while it says goodbye, and then says so."""
    try:
        client.close()
    except (pulsar.NotConnected, pulsar.ConnectError, pulsar.Timeout) as error:
        print(f"  (the client's close met the dead node: {error})", flush=True)


class Node:
    """`with Node(folder) as node:` starts it and waits for the word `ready`."""

    def __init__(self, folder, pulsar_port=None, http_port=None, grpc_port=None):
        self.folder = pathlib.Path(folder)
        self.pulsar_port = pulsar_port or free_port()
        self.http_port = http_port or free_port()
        self.grpc_port = grpc_port or free_port()
        self.process = None

    @property
    def service_url(self):
        return f"pulsar://127.0.0.1:{self.pulsar_port}"

    @property
    def admin_url(self):
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def grpc_address(self):
        return f"127.0.0.1:{self.grpc_port}"

    def start(self):
        command = [
            BINARY, "standalone", "--data", str(self.folder),
            "--pulsar-port", str(self.pulsar_port), "--http-port", str(self.http_port),
            "--grpc-port", str(self.grpc_port),
        ]
        self.log = open(f"{self.folder}.log", "ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        ready = threading.Event()
        lines = []

        def read():
            for line in self.process.stdout:
                lines.append(line)
                if "ready" in line.split():
                    ready.set()

        threading.Thread(target=read, daemon=True).start()
        deadline = time.monotonic() + READY_SECONDS
        while not ready.wait(0.05):
            if self.process.poll() is not None:
                raise AssertionError(
                    f"the node ended with {self.process.returncode} before it was ready:\n"
                    + "".join(lines) + self.last_log())
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError("not ready in time:\n" + "".join(lines) + self.last_log())
        return self

    def last_log(self):
        return pathlib.Path(f"{self.folder}.log").read_text(errors="replace")[-4000:]

    def kill(self):
        """kill -9: the process gets no word to say."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()

    def stop(self):
        """SIGTERM; a clean stop ends with 0."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=30)
        assert code == 0, f"a clean stop ended with {code}:\n{self.last_log()}"

    def delete_index(self):
        """The index may be thrown away at any time while the node is down."""
        found = list(self.folder.glob("**/index"))
        assert found, f"no index folder below {self.folder}"
        for index in found:
            shutil.rmtree(index)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()
