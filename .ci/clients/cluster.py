"""A cluster of real processes on this machine, started by `seawall cluster local`, for tests with real clients."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

BINARY = os.environ.get("SEAWALL_BINARY", "target/release/seawall")
READY_SECONDS = 120


def wait_for_ready(process, words_of_failure):
    """Reads standard output until the word `ready`; the lines before it."""
    lines = []
    ready = threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line)
            if line.strip() == "ready":
                ready.set()

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + READY_SECONDS
    while not ready.wait(0.01):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            process.kill()
            what = f"ended with {process.returncode}" if ended else "is not ready in time"
            raise AssertionError(f"{what}:\n{''.join(lines)}{words_of_failure()}")
    return lines


class ClusterNode:
    """One node: it can be killed, stopped in order, and started again from its configuration file."""

    def __init__(self, number, process_id, pulsar, http, folder):
        self.number = number
        self.process_id = process_id
        self.pulsar = pulsar
        self.http = http
        self.folder = pathlib.Path(folder)
        self.process = None

    def last_log(self):
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def kill(self):
        """kill -9."""
        os.kill(self.process_id, signal.SIGKILL)
        self._wait()

    def stop(self):
        """SIGTERM, and waits for the end."""
        os.kill(self.process_id, signal.SIGTERM)
        self._wait()

    def _wait(self):
        if self.process:
            self.process.wait(timeout=60)
            return
        # A child of `cluster local`, which takes its end in.
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                os.kill(self.process_id, 0)
            except ProcessLookupError:
                return
            time.sleep(0.01)
        raise AssertionError(f"node {self.number} does not end:\n{self.last_log()}")

    def start(self):
        log = open(self.folder / "log", "ab")
        command = [BINARY, "--log", "info", "server", "--config", str(self.folder / "seawall.toml")]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.process_id = self.process.pid
        wait_for_ready(self.process, self.last_log)

    def get(self, path, method="GET"):
        """Asks its HTTP port; redirections are followed."""
        request = urllib.request.Request(f"{self.http}{path}", method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read().decode()
        return json.loads(text) if text[:1] in "[{" else text


class LocalCluster:
    """`with LocalCluster(folder) as cluster:` starts it and waits for the word `ready`."""

    def __init__(self, folder, nodes=3):
        self.folder = folder
        self.count = nodes
        self.nodes = []

    @property
    def service_url(self):
        return "pulsar://" + ",".join(node.pulsar.removeprefix("pulsar://") for node in self.nodes)

    def __enter__(self):
        command = [BINARY, "cluster", "local", "--nodes", str(self.count), "--data", str(self.folder)]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = wait_for_ready(self.process, lambda: self.process.stderr.read())
        for line in lines:
            words = line.split()
            if words and words[0].isdigit():
                number, process_id, pulsar, http, _rpc, folder = words
                self.nodes.append(ClusterNode(int(number), int(process_id), pulsar, http, folder))
        assert len(self.nodes) == self.count, lines
        return self

    def __exit__(self, kind, *_):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.process.send_signal(signal.SIGTERM)
        for node in self.nodes:
            if node.process:
                node.process.wait(timeout=60)
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=60)
        if kind is None:
            assert code == 0, f"the cluster ended with {code}: {self.process.stderr.read()}"

    def running(self):
        """Nodes that answer that they serve."""
        found = []
        for node in self.nodes:
            try:
                node.get("/health/ready")
                found.append(node)
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
        return found

    def owner_of(self, topic):
        """The node that serves a topic."""
        lookup = self.nodes[0].get(f"/lookup/v2/topic/persistent/public/default/{topic}")
        for node in self.nodes:
            if node.pulsar == lookup["brokerUrl"]:
                return node
        raise AssertionError(f"{lookup} is none of the nodes")

    def admin(self, *words, node=None, fails=False):
        """`seawall admin … -o json`; what it printed, or its words if it fails."""
        node = node or self.nodes[0]
        command = [BINARY, "admin", "--admin-url", node.http, "-o", "json", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if fails:
            assert done.returncode == 1, (command, done)
            return done.stderr
        assert done.returncode == 0, (command, done.stderr)
        return json.loads(done.stdout) if done.stdout else None
