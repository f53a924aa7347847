"""Messages go on without a gap when the server is stopped and started again."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

import fencepost as fp
from tests.server.serving import running
from tests.waiting import WAIT_S

JAVASCRIPT = Path(fp.__file__).parent / "server" / "static" / "client.js"
NODE = shutil.which("node")
NO_NODE = "NOT TESTED: there is no node; run: apt-get install nodejs"
ROUNDS, EACH = 3, 150

Reader = Callable[[Any, str, Queue[int]], Any]


@contextmanager
def python_reader(make_client: Any, url: str, found: Queue[int]) -> Iterator[None]:
    """A thread that reads messages."""

    def read() -> None:
        with make_client(url) as client:
            for message in client.messages("me"):
                found.put(message.event["n"])
                if message.event["n"] == ROUNDS * EACH - 1:
                    return

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    yield
    thread.join(WAIT_S)
    assert not thread.is_alive()


@contextmanager
def node_reader(_: Any, url: str, found: Queue[int]) -> Iterator[None]:
    """A process that reads messages."""
    program = f"""
    import {{ Client }} from {str(JAVASCRIPT)!r};
    for await (const message of new Client({url!r}).messages("me")) {{
      console.log(message.data.event.n);
      if (message.data.event.n === {ROUNDS * EACH - 1}) break;
    }}
    """
    command = [str(NODE), "--input-type=module", "--eval", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                found.put(int(line))

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        yield
        assert process.wait(WAIT_S) == 0
        thread.join(WAIT_S)


def check(folder: Path, reader: Reader, make_client: Any = None) -> None:
    """Publish in rounds, each against a server of its own."""
    found: Queue[int] = Queue()
    seen: list[int] = []
    with running(folder) as server, fp.Client(server.url) as client:
        client.subscribe("me", "n >= 0")
        port = int(server.url.rpartition(":")[2])
        url = server.url
        reading = reader(make_client, url, found)
        reading.__enter__()
        client.publish({"n": n} for n in range(EACH))
        seen += [found.get(timeout=WAIT_S) for _ in range(EACH // 2)]
    for round in range(1, ROUNDS):
        with running(folder, port) as server, fp.Client(url) as client:
            client.publish({"n": n} for n in range(round * EACH, (round + 1) * EACH))
            seen += [found.get(timeout=WAIT_S) for _ in range(EACH)]
            if round == ROUNDS - 1:
                seen += [found.get(timeout=WAIT_S) for _ in range(EACH - EACH // 2)]
                reading.__exit__(None, None, None)
                depth = client.acknowledge("me", 0).depth
    assert seen == [*range(ROUNDS * EACH)]
    assert depth == 1  # the last one was handed out, and no next one asked for


def test_python(make_client: Any, tmp_path: Path) -> None:
    check(tmp_path, python_reader, make_client)


@pytest.mark.skipif(NODE is None, reason=NO_NODE)
def test_javascript(tmp_path: Path) -> None:
    check(tmp_path, node_reader)
