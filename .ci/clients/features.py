"""What the unmodified Python client can do, against one node: `features.py [name …]` runs only these."""

import collections
import json
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import pulsar

from node import Node

RECEIVE_MILLIS = 10_000


def connect(node):
    return pulsar.Client(
        node.service_url,
        operation_timeout_seconds=20,
        logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/null"))


def admin(node, method, path, body=None):
    request = urllib.request.Request(
        f"{node.admin_url}/admin/v2/persistent/public/default/{path}",
        data=None if body is None else json.dumps(body).encode(), method=method,
        headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        text = response.read()
    return json.loads(text) if text else None


def backlog(node, topic, subscription):
    return admin(node, "GET", f"{topic}/stats")["subscriptions"][subscription]["msgBacklog"]


def acknowledgements_stored(node, topic, subscription):
    """Acknowledgements travel in groups and are stored a fraction of a second later: waits until none comes any
    more, however slow the machine is, and then for several times the flush interval (200 ms)."""
    seen, since = None, time.monotonic()
    while time.monotonic() - since < 2:
        now = backlog(node, topic, subscription)
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.1)


def receive(consumer, count, acknowledge=True):
    """Messages in the order they came; all or an error."""
    found = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=RECEIVE_MILLIS)
        found.append(message)
        if acknowledge:
            consumer.acknowledge(message)
    return found


def texts(messages):
    return [message.data().decode() for message in messages]


def is_silent(consumer, millis=300):
    try:
        message = consumer.receive(timeout_millis=millis)
    except pulsar.Timeout:
        return True
    raise AssertionError(f"unexpected message {message.data()!r} {message.message_id()}")


def send(client, topic, values, **options):
    producer = client.create_producer(topic, **options)
    ids = [producer.send(value.encode()) for value in values]
    producer.close()
    return ids


def numbers(count, prefix="m"):
    return [f"{prefix}{index}" for index in range(count)]


def expect_error(kinds, action):
    try:
        action()
    except kinds:
        return
    raise AssertionError(f"{kinds} expected")


def shared_redelivery(node, client):
    options = dict(subscription_name="s", consumer_type=pulsar.ConsumerType.Shared)
    first = client.subscribe("shared", receiver_queue_size=5, **options)
    second = client.subscribe("shared", receiver_queue_size=5, **options)
    send(client, "shared", numbers(40))
    held = receive(first, 10, acknowledge=False)
    taken = receive(second, 10)
    assert not set(texts(held)) & set(texts(taken))
    first.close()
    rest = receive(second, 30)
    assert sorted(texts(taken) + texts(rest)) == sorted(numbers(40))
    assert is_silent(second)
    second.close()


def negative_acknowledgement(node, client):
    consumer = client.subscribe(
        "negative", "s", consumer_type=pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=200)
    send(client, "negative", numbers(5))
    for message in receive(consumer, 5, acknowledge=False):
        if message.data() in (b"m1", b"m3"):
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)
    again = receive(consumer, 2)
    assert sorted(texts(again)) == ["m1", "m3"]
    assert all(message.redelivery_count() == 1 for message in again)
    assert is_silent(consumer)
    consumer.close()


def cumulative_acknowledgement(node, client):
    consumer = client.subscribe("cumulative", "s")
    send(client, "cumulative", numbers(20))
    messages = receive(consumer, 20, acknowledge=False)
    consumer.acknowledge_cumulative(messages[11])
    consumer.close()
    consumer = client.subscribe("cumulative", "s")
    assert texts(receive(consumer, 8)) == numbers(20)[12:]
    assert is_silent(consumer)
    consumer.close()


def seek(node, client):
    consumer = client.subscribe("seek", "s")
    ids = send(client, "seek", numbers(5))
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    send(client, "seek", numbers(5, "n"))
    everything = numbers(5) + numbers(5, "n")
    assert texts(receive(consumer, 10)) == everything
    consumer.seek(ids[2])
    # The node delivers the one sought too; this client keeps it to itself.
    assert texts(receive(consumer, 7)) == everything[3:]
    consumer.seek(between)
    assert texts(receive(consumer, 5)) == everything[5:]
    consumer.seek(pulsar.MessageId.earliest)
    assert texts(receive(consumer, 10)) == everything
    consumer.seek(pulsar.MessageId.latest)
    assert is_silent(consumer)
    send(client, "seek", ["last"])
    assert texts(receive(consumer, 1)) == ["last"]
    consumer.close()


