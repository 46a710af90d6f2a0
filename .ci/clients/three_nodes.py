"""An unmodified client against three nodes while they are killed, stopped and started again.

Measures the gap in publishing for each: kill -9 of the broker that serves the topic, of a bookie, of the
metadata leader; a rolling restart of all. Then a bookie's folder is deleted and repair is waited for. Nothing
acknowledged is lost, no id is given twice, what is read is in order. Usage: three_nodes.py [trials]
"""

import shutil
import statistics
import sys
import tempfile
import threading
import time

import pulsar

from cluster import LocalCluster

QUIET = pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null")


def connect(cluster):
    return pulsar.Client(cluster.service_url, operation_timeout_seconds=60, logger=QUIET)


class Publisher:
    """Publishes numbers, about 250 a second, and keeps what was acknowledged and when."""

    def __init__(self, cluster, topic):
        self.client = connect(cluster)
        self.producer = self.client.create_producer(
            topic, batching_enabled=False, send_timeout_millis=0, max_pending_messages=5000,
            block_if_queue_full=True)
        self.acknowledged = {}
        self.failed = []
        self.times = []
        self.next = 0
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            number = self.next
            self.next += 1

            def done(result, message_id, number=number):
                now = time.monotonic()
                with self.lock:
                    if result == pulsar.Result.Ok:
                        place = (message_id.ledger_id(), message_id.entry_id())
                        self.acknowledged[number] = place
                        self.times.append(now)
                    else:
                        self.failed.append((number, result))

            self.producer.send_async(b"%d " % number + b"x" * 100, done)
            time.sleep(0.004)

    def count(self):
        with self.lock:
            return len(self.acknowledged)

    def wait_for_more(self, more=200, seconds=90):
        """Waits until so many more were acknowledged."""
        target = self.count() + more
        deadline = time.monotonic() + seconds
        while self.count() < target:
            assert time.monotonic() < deadline, f"publishing does not go on: {self.failed[:3]}"
            time.sleep(0.01)

    def longest_gap(self, since):
        """Longest time without an acknowledgement after that moment."""
        with self.lock:
            times = [since] + [at for at in self.times if at > since]
        return max(later - earlier for earlier, later in zip(times, times[1:]))

    def stop(self):
        self.stopping.set()
        self.thread.join()
        self.producer.flush()
        self.client.close()


class Reader:
    """A subscription that keeps what it got."""

    def __init__(self, cluster, topic):
        self.client = connect(cluster)
        self.consumer = self.client.subscribe(
            topic, "watch", initial_position=pulsar.InitialPosition.Earliest)
        self.places = {}
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.is_set():
            try:
                message = self.consumer.receive(timeout_millis=200)
            except pulsar.Timeout:
                continue
            note(self.places, message)
            self.consumer.acknowledge(message)

    def wait_for(self, numbers, seconds=90):
        deadline = time.monotonic() + seconds
        while not numbers <= set(self.places.values()):
            assert time.monotonic() < deadline, "the subscription does not get everything"
            time.sleep(0.05)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        self.client.close()


def note(places, message):
    """An id names one message for ever."""
    identity = message.message_id()
    place = (identity.ledger_id(), identity.entry_id())
    number = int(message.data().split(b" ")[0])
    known = places.setdefault(place, number)
    assert known == number, f"id {place} was {known} and is now {number}"


def read_all(client, topic):
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    places = {}
    previous = (-1, -1)
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=30_000)
        note(places, message)
        place = (message.message_id().ledger_id(), message.message_id().entry_id())
        assert place > previous, f"order broken at {place} after {previous}"
        previous = place
    reader.close()
    return places


def topic_served_by(cluster, client, suits):
    """A topic whose broker suits; bundles are few, so some topic soon does."""
    for number in range(200):
        topic = f"three-nodes-{number}"
        client.get_topic_partitions(topic)
        owner = cluster.owner_of(topic)
        if suits(owner):
            return topic, owner
    raise AssertionError("no topic is served by such a node")


def metadata_leader(cluster):
    """The member that leads, once there is one."""
    if len(members(cluster)) == 1:
        return members(cluster)[0]
    deadline = time.monotonic() + 60
    while True:
        view = next(iter(cluster.running())).get("/admin/v2/metadata")
        leaders = [row["member"] for row in view["members"] if row["leads"]]
        if leaders:
            return cluster.nodes[leaders[0] - 1]
        assert time.monotonic() < deadline, f"nobody leads: {view}"
        time.sleep(0.05)


def members(cluster):
    """Nodes with the role of metadata."""
    has_role = lambda node: '"metadata"' in (node.folder / "seawall.toml").read_text().split("\n[")[0]
    return [node for node in cluster.nodes if has_role(node)]


def transfer_leadership(cluster):
    """To another one and back: said to the leader it is done, said to another it is refused."""
    for _ in range(2):
        leader = metadata_leader(cluster)
        other = next(node for node in members(cluster) if node is not leader)
        refusal = cluster.admin("metadata", "transfer-leader", str(other.number), node=other, fails=True)
        assert f"member {leader.number} leads" in refusal, refusal
        cluster.admin("metadata", "transfer-leader", str(other.number), node=leader)
        deadline = time.monotonic() + 30
        while metadata_leader(cluster) is not other:
            assert time.monotonic() < deadline, "leadership is not handed over"
            time.sleep(0.05)


