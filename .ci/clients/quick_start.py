"""The well-known quick start with the unmodified Python client, and the same across kill -9."""

import json
import tempfile
import urllib.request

import pulsar

from node import Node, close_client_of_dead


def stats(node, topic):
    url = f"{node.admin_url}/admin/v2/persistent/public/default/{topic}/stats"
    with urllib.request.urlopen(url, timeout=10) as response:
        return json.load(response)


def quick_start(folder):
    with Node(folder) as node:
        client = pulsar.Client(node.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null"))
        consumer = client.subscribe("my-topic", subscription_name="my-sub")
        producer = client.create_producer("my-topic")
        for index in range(10):
            producer.send(("hello-pulsar-%d" % index).encode())
        seen = stats(node, "my-topic")
        assert len(seen["publishers"]) == 1, seen
        assert seen["publishers"][0]["clientVersion"], seen
        assert seen["subscriptions"]["my-sub"]["msgBacklog"] == 10, seen
        assert len(seen["subscriptions"]["my-sub"]["consumers"]) == 1, seen
        for index in range(10):
            message = consumer.receive(timeout_millis=10_000)
            assert message.data() == ("hello-pulsar-%d" % index).encode(), message.data()
            consumer.acknowledge(message)
        consumer.close()
        seen = stats(node, "my-topic")
        assert seen["subscriptions"]["my-sub"]["msgBacklog"] == 0, seen
        assert seen["storageSize"] > 0, seen
        client.close()
        node.stop()


def survives_kill(folder):
    node = Node(folder).start()
    client = pulsar.Client(node.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null"))
    client.subscribe("kill-topic", subscription_name="my-sub").close()
    producer = client.create_producer("kill-topic")
    sent = {}
    for index in range(10):
        data = ("hello-pulsar-%d" % index).encode()
        sent[str(producer.send(data))] = data
    node.kill()
    close_client_of_dead(client)
    node.start()
    client = pulsar.Client(node.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null"))
    consumer = client.subscribe("kill-topic", subscription_name="my-sub")
    received = {}
    for _ in range(10):
        message = consumer.receive(timeout_millis=10_000)
        received[str(message.message_id())] = message.data()
        consumer.acknowledge(message)
    assert list(received.values()) == list(sent.values()), (sent, received)
    client.close()
    node.kill()


def main():
    with tempfile.TemporaryDirectory() as folder:
        quick_start(f"{folder}/quick")
        print("quick start: ok")
        survives_kill(f"{folder}/kill")
        print("the same ten across kill -9: ok")


main()