def reader(node, client):
    ids = send(client, "read", numbers(10))
    found = client.create_reader("read", pulsar.MessageId.earliest)
    seen = []
    while found.has_message_available():
        seen.append(found.read_next(timeout_millis=RECEIVE_MILLIS).data().decode())
    assert seen == numbers(10), seen
    send(client, "read", ["more"])
    assert found.has_message_available()
    assert found.read_next(timeout_millis=RECEIVE_MILLIS).data() == b"more"
    assert not found.has_message_available()
    found.close()
    found = client.create_reader("read", ids[6])
    assert found.read_next(timeout_millis=RECEIVE_MILLIS).data() == b"m7"
    found.close()
    found = client.create_reader("read", ids[6], start_message_id_inclusive=True)
    assert found.read_next(timeout_millis=RECEIVE_MILLIS).data() == b"m6"
    found.seek(ids[2])
    assert found.read_next(timeout_millis=RECEIVE_MILLIS).data() in (b"m2", b"m3")
    found.close()
    found = client.create_reader("read", pulsar.MessageId.latest)
    assert not found.has_message_available()
    found.close()
    empty = client.create_reader("read-empty", pulsar.MessageId.earliest)
    assert not empty.has_message_available()
    empty.close()


def compressed_batches(node, client):
    kinds = pulsar.CompressionType
    for kind in (kinds.NONE, kinds.LZ4, kinds.ZLib, kinds.ZSTD, kinds.SNAPPY):
        topic = f"compressed-{kind.name}"
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(
            topic, compression_type=kind, batching_enabled=True, batching_max_messages=50,
            batching_max_publish_delay_ms=20)
        results = collections.Counter()
        for index in range(500):
            producer.send_async(
                b"%d " % index + b"text " * 20,
                lambda result, _: results.update([result]),
                properties={"n": str(index)}, partition_key=f"k{index}")
        producer.flush()
        messages = receive(consumer, 500)
        assert results == {pulsar.Result.Ok: 500}, (kind, results)
        for index, message in enumerate(messages):
            assert message.data() == b"%d " % index + b"text " * 20, (kind, index)
            assert message.properties() == {"n": str(index)}
            assert message.partition_key() == f"k{index}"
        assert is_silent(consumer, 100)
        producer.close()
        consumer.close()


def partitioned_topic(node, client):
    admin(node, "PUT", "parted/partitions", 4)
    assert admin(node, "GET", "parted/partitions")["partitions"] == 4
    expected = [f"persistent://public/default/parted-partition-{index}" for index in range(4)]
    assert client.get_topic_partitions("parted") == expected
    plain = client.get_topic_partitions("not-parted")
    assert plain == ["persistent://public/default/not-parted"] or plain == ["not-parted"], plain
    consumer = client.subscribe("parted", "s")
    producer = client.create_producer(
        "parted", message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution,
        batching_enabled=False)
    for index in range(100):
        producer.send(b"%d" % index, partition_key=f"key{index % 10}")
    messages = receive(consumer, 100)
    assert sorted(int(message.data()) for message in messages) == list(range(100))
    by_key = collections.defaultdict(list)
    for message in messages:
        by_key[message.partition_key()].append(int(message.data()))
    assert all(found == sorted(found) for found in by_key.values()), by_key
    assert len({message.topic_name() for message in messages}) > 1
    stats = admin(node, "GET", "parted/partitioned-stats")
    assert stats["metadata"]["partitions"] == 4 and stats["msgInCounter"] == 100, stats
    producer.close()
    consumer.close()
    expect_error(urllib.error.HTTPError, lambda: admin(node, "PUT", "parted/partitions", 4))


def unsubscribe(node, client):
    consumer = client.subscribe("gone", "s")
    send(client, "gone", numbers(3))
    receive(consumer, 1)
    consumer.unsubscribe()
    assert admin(node, "GET", "gone/subscriptions") == []
    consumer = client.subscribe("gone", "s")
    assert is_silent(consumer)
    consumer.close()
    consumer = client.subscribe("gone", "t", initial_position=pulsar.InitialPosition.Earliest)
    assert texts(receive(consumer, 3)) == numbers(3)
    consumer.close()


def exclusive(node, client):
    first = client.subscribe("exclusive", "s")
    expect_error(pulsar.ConsumerBusy, lambda: client.subscribe("exclusive", "s"))
    other = connect(node)
    expect_error(pulsar.ConsumerBusy, lambda: other.subscribe("exclusive", "s"))
    send(client, "exclusive", ["still"])
    assert texts(receive(first, 1)) == ["still"]
    first.close()
    second = other.subscribe("exclusive", "s")
    send(client, "exclusive", ["now"])
    assert texts(receive(second, 1)) == ["now"]
    other.close()


