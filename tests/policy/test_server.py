"""The server: its endpoints, limits, token; one commit for what comes together; a graceful stop."""

from __future__ import annotations

import asyncio
import importlib
import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from banditlab import Policy
from banditlab.errors import UsageError

WHY = "the extra serve, and httpx, which tests ask it with"
for module in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(module, reason=WHY)
httpx: Any = pytest.importorskip("httpx", reason=WHY)
server: Any = importlib.import_module("banditlab.policy.server")
make_app, serve, host_of = server.make_app, server.serve, server.host_of

ROW = {"plan": "pro", "age": 31, "visits": 2.0}
TOKEN = "a token of some length"


class Client:
    """Asks an application in this process, from start to end of its life."""

    def __init__(self, app: Any) -> None:
        self.loop, self.life = asyncio.Runner(), app.router.lifespan_context(app)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://testserver")

    def __enter__(self) -> Client:
        self.loop.run(self.life.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.run(self.http.aclose())
        self.loop.run(self.life.__aexit__(None, None, None))
        self.loop.close()

    def get(self, path: str, **given: Any) -> Any:
        return self.loop.run(self.http.get(path, **given))

    def post(self, path: str, **given: Any) -> Any:
        return self.loop.run(self.http.post(path, **given))


@pytest.fixture
def policy(policy_file: Path, tmp_path: Path) -> Policy:
    return Policy.open(policy_file, tmp_path / "events.db")


@pytest.fixture
def client(policy: Policy) -> Iterator[Client]:
    with Client(make_app(policy, hosts=("testserver",))) as client:
        yield client


def test_a_row_gets_a_choice_and_the_choice_its_feedback(client: Client, policy: Policy) -> None:
    choice = client.post("/decide", json={"row": ROW}).json()
    assert set(choice) == {"id", "action", "probability", "scores"}
    assert client.post("/feedback", json={"id": choice["id"], "correct": True}).json() == {"accepted": 1}
    again = client.post("/feedback", json={"id": choice["id"], "correct": True})
    assert (again.status_code, "already" in again.json()["error"]) == (409, True)
    assert client.post("/feedback", json={"id": "x", "correct": True}).status_code == 404
    assert client.post("/feedback", json={"id": choice["id"], "correct": "no"}).status_code == 400
    told = client.get("/policy").json()
    assert (told["decisions"], told["feedback"]) == (1, 1)
    assert told["columns"] == {"plan": ["free", "pro", "team"], "age": "numeric", "visits": "numeric"}


def test_batches(client: Client) -> None:
    found = client.post("/decide", json={"rows": [ROW] * 3, "allowed": ["call"]}).json()["choices"]
    assert [c["action"] for c in found] == ["call"] * 3
    answers = [{"id": c["id"], "correct": False} for c in found] + [{"id": "x", "correct": True}]
    told = client.post("/feedback", json={"feedback": answers}).json()
    assert told["accepted"] == 3
    assert told["refused"] == [{"id": "x", "error": "no decision has the id 'x'"}]
    numbers = client.get("/metrics").text
    assert "banditlab_decisions_total 3.0" in numbers
    assert 'banditlab_feedback_total{correct="false"} 3.0' in numbers


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/decide", {}, 400),
        ("/decide", {"row": ROW, "rows": [ROW]}, 400),
        ("/decide", {"row": {"plan": "pro"}}, 400),
        ("/decide", {"row": [1]}, 400),
        ("/decide", {"rows": ROW}, 400),
        ("/decide", {"row": ROW, "allow": []}, 400),
        ("/decide", {"row": ROW, "allowed": ["other"]}, 400),
        ("/decide", {"rows": [ROW] * 1001}, 413),
        ("/feedback", {"id": "x"}, 400),
        ("/feedback", {"feedback": [["x", True]]}, 400),
        ("/feedback", {"feedback": "x"}, 400),
        ("/feedback", {"feedback": [{"id": "x", "correct": True}] * 1001}, 413),
    ],
)
def test_what_is_wrong_is_told(client: Client, path: str, body: Any, status: int) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert client.get("/policy").json()["decisions"] == 0


