"""The gRPC API with an unmodified Python client and stubs made from proto/, and the command line, against a node."""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import grpc
import pulsar
from grpc_tools import protoc

from node import BINARY, Node

ROOT = pathlib.Path(__file__).resolve().parents[2]


def stubs(folder):
    """Modules of proto/seawall/v1, made as any user would make them."""
    files = sorted(str(path.relative_to(ROOT / "proto")) for path in (ROOT / "proto/seawall/v1").glob("*.proto"))
    code = protoc.main(["", f"-I{ROOT / 'proto'}", f"--python_out={folder}", f"--grpc_python_out={folder}", *files])
    assert code == 0, code
    sys.path.insert(0, str(folder))
    names = ["failure_pb2", "ledgers_pb2", "ledgers_pb2_grpc", "streams_pb2", "streams_pb2_grpc"]
    return [importlib.import_module(f"seawall.v1.{name}") for name in names]


def failure_of(failure_pb2, error):
    """The detail of a status: google.rpc.Status, field 3 is the list of Any, whose field 2 is ours."""
    rich = dict(error.trailing_metadata())["grpc-status-details-bin"]
    from google.protobuf import any_pb2
    from google.rpc import status_pb2
    status = status_pb2.Status.FromString(rich)
    assert status.code == error.code().value[0] and status.message == error.details(), status
    detail = any_pb2.Any.FromString(status.details[0].SerializeToString())
    failure = failure_pb2.Failure()
    assert detail.Unpack(failure), detail
    return failure


def seawall(node, *arguments, code=0):
    command = [BINARY, *arguments, "--grpc", node.grpc_address, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def streams(node, modules):
    failure_pb2, _, _, messages, services = modules
    channel = grpc.insecure_channel(node.grpc_address)
    service = services.StreamsStub(channel)
    stream = messages.StreamName(name="my-stream")

    def append(*records, token=None):
        requests = [messages.AppendRequest(open=messages.OpenAppend(stream=stream, token=token))]
        requests += [messages.AppendRequest(record=record) for record in records]
        numbers = []
        for answer in service.Append(iter(requests), timeout=30):
            numbers += answer.committed.numbers
        return numbers

    many = [messages.NewRecord(payload=b"%d" % number, expected_number=number) for number in range(1000)]
    assert append(*many) == list(range(1000))
    try:
        append(messages.NewRecord(payload=b"late", expected_number=7))
        raise AssertionError("a wrong number was taken")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.ABORTED, error
        failure = failure_of(failure_pb2, error)
        assert failure.reason == failure_pb2.REASON_WRONG_NUMBER and failure.next_number == 1000, failure
        assert failure.outcome == failure_pb2.OUTCOME_REJECTED, failure
    read = messages.ReadStreamRequest(stream=stream, number=990)
    records = [record for answer in service.ReadStream(read, timeout=30) for record in answer.records]
    assert [record.payload for record in records] == [b"%d" % number for number in range(990, 1000)], records
    # Pulsar's own client on the same topic.
    client = pulsar.Client(node.service_url, logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/null"))
    reader = client.create_reader("my-stream", pulsar.MessageId.earliest)
    assert [reader.read_next(10_000).data() for _ in range(1000)] == [b"%d" % number for number in range(1000)]
    client.create_producer("my-stream", batching_enabled=False).send(b"by pulsar", partition_key="k")
    client.close()
    follow = messages.ReadStreamRequest(stream=stream, number=1000, limit=1, follow=True)
    [record] = [record for answer in service.ReadStream(follow, timeout=30) for record in answer.records]
    assert (record.payload, record.key, record.plain) == (b"by pulsar", "k", True), record
    # A token shuts lower ones out, also after kill -9.
    assert append(messages.NewRecord(payload=b"one"), token=1) == [1001]
    assert service.FenceStream(messages.FenceStreamRequest(stream=stream, token=2), timeout=30).next_number == 1002
    node.kill()
    node.start()
    channel.close()
    channel = grpc.insecure_channel(node.grpc_address)
    service = services.StreamsStub(channel)
    try:
        append(messages.NewRecord(payload=b"stale"), token=1)
        raise AssertionError("a stale token was taken")
    except grpc.RpcError as error:
        failure = failure_of(failure_pb2, error)
        assert failure.reason == failure_pb2.REASON_STALE_TOKEN and failure.token == 2, failure
    assert append(messages.NewRecord(payload=b"two", expected_number=1002), token=2) == [1002]
    trimmed = service.TrimStream(messages.TrimStreamRequest(stream=stream, first_number=1000), timeout=30)
    assert (trimmed.first_number, trimmed.next_number, trimmed.token) == (1000, 1003, 2), trimmed
    channel.close()


def ledgers(node, modules):
    _, messages, services, _, _ = modules
    with grpc.insecure_channel(node.grpc_address) as channel:
        service = services.LedgersStub(channel)
        requests = [messages.WriteRequest(create=messages.CreateLedger(purpose="a test"))]
        requests += [messages.WriteRequest(append=messages.AppendEntry(payload=b"%d" % n)) for n in range(100)]
        requests += [messages.WriteRequest(close=messages.CloseLedger())]
        answers = list(service.Write(iter(requests), timeout=30))
        ledger, closed = answers[0].created.ledger, answers[-1].closed
        assert closed.last_entry == 99 and closed.state == messages.LEDGER_STATE_CLOSED, closed
        read = service.ReadLedger(messages.ReadLedgerRequest(ledger=ledger, first_entry=90), timeout=30)
        assert [e.payload for a in read for e in a.entries] == [b"%d" % n for n in range(90, 100)]
        service.DeleteLedger(messages.DeleteLedgerRequest(ledger=ledger), timeout=30)
        try:
            service.DescribeLedger(messages.DescribeLedgerRequest(ledger=ledger), timeout=30)
            raise AssertionError("a deleted ledger is described")
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.NOT_FOUND, error


def command_line(node):
    assert seawall(node, "append", "cli", "-m", "a", "-m", "b", "--expect", "0")[0]["numbers"] == [0, 1]
    [refused] = seawall(node, "append", "cli", "-m", "c", "--expect", "0", code=1)
    assert (refused["rejected"], refused["unknown"], refused["next_number"]) == (1, 0, 2), refused
    assert seawall(node, "append", "cli", "-m", "c", "--token", "5")[0]["numbers"] == [2]
    [stale] = seawall(node, "append", "cli", "-m", "d", "--token", "4", code=1)
    assert (stale["reason"], stale["token"]) == ("REASON_STALE_TOKEN", 5), stale
    records = seawall(node, "read", "cli", "--from", "1")
    assert [(record["number"], record["content"]) for record in records] == [(1, "b"), (2, "c")], records
    assert seawall(node, "read", "cli", "--tail") == []
    seawall(node, "read", "cli", "--from", "9", code=1)
    seawall(node, "read", "nothing/here", code=2)


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/stubs")
        modules = stubs(f"{folder}/stubs")
        with Node(f"{folder}/node") as node:
            ledgers(node, modules)
            print("gRPC ledgers: ok")
            command_line(node)
            print("append and read on the command line: ok")
            streams(node, modules)
            print("gRPC streams: ok")
            node.stop()


main()