def trial(cluster, publisher, kind, topic):
    """Does one thing; the gap it made in publishing."""
    publisher.wait_for_more(300)
    owner, leader = cluster.owner_of(topic), metadata_leader(cluster)
    if kind == "owner broker":
        victim = owner
    elif kind == "metadata leader":
        victim = leader
    else:
        victim = next(node for node in cluster.nodes if node not in (owner, leader))
    roles = [word for word, node in (("owner", owner), ("leader", leader)) if node is victim]
    since = time.monotonic()
    victim.kill()
    publisher.wait_for_more(300)
    gap = publisher.longest_gap(since)
    victim.start()
    publisher.wait_for_more(100)
    print(f"  {kind}: node {victim.number} {roles or ['bookie only']}: {gap * 1000:.0f} ms", flush=True)
    return gap


def rolling_restart(cluster, publisher):
    gaps = []
    for node in cluster.nodes:
        publisher.wait_for_more(200)
        since = time.monotonic()
        node.stop()
        node.start()
        publisher.wait_for_more(300)
        gaps.append(publisher.longest_gap(since))
        print(f"  rolling restart: node {node.number}: {gaps[-1] * 1000:.0f} ms", flush=True)
    return gaps


def replace_disk(cluster, publisher, topic):
    """A bookie's folder is deleted: the node comes back as another bookie, and repair makes every copy anew."""
    leader = metadata_leader(cluster)
    victim = next(node for node in cluster.nodes if node is not leader)
    admin = lambda *words, **more: cluster.admin(*words, node=leader, **more)
    before = {row["bookie"]: row for row in admin("bookies", "list")}
    assert len(before) == 3 and all(row["state"] == "serving" for row in before.values()), before
    old = next(iter(before))
    refusal = admin("bookies", "drain", old, fails=True)
    assert "are needed" in refusal, refusal
    victim.kill()
    for name in ("journal", "ledgers"):
        shutil.rmtree(victim.folder / "data" / name)
    began = time.monotonic()
    # Half a bookie does not start: what is left says that it is not whole.
    try:
        victim.start()
        raise AssertionError("a bookie without its disks started as if nothing had happened")
    except AssertionError as error:
        assert "wiped or swapped" in str(error) or "cookie" in str(error), error
    (victim.folder / "data" / "bookie-id").unlink()
    victim.start()
    seen = 0
    deadline = time.monotonic() + 240
    client = connect(cluster)
    while True:
        rows = admin("bookies", "list")
        missing = [row for row in rows if row["state"] == "missing"]
        under = admin("bookies", "under-replicated")
        seen = max(seen, len(under))
        assert read_all(client, topic), "reads work throughout"
        if missing and seen and not under:
            break
        assert time.monotonic() < deadline, (rows, under)
        time.sleep(1)
    client.close()
    print(f"  disk replaced: {seen} ledgers repaired {time.monotonic() - began:.0f} s after the loss", flush=True)
    assert len([row for row in admin("bookies", "list") if row["state"] == "serving"]) == 3


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder, LocalCluster(folder) as cluster:
        client = connect(cluster)
        leader = metadata_leader(cluster)
        if len(members(cluster)) > 1:
            transfer_leadership(cluster)
            leader = metadata_leader(cluster)
        topic, _ = topic_served_by(cluster, client, lambda owner: owner is not leader)
        client.subscribe(topic, "keeper", initial_position=pulsar.InitialPosition.Earliest).close()
        publisher, reader = Publisher(cluster, topic), Reader(cluster, topic)
        gaps = {}
        kinds = ["bookie", "owner broker"]
        # A group of one has no other that could go on.
        if len(members(cluster)) > 1:
            kinds.append("metadata leader")
        for kind in kinds:
            gaps[kind] = [trial(cluster, publisher, kind, topic) for _ in range(trials)]
        gaps["rolling restart"] = rolling_restart(cluster, publisher)
        replace_disk(cluster, publisher, topic)
        publisher.stop()
        acknowledged = publisher.acknowledged
        assert not publisher.failed, publisher.failed[:5]
        assert len(acknowledged) == publisher.next, "a publish has no outcome"
        reader.wait_for(set(acknowledged))
        reader.stop()
        places = read_all(client, topic)
        for number, place in acknowledged.items():
            assert places.get(place) == number, f"{number} is not at {place}, where it was acknowledged"
        for place, number in reader.places.items():
            assert places.get(place) == number, f"{place} was delivered with {number}"
        stored, distinct = len(places), len(set(places.values()))
        client.close()
        print(f"{len(acknowledged)} acknowledged, {stored} stored, {stored - distinct} sent again by the client")
        for kind, values in gaps.items():
            middle, worst = statistics.median(values) * 1000, max(values) * 1000
            print(f"gap in publishing, {kind}: median {middle:.0f} ms, worst {worst:.0f} ms, {len(values)} trials")
    print("three nodes: ok")


main()
