"""Services."""

import asyncio
import logging
import threading

import pytest

import ropewalk
from conftest import LONG

ADD = ("rospy_tutorials/AddTwoInts", "int64 a\nint64 b\n---\nint64 sum\n")


def add():
    return ropewalk.ServiceType(*ADD)


@pytest.fixture
def adder(node):
    """A server in a thread, until it gets a request for 0 + 0."""
    server = node.server("/add", add())

    def serve():
        for request in server:
            a, b = request.message.a, request.message.b
            if a == b == 0:
                server.reject(request, "enough")
                return
            try:
                server.respond(request, sum=a + b)
            except ropewalk.ContentError as e:
                server.reject(request, str(e))

    thread = threading.Thread(target=serve)
    thread.start()
    client = node.client("/add", add())
    assert client.wait_for_server(LONG)
    yield client
    with pytest.raises(ropewalk.Rejected, match="enough"):
        client.call(timeout=LONG)
    thread.join()


def test_calls_are_answered_or_rejected(adder):
    assert adder.call(a=40, b=2, timeout=LONG).sum == 42
    with pytest.raises(ropewalk.Rejected):
        adder.call(a=2**63 - 1, b=1, timeout=LONG)
    pending = [adder.send(adder.request(a=i), LONG) for i in range(1, 12)]
    assert [p.wait().sum for p in pending] == list(range(1, 12))
    with pytest.raises(ropewalk.ContentError, match="ended"):
        pending[0].poll()


def test_many_calls_in_asyncio(adder):
    async def main():
        pending = [adder.send(adder.request(a=i), LONG) for i in range(1, 12)]
        return [a.sum for a in await asyncio.gather(*[p.answer() for p in pending])]

    assert asyncio.run(main()) == list(range(1, 12))


def test_servers_that_fail_or_are_none(node, program):
    client = node.client("/switch", "std_srvs/SetBool")
    with pytest.raises(ropewalk.NoPeer):
        client.call(data=True, timeout=LONG)
    child = program(
        """
        import ropewalk
        def switch(request):
            if request.data:
                raise ValueError("stuck")
            return {"success": True, "message": "off"}
        ropewalk.Node("switch").server("/switch", "std_srvs/SetBool").serve(switch)
        """
    )
    assert client.wait_for_server(LONG)
    assert client.call(data=False, timeout=LONG).message == "off"
    with pytest.raises(ropewalk.Rejected, match="ValueError: stuck"):
        client.call(data=True, timeout=LONG)
    child.kill()
    child.wait()
    with pytest.raises(ConnectionError):
        client.call(data=False, timeout=LONG)

    silent = node.server("/silent", "std_srvs/SetBool")
    asker = node.client("/silent", timeout=LONG)
    assert asker.wait_for_server(LONG)
    with pytest.raises(TimeoutError, match="/silent"):
        asker.call(data=True, timeout=0.01)
    pending = asker.send(asker.request(data=True), LONG)
    request = silent.take(LONG)
    del request
    with pytest.raises(ropewalk.Error):
        pending.wait()


NAME = ("t/Name", "string name\n---\nstring answer\n")


def test_nothing_that_a_client_sends_or_a_handler_raises_ends_a_server(node, caplog):
    class Mute(Exception):
        def __str__(self):
            raise ValueError("no text")

    def greet(request):
        if request.name == "mute":
            raise Mute
        if request.name == "peer":
            raise ropewalk.PeerDied("another server")
        if request.name == "none":
            return None
        if request.name == "other":
            return {"answer": 5}
        if request.name == "stop":
            raise KeyboardInterrupt
        return {"answer": {"you": "hello"}[request.name]}

    server = node.server("/greet", ropewalk.ServiceType(*NAME))

    def serve():
        with pytest.raises(KeyboardInterrupt):
            server.serve(greet)

    thread = threading.Thread(target=serve)
    thread.start()
    client = node.client("/greet", ropewalk.ServiceType(*NAME))
    assert client.wait_for_server(LONG)
    with caplog.at_level(logging.ERROR, "ropewalk"):
        for name, text in [
            (b"\xff\xfe", r"KeyError: .*udcff"), ("mute", "Mute: its text cannot be created"), ("nobody", "KeyError: 'nobody'"),
            ("peer", "PeerDied: another server"), ("none", "TypeError"), ("other", "ContentError: .*answer: given int, wanted text"),
        ]:  # fmt: skip
            with pytest.raises(ropewalk.Rejected, match=text):
                client.call(name=name, timeout=LONG)
            assert client.call(name="you", timeout=LONG).answer == "hello"
    assert server.errors == 6
    # One line in ten seconds.
    assert sum("t/Name" in record.message for record in caplog.records) == 1
    with pytest.raises(ropewalk.Rejected, match="the server ends: KeyboardInterrupt"):
        client.call(name="stop", timeout=LONG)
    thread.join()


def test_a_server_that_is_to_end_at_an_error_ends(node):
    server = node.server("/switch", "std_srvs/SetBool")
    ended = []

    def serve():
        with pytest.raises(ZeroDivisionError):
            server.serve(lambda request: 1 / 0, end_on_error=True)
        ended.append(True)

    thread = threading.Thread(target=serve)
    thread.start()
    client = node.client("/switch", "std_srvs/SetBool")
    assert client.wait_for_server(LONG)
    with pytest.raises(ropewalk.Rejected, match="ZeroDivisionError"):
        client.call(data=True, timeout=LONG)
    thread.join()
    assert ended and server.errors == 1


def test_a_thousand_calls_at_a_time_are_answered_where_both_ends_allow_them(node):
    server = node.server("/add", add(), depth=1000, max_held=1000)
    client = node.client("/add", add(), max_outstanding=1000, max_held=1000)
    assert client.wait_for_server(LONG)
    pending = [client.send(client.request(a=i, b=1), LONG) for i in range(1000)]
    for _ in range(1000):
        request = server.take(LONG)
        server.respond(request, sum=request.message.a + request.message.b)
    assert [p.wait().sum for p in pending] == list(range(1, 1001))
    few = node.client("/add", add(), max_outstanding=1)
    assert few.wait_for_server(LONG)
    first = few.send(few.request(), LONG)
    with pytest.raises(ropewalk.NoRoom):
        few.send(few.request(), LONG)
    del first
