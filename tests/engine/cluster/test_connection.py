"""The connection to a scheduler: whose it is, how it ends, and how long it waits."""

from __future__ import annotations

import contextlib
import logging
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from banditlab.engine.executors import link
from banditlab.engine.executors.link import Link, _address
from banditlab.errors import ClusterError, UsageError
from tests.engine.cluster.by_hand import Clock, FakeClient


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the clusters that were started here; nobody is asked in earnest."""

    started: list[Any] = []

    def local_cluster(**options: Any) -> Any:
        started.append(SimpleNamespace(scheduler_address="tcp://local", options=options, close=lambda timeout: None))
        return started[-1]

    config = SimpleNamespace(set=lambda options: contextlib.nullcontext())
    monkeypatch.setitem(sys.modules, "dask", SimpleNamespace(config=config))
    made = SimpleNamespace(Client=FakeClient, LocalCluster=local_cluster)
    monkeypatch.setitem(sys.modules, "distributed", made)
    return started


def test_a_link_to_an_address_is_our_own_and_ends(dask: list[Any]) -> None:
    loud, quiet = (logging.getLogger(name) for name in ("distributed.by_hand", "banditlab.by_hand"))
    loud.setLevel(logging.INFO)
    quiet.setLevel(logging.INFO)
    made = Link("tcp://h:1", 5.0)
    assert made.client.options == {"address": "tcp://h:1", "timeout": 5.0, "set_as_default": False}
    assert (made.own, made.name) == (True, "tcp://h:1")
    assert not loud.isEnabledFor(logging.CRITICAL)
    assert quiet.level == logging.INFO
    made._hush()
    made.close()
    assert (made.client.ended, loud.level) == (1, logging.INFO)
    theirs = FakeClient()
    made = Link(theirs, 5.0)
    assert (made.own, made.client, made.name) == (False, theirs, "tcp://scheduler")
    made.close()
    assert theirs.ended == 0


def test_a_link_that_fails_leaves_nothing_behind(dask: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    loud = logging.getLogger("distributed.by_hand")
    loud.setLevel(logging.INFO)
    ended: list[Any] = []

    class Refuses(FakeClient):
        def __init__(self, address: Any, **_: Any) -> None:
            if not isinstance(address, str):
                address.close = lambda timeout: ended.append(timeout)
            raise OSError("nobody is there")

    monkeypatch.setattr(sys.modules["distributed"], "Client", Refuses)
    for where in ("tcp://h:1", "local:2"):
        with pytest.raises(ClusterError, match="nobody is there"):
            Link(where, 5.0)
        assert loud.level == logging.INFO
    assert ended == [5]


def test_workers_started_here_have_a_thread_each(dask: list[Any]) -> None:
    made = Link("local:3", 99.0)
    [cluster] = dask
    names = ("n_workers", "threads_per_worker", "memory_limit", "dashboard_address", "host")
    assert [cluster.options[name] for name in names] == [3, 1, 0, None, "127.0.0.1"]
    assert (made.local, made.client.options["address"], made.client.options["timeout"]) == (cluster, cluster, 30.0)
    made.close()


@pytest.mark.parametrize("status", ["running", "closed"])
@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("local_", [None, "one"])
def test_a_connection_that_is_ours_is_made_again(status: str, own: bool, local_: Any, dask: list[Any]) -> None:
    made = Link("tcp://h:1", 5.0)
    before = made.client
    made.own, made.local, before.status = own, local_, status
    assert (made.restored() is not before) == (status == "closed" and own and local_ is None)
    made.own, made.local = True, None
    made.close()


def test_a_scheduler_that_is_gone_with_its_file_is_waited_for(dask: list[Any], tmp_path: Path) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text("{}")
    made = Link(file, 5.0)
    before = made.client
    before.status = "closed"
    file.unlink()
    assert made.restored() is before
    file.write_text("{}")
    assert made.restored() is not before
    made.close()


def test_who_is_asked_has_a_limit_in_time(dask: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(link, "time", clock)
    made = Link("tcp://h:1", 5.0)
    client = made.client
    assert made.ask("identity") is None  # silence
    client.answers["identity",] = {"services": {}}
    assert made.ask("identity") == {"services": {}}
    assert made.dashboard() == ""
    client.answers["identity",] = {"services": {"dashboard": 1}}
    assert made.dashboard() == "http://page"
    client.answers["identity",] = None
    assert made.dashboard() == ""
    client.asked.clear()
    client.answers["a", "b"] = {"a": 1, "b": 2}
    assert made.run("f", workers=["a", "b"], seconds=60.0) == {"a": 1, "b": 2}
    client.answers["b",] = {"b": 2}
    assert made.run("f", workers=["a"], seconds=60.0) == {}
    assert made.run("f", workers=["c", "b"], seconds=60.0) == {"b": 2}  # one after the other: c is silent
    assert client.asked == [
        (("a", "b"), 60.0),
        (("a",), 60.0),
        (("c", "b"), 60.0),
        (("c",), 10.0),
        (("b",), 10.0),
    ]
    assert made.run("f", workers=[], seconds=60.0) == {}
    client.status = "closed"
    assert made.run("f", workers=["a", "b"], seconds=60.0) == {}
    assert made.ask("identity") is None
    assert len(client.asked) == 5
    made.close()


def test_addresses(tmp_path: Path) -> None:
    (tmp_path / "scheduler.json").write_text("{}")
    theirs = SimpleNamespace(scheduler_address="tcp://h:1")
    for where, options in (
        ("local:1", {"local": 1}),
        ("local:12", {"local": 12}),
        ("tls://h:1", {"address": "tls://h:1"}),
        (tmp_path / "scheduler.json", {"scheduler_file": str(tmp_path / "scheduler.json")}),
        (theirs, {"address": theirs}),
    ):
        assert _address(where) == options
    for where in ("local", "local:0", "local:-1", "remote:2", "", tmp_path / "none.json"):
        with pytest.raises(UsageError, match=r"must be tcp://HOST:PORT"):
            _address(where)