def failover(node, client):
    options = dict(subscription_name="s", consumer_type=pulsar.ConsumerType.Failover)
    first = client.subscribe("failover", consumer_name="a", **options)
    second = client.subscribe("failover", consumer_name="b", **options)
    send(client, "failover", numbers(10))
    assert texts(receive(first, 5)) == numbers(5)
    assert is_silent(second, 200)
    first.close()
    assert texts(receive(second, 5)) == numbers(10)[5:]
    second.close()


def key_shared(node, client):
    options = dict(subscription_name="s", consumer_type=pulsar.ConsumerType.KeyShared)
    try:
        consumers = [client.subscribe("key-shared", **options) for _ in range(2)]
    except pulsar.PulsarException as error:
        # Said to be refused by this version: then clearly.
        assert type(error) in (pulsar.NotAllowedError, pulsar.OperationNotSupported), repr(error)
        return
    producer = client.create_producer("key-shared", batching_enabled=False)
    for index in range(60):
        producer.send(b"%d" % index, partition_key=f"key{index % 12}")
    seen = [[], []]
    deadline = time.monotonic() + 10
    while len(seen[0]) + len(seen[1]) < 60 and time.monotonic() < deadline:
        for consumer, found in zip(consumers, seen):
            try:
                message = consumer.receive(timeout_millis=50)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            found.append((message.partition_key(), int(message.data())))
    assert len(seen[0]) + len(seen[1]) == 60, seen
    assert not {key for key, _ in seen[0]} & {key for key, _ in seen[1]}
    for found in seen:
        for wanted in {key for key, _ in found}:
            order = [number for key, number in found if key == wanted]
            assert order == sorted(order)
    for consumer in consumers:
        consumer.close()


def schema(node, client):
    text = pulsar.schema.StringSchema()
    producer = client.create_producer("schema", schema=text)
    consumer = client.subscribe(
        "schema", "s", schema=text, initial_position=pulsar.InitialPosition.Earliest)
    producer.send("grüße")
    message = consumer.receive(timeout_millis=RECEIVE_MILLIS)
    assert message.value() == "grüße"
    consumer.acknowledge(message)
    producer.close()
    consumer.close()


def sizes(node, client):
    """Near the longest message and above it; others on the connection go on."""
    consumer = client.subscribe("sizes", "s")
    bystander = client.create_producer("sizes-other")
    bystander.send(b"before")
    near = b"n" * (5 * 1024 * 1024 - 1000)
    producer = client.create_producer("sizes", batching_enabled=False)
    producer.send(near)
    assert consumer.receive(timeout_millis=RECEIVE_MILLIS).data() == near
    expect_error(pulsar.PulsarException, lambda: producer.send(b"n" * (5 * 1024 * 1024 + 1)))
    producer.send(b"after")
    assert consumer.receive(timeout_millis=RECEIVE_MILLIS).data() == b"after"
    bystander.send(b"after")
    chunked = client.create_producer("sizes", batching_enabled=False, chunking_enabled=True)
    large = bytes(range(256)) * (12 * 4096)
    chunked.send(large)
    assert consumer.receive(timeout_millis=RECEIVE_MILLIS).data() == large
    consumer.close()


def many_producers_and_consumers(node, client):
    consumers = [
        client.subscribe("many", "s", consumer_type=pulsar.ConsumerType.Shared) for _ in range(5)]
    producers = [client.create_producer("many", producer_name=f"p{index}") for index in range(10)]
    expect_error(
        pulsar.ProducerBusy, lambda: client.create_producer("many", producer_name="p3"))

    def publish(producer):
        for index in range(50):
            producer.send(f"{producer.producer_name()}:{index}".encode())

    threads = [threading.Thread(target=publish, args=(producer,)) for producer in producers]
    for thread in threads:
        thread.start()
    seen = collections.Counter()
    deadline = time.monotonic() + 20
    while sum(seen.values()) < 500 and time.monotonic() < deadline:
        for consumer in consumers:
            try:
                message = consumer.receive(timeout_millis=20)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            seen[message.data()] += 1
    for thread in threads:
        thread.join()
    assert len(seen) == 500 and set(seen.values()) == {1}, len(seen)
    for part in producers + consumers:
        part.close()


def pattern(node, client):
    import re
    send(client, "pattern-a", ["a"])
    send(client, "pattern-b", ["b"])
    consumer = client.subscribe(
        re.compile("persistent://public/default/pattern-.*"), "s",
        initial_position=pulsar.InitialPosition.Earliest)
    assert sorted(texts(receive(consumer, 2))) == ["a", "b"]
    consumer.close()
    several = client.subscribe(
        ["pattern-a", "pattern-b"], "t", initial_position=pulsar.InitialPosition.Earliest)
    assert sorted(texts(receive(several, 2))) == ["a", "b"]
    several.close()


