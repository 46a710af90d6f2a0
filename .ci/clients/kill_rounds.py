"""Rounds of kill -9 at random moments under load on real files.

No acknowledged message lost, order kept, ids never reused, start-up after each; the index is deleted in
every fifth round. Usage: kill_rounds.py [rounds] [seed].
"""

import random
import sys
import tempfile
import threading
import time

import pulsar

from node import Node, close_client_of_dead

TOPIC = "kill-rounds"


def connect(node):
    return pulsar.Client(
        node.service_url,
        operation_timeout_seconds=20,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))


class Load:
    """Publishes unique numbers with many in flight until the node dies; keeps what was acknowledged."""

    def __init__(self, client, first):
        self.next = first
        self.acknowledged = {}
        self.lock = threading.Lock()
        self.stop = threading.Event()
        self.producer = client.create_producer(
            TOPIC, batching_enabled=False, send_timeout_millis=3000, max_pending_messages=500)

    def run(self):
        while not self.stop.is_set():
            number = self.next
            self.next += 1

            def done(result, message_id, number=number):
                if result == pulsar.Result.Ok:
                    with self.lock:
                        self.acknowledged[number] = (message_id.ledger_id(), message_id.entry_id())

            try:
                self.producer.send_async(b"%d " % number + b"x" * 512, done)
            except Exception:
                return
            if number % 100 == 0:
                time.sleep(0.001)


def read_all(client):
    reader = client.create_reader(TOPIC, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        message = reader.read_next(timeout_millis=10_000)
        identity = message.message_id()
        number = int(message.data().split(b" ")[0])
        found.append((number, (identity.ledger_id(), identity.entry_id())))
    reader.close()
    return found


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print(f"kill rounds: {rounds}, seed {seed}", flush=True)
    chance = random.Random(seed)
    acknowledged = {}
    positions = {}
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        node = Node(f"{folder}/data")
        # A subscription keeps everything from being trimmed.
        with node:
            client = connect(node)
            client.subscribe(TOPIC, "keeper", initial_position=pulsar.InitialPosition.Earliest).close()
            client.close()
        for turn in range(rounds):
            if turn % 5 == 4:
                node.delete_index()
            with node:
                client = connect(node)
                load = Load(client, number)
                thread = threading.Thread(target=load.run, daemon=True)
                thread.start()
                time.sleep(chance.uniform(0.05, 1.2))
                node.kill()
                load.stop.set()
                thread.join(timeout=10)
                with load.lock:
                    acknowledged.update(load.acknowledged)
                number = load.next
                close_client_of_dead(client)
            if turn % 10 == 9 or turn == rounds - 1:
                verify(node, acknowledged, positions)
                print(f"  round {turn + 1}: {len(acknowledged)} acknowledged, all there", flush=True)
    assert len(acknowledged) > rounds, "too little was acknowledged to prove anything"
    print(f"kill rounds: ok, {len(acknowledged)} acknowledged messages, {len(positions)} stored")


def verify(node, acknowledged, positions):
    with node:
        client = connect(node)
        found = read_all(client)
        client.close()
    seen = {}
    previous = (-1, -1)
    for number, position in found:
        assert position > previous, f"order broken at {position} after {previous}"
        previous = position
        seen.setdefault(number, position)
        known = positions.setdefault(position, number)
        assert known == number, f"id {position} was {known} and is now {number}"
    for number, position in acknowledged.items():
        assert number in seen, f"acknowledged message {number} at {position} is lost"
        assert positions.get(position) == number, f"{number} is not at the id it was acknowledged with"
    first_numbers = list(dict.fromkeys(number for number, _ in found))
    assert first_numbers == sorted(first_numbers), "messages of the producer are out of order"


main()