def test_bodies_that_are_none(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = {"Content-Type": "application/json"}
    for content in (
        b"",
        b"{",
        b"[" * 100_000,
        b"7",
        b'{"row": NaN',
        b"\xff\xfe",
        b'{"row": {"age": ' + b"9" * 5000 + b"}}",
    ):
        assert client.post("/decide", content=content, headers=kind).status_code == 400
    assert client.post("/decide", content=b"x" * (2**20 + 1), headers=kind).status_code == 413
    assert (
        client.post("/decide", content=json.dumps({"row": ROW}), headers={"Content-Type": "text/plain"}).status_code
        == 415
    )
    assert client.get("/decide").status_code == 405
    assert client.get("/nothing").status_code == 404


def test_a_page_of_somebody_else_reaches_nothing(client: Client) -> None:
    assert client.post("/decide", json={"row": ROW}, headers={"Host": "evil.example"}).status_code == 421
    assert [host_of(h) for h in ("a:1", "[::1]:80", "LOCALHOST", "")] == ["a", "::1", "localhost", ""]


def test_a_token_is_asked_for(policy: Policy) -> None:
    with Client(make_app(policy, token=TOKEN)) as client:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": TOKEN}, {"Authorization": "Basic é"}):
            given = {name: value.encode() for name, value in headers.items()}
            answer = client.post("/decide", json={"row": ROW}, headers=given)
            assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
            assert client.get("/metrics", headers=given).status_code == 401
        assert {client.get(path).status_code for path in ("/health", "/ready")} == {200}
        assert (
            client.post("/decide", json={"row": ROW}, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        )


def test_openapi_and_the_page(client: Client) -> None:
    told = client.get("/openapi.json").json()
    assert set(told["paths"]) == {"/decide", "/feedback", "/policy", "/health", "/ready", "/metrics"}
    row = told["paths"]["/decide"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]["row"]
    assert set(row["properties"]) == {"plan", "age", "visits"}
    page = client.get("/")
    assert "POST a row" in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_requests_that_come_together_share_a_commit(policy: Policy) -> None:
    commits, store = [], policy._log
    assert store is not None
    append = store.append
    store.append = lambda events: (commits.append(len(events)), append(events))[1]  # type: ignore[method-assign, func-returns-value]
    app = make_app(policy)

    async def ask() -> list[int]:
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://here") as client,
        ):
            answers = await asyncio.gather(*(client.post("/decide", json={"row": ROW}) for _ in range(40)))
            return [answer.status_code for answer in answers]

    assert asyncio.run(ask()) == [200] * 40
    assert sum(commits) == 40
    assert len(commits) < 20


def test_a_full_disk_is_503_until_there_is_room(client: Client, policy: Policy) -> None:
    store = policy._log
    assert store is not None
    waiting = client.post("/decide", json={"row": ROW}).json()["id"]
    store._run("PRAGMA max_page_count = 1")
    found = [client.post("/decide", json={"row": ROW}).status_code for _ in range(60)]
    assert found[-1] == 503
    assert client.get("/health").status_code == 200
    before = client.get("/policy").json()["decisions"]
    store._run("PRAGMA max_page_count = 1000000")
    assert client.post("/decide", json={"row": ROW}).status_code == 200
    assert client.post("/feedback", json={"id": waiting, "correct": True}).status_code == 200
    assert client.get("/policy").json()["decisions"] == before + 1 == found.count(200) + 2


def test_ready_says_whether_a_decision_could_be_stored_and_health_whether_the_process_answers(
    client: Client, policy: Policy
) -> None:
    assert client.get("/ready").json() == {"status": "ready"}
    store = policy._log
    assert store is not None
    store._run("PRAGMA query_only = ON")
    assert client.get("/ready").status_code == 503
    assert client.post("/decide", json={"row": ROW}).status_code == 503
    assert client.get("/health").json() == {"status": "ok"}
    store._run("PRAGMA query_only = OFF")
    assert client.get("/ready").status_code == 200
    assert client.post("/decide", json={"row": ROW}).status_code == 200


def test_a_log_that_hangs_is_answered_in_time(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEADLINE", 0.3)
    hold, append = threading.Event(), policy._log.append  # type: ignore[union-attr]
    monkeypatch.setattr(policy._log, "append", lambda events: (hold.wait(60), append(events)))
    with Client(make_app(policy)) as client:
        for path, status in (("/decide", 503), ("/ready", 503), ("/policy", 503), ("/health", 200)):
            answer = client.post(path, json={"row": ROW}) if path == "/decide" else client.get(path)
            assert (path, answer.status_code) == (path, status)
        hold.set()
    assert policy.describe()["decisions"] == 1  # the first was being stored; the others had not begun, and never did


@pytest.mark.slow
def test_sigterm_ends_a_server_whose_log_hangs(policy_file: Path, tmp_path: Path) -> None:
    code = (
        "import time\nfrom banditlab import Policy\nfrom banditlab.policy.server import serve\n"
        f"policy = Policy.open({str(policy_file)!r}, {str(tmp_path / 'events.db')!r})\n"
        "policy._log.append = lambda events: time.sleep(600)\nserve(policy, port=0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        asking = threading.Thread(target=lambda: httpx.post(f"{url}/decide", json={"row": ROW}, timeout=30))
        asking.start()
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)
        assert time.monotonic() - begin < 10
        assert process.returncode == 1
        assert "acknowledged requests are in the log" in complaints
        asking.join()
    finally:
        process.kill()


def test_only_this_machine_is_served_without_a_token(policy_file: Path) -> None:
    policy = Policy.load(policy_file)
    with pytest.raises(UsageError, match=r"--host 0\.0\.0\.0: .*set a token"):
        serve(policy, host="0.0.0.0", port=0)
    for token in ("x" * 15, "é" * 16, "x" * 16 + "\n"):
        with pytest.raises(UsageError, match="16 printable characters"):
            serve(policy, host="203.0.113.7", token=token)
    with pytest.raises(UsageError, match=r"--host 203\.0\.113\.7 --port 8080: "):
        serve(policy, host="203.0.113.7", token="x" * 16)  # no address of this machine


@pytest.mark.slow
def test_curl_asks_and_sigterm_stops(policy_file: Path, tmp_path: Path) -> None:
    log = tmp_path / "events.db"
    command = [sys.executable, "-m", "banditlab", "serve", str(policy_file), "--log", str(log), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert shutil.which("curl"), "curl is not installed"
        post = ["curl", "-sS", "-H", "Content-Type: application/json", "-d"]
        out = subprocess.run(
            [*post, json.dumps({"row": ROW}), f"{url}/decide"], capture_output=True, text=True, check=True
        )
        choice = json.loads(out.stdout)
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "another process writes to this log" in second.stderr
        assert second.stderr.count("\n") == 1
    finally:
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (0, "")
    with Policy.open(policy_file, log) as policy:
        policy.feedback(choice["id"], True)
        assert policy._kept == 1


# -------------------------------------------------------------------------------------------------------- edges and numbers


def test_bodies_and_batches_up_to_their_limits(
    policy_file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BANDITLAB_MAX_BATCH", "3")
    monkeypatch.setenv("BANDITLAB_MAX_BODY_BYTES", "400")
    with Client(make_app(Policy.open(policy_file, tmp_path / "l.db"))) as client:
        kind = {"Content-Type": "application/json; charset=utf-8"}
        assert client.post("/decide", json={"rows": [ROW] * 3}).status_code == 200
        assert client.post("/decide", json={"rows": [ROW] * 4}).status_code == 413
        body = json.dumps({"row": ROW})
        for length, status in ((400, 200), (401, 413)):
            answer = client.post("/decide", content=body.ljust(length), headers=kind)
            assert (answer.status_code, answer.headers.get("Connection") == "close") == (status, status == 413)
        assert client.post("/decide", content=b"x" * 400, headers=kind).status_code == 400
        assert client.post("/decide", content="[]", headers=kind).json() == {"error": "the body must be a JSON object"}
        told = client.post("/feedback", json={"feedback": [{"id": "x", "correct": True, "more": 1}]})
        assert (told.status_code, told.json()["error"]) == (400, 'feedback must be an object with "id" and "correct"')
        for room, status in ((2**25, 200), (2**25 + 1, 503)):  # large bodies together take at most 32 MiB
            monkeypatch.setattr(server, "SMALL", len(body) - room)
            assert client.post("/decide", content=body, headers=kind).status_code == status


def test_lists_and_large_bodies_wait_for_their_turn_and_small_ones_do_not(policy: Policy, monkeypatch: Any) -> None:
    for name, value in (("BODIES", 1), ("BATCHES", 0), ("DEADLINE", 0.3)):
        monkeypatch.setattr(server, name, value)
    row, rows = json.dumps({"row": ROW}), json.dumps({"rows": [ROW]})
    with Client(make_app(policy)) as client:
        for body, length, why in (
            (row, 8192, "action"),
            (rows, 0, "too many large requests at a time"),
            (row, 8193, "too many large requests at a time"),
            (row, 8194, "large requests already take 1 bytes"),
        ):
            answer = client.post("/decide", content=body.ljust(length), headers={"Content-Type": "application/json"})
            assert (answer.status_code, why in answer.text) == (200 if why == "action" else 503, True)


def test_the_page_is_open_to_all_and_a_token_s_kind_is_written_in_any_way(policy: Policy) -> None:
    with Client(make_app(policy, token=TOKEN)) as client:
        assert client.get("/").status_code == 200
        assert client.get("/policy").status_code == 401
        for kind in ("bearer", "BEARER"):
            given = {"Authorization": f"{kind} {TOKEN} "}
            assert client.get("/policy", headers=given).status_code == 200
        assert client.get("/openapi.json", headers=given).json()["security"] == [{"token": []}]


def test_seconds_and_requests_are_counted(client: Client) -> None:
    client.post("/decide", json={"row": ROW})
    client.get("/nothing")
    numbers = dict(line.rsplit(" ", 1) for line in client.get("/metrics").text.splitlines() if line[0] != "#")
    assert float(numbers['banditlab_requests_total{path="/decide",status="200"}']) == 1.0
    for sum_ in ('banditlab_request_seconds_sum{path="/decide"}', "banditlab_commit_seconds_sum"):
        assert 0.0 < float(numbers[sum_]) < 60.0
    edges = [
        line.split('le="')[1].split('"')[0] for line in numbers if line.startswith("banditlab_commit_seconds_bucket")
    ]
    assert [float(edge) for edge in edges] == [
        *(0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, float("inf"))
    ]


def test_what_an_error_is_answered_with() -> None:
    from banditlab.errors import LogError, UnknownDecisionError

    for error, status, text in (
        (UnknownDecisionError("it has its feedback already"), 409, "it has its feedback already"),
        (UnknownDecisionError("no decision"), 404, "no decision"),
        (UsageError("a  b\nc"), 400, "a b c"),
        (LogError("full"), 503, "full"),
        (RuntimeError("odd"), 500, "odd"),
        (RuntimeError(), 500, "RuntimeError"),
    ):
        found = server.refusal(error)
        assert (found.status, str(found)) == (status, text)


def test_silence_is_closed_by_the_server_and_a_later_answer_is_409_and_counted(
    policy_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(server, "CLOSING", 0.001)
    policy = Policy.open(policy_file, tmp_path / "events.db", unanswered="wrong", after="1 h")
    with Client(make_app(policy)) as client:
        one, other = (client.post("/decide", json={"row": ROW}).json()["id"] for _ in range(2))
        client.post("/feedback", json={"id": other, "correct": True})
        now[0] += 3601.0
        while not policy.describe()["closed"]:  # no request comes
            client.loop.run(asyncio.sleep(0.001))
        for correct in (True, False):
            late = client.post("/feedback", json={"id": one, "correct": correct})
            assert late.status_code == 409
            assert "already closed as wrong, because there was no feedback within 1 h" in late.json()["error"]
        assert client.post("/feedback", json={"id": other, "correct": True}).status_code == 409
        told = client.get("/policy").json()
        assert (told["feedback"], told["closed"], told["late"], told["right"]) == (1, 1, 2, 1)
        assert (told["unanswered"], told["after"]) == ("wrong", "1 h")
        numbers = client.get("/metrics").text
        assert 'banditlab_late_feedback_total{correct="true"} 1.0' in numbers
        assert 'banditlab_feedback_total{correct="true"} 1.0' in numbers