def batch_index_across_restart(folder):
    with Node(folder) as node:
        client = connect(node)
        consumer = client.subscribe(
            "batch", "s", consumer_type=pulsar.ConsumerType.Shared,
            batch_index_ack_enabled=True)
        producer = client.create_producer(
            "batch", batching_enabled=True, batching_max_messages=10,
            batching_max_publish_delay_ms=1000)
        for value in numbers(10):
            producer.send_async(value.encode(), None)
        producer.flush()
        for message in receive(consumer, 10, acknowledge=False):
            if int(message.data()[1:]) % 2 == 0:
                consumer.acknowledge(message)
        client.close()
        acknowledgements_stored(node, "batch", "s")
        node.kill()
        node.start()
        client = connect(node)
        consumer = client.subscribe(
            "batch", "s", consumer_type=pulsar.ConsumerType.Shared,
            batch_index_ack_enabled=True)
        assert texts(receive(consumer, 5)) == [f"m{index}" for index in range(1, 10, 2)]
        assert is_silent(consumer)
        client.close()


def backlog_across_restart(folder):
    count = 20_000
    with Node(folder) as node:
        client = connect(node)
        client.subscribe("large", "s").close()
        producer = client.create_producer(
            "large", batching_enabled=True, batching_max_messages=10, block_if_queue_full=True)
        results = collections.Counter()
        for index in range(count):
            producer.send_async(
                b"%d " % index + b"x" * 1000, lambda result, _: results.update([result]))
        producer.flush()
        client.close()
        assert results == {pulsar.Result.Ok: count}, results
        node.stop()
        node.start()
        client = connect(node)
        consumer = client.subscribe("large", "s")
        before = [int(message.data().split(b" ")[0]) for message in receive(consumer, count // 2)]
        assert before == list(range(count // 2))
        client.close()
        acknowledgements_stored(node, "large", "s")
        node.kill()
        node.start()
        client = connect(node)
        consumer = client.subscribe("large", "s")
        after = [int(message.data().split(b" ")[0]) for message in receive(consumer, count // 2)]
        assert after == list(range(count // 2, count)), (after[0], after[-1])
        assert is_silent(consumer)
        client.close()
        acknowledgements_stored(node, "large", "s")
        assert backlog(node, "large", "s") == 0


def producer_across_kill(folder):
    """One producer and one consumer live through two kills by reconnecting."""
    with Node(folder) as node:
        client = connect(node)
        consumer = client.subscribe("reconnect", "s")
        producer = client.create_producer(
            "reconnect", send_timeout_millis=30_000, batching_enabled=False,
            block_if_queue_full=True)
        acknowledged, failed = set(), []
        lock = threading.Lock()

        def done(number, result):
            with lock:
                acknowledged.add(number) if result == pulsar.Result.Ok else failed.append(result)

        received = []
        for turn in range(3):
            for number in range(turn * 300, turn * 300 + 300):
                producer.send_async(
                    b"%d" % number, lambda result, _, number=number: done(number, result))
            if turn < 2:
                node.kill()
                node.start()
        producer.flush()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and set(received) != set(range(900)):
            try:
                message = consumer.receive(timeout_millis=500)
            except pulsar.Timeout:
                continue
            consumer.acknowledge(message)
            received.append(int(message.data()))
        assert not failed, failed
        assert acknowledged == set(range(900))
        assert set(received) == acknowledged, sorted(acknowledged - set(received))[:20]
        firsts = list(dict.fromkeys(received))
        assert firsts == sorted(firsts), "out of order"
        client.close()


ON_ONE_NODE = [
    shared_redelivery, negative_acknowledgement, cumulative_acknowledgement, seek, reader,
    compressed_batches, partitioned_topic, unsubscribe, exclusive, failover, key_shared, schema,
    sizes, many_producers_and_consumers, pattern,
]
ON_NODES_OF_THEIR_OWN = [batch_index_across_restart, backlog_across_restart, producer_across_kill]


def main():
    chosen = set(sys.argv[1:])
    failures = []

    def run(test, *arguments):
        if chosen and test.__name__ not in chosen:
            return
        began = time.monotonic()
        try:
            test(*arguments)
        except Exception as error:
            import traceback
            traceback.print_exc()
            failures.append(test.__name__)
            print(f"{test.__name__}: FAILED {error!r}", flush=True)
        else:
            print(f"{test.__name__}: ok ({time.monotonic() - began:.1f} s)", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        with Node(f"{folder}/shared") as node:
            client = connect(node)
            for test in ON_ONE_NODE:
                run(test, node, client)
            client.close()
            if not failures:
                node.stop()
        for test in ON_NODES_OF_THEIR_OWN:
            run(test, f"{folder}/{test.__name__}")
    assert not failures, f"failed: {failures}"
    print("features: ok")


main()
