"""A Dask cluster: tasks as futures, files as bytes, rows back; this process alone writes the results folder.

What can go wrong, and who deals with it:

* A run ends its process, hangs, or takes all memory: the processes beside the worker (`remote`) show it, as on one machine.
* A worker or its machine is gone: Dask gives its task to another. After some losses Dask gives the task up; then its runs are
  tried one at a time with nothing else in the cluster, and one that loses its workers then, too, is recorded as failed.
* A worker no longer answers, or Dask has paused it: what it has is sent to another as well; whatever comes back first counts,
  rows are written once.
* The scheduler is gone: its successor at the same address is waited for and sent everything that is left.
* Nothing moves for `patience` seconds, or workers only die: one line, and what is finished is stored.

Not by joblib's Dask backend: a future that fails there is never told of, and the sweep would wait for ever.
"""

from __future__ import annotations

import contextlib
import pickle
import queue
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from banditlab.engine.executors import remote
from banditlab.engine.executors.executor import Executor, State, Told
from banditlab.engine.executors.freight import Freight, package_digest
from banditlab.engine.executors.link import ANSWER, Link
from banditlab.engine.plan import Run
from banditlab.engine.work import Outcome, Task, facts, store_failure
from banditlab.errors import ClusterError
from banditlab.results.incoming import DamagedError, take
from banditlab.results.store import Store

TICK = 0.5
"""Seconds after which the watcher is told that time has passed."""
LOOK = 1.0
"""Seconds between two looks at the cluster; of many workers a look takes longer, and comes less often."""
HELLO = 60.0
"""Seconds new workers have for importing the package and saying what they are."""
SLOWEST = 2.0**22
"""Bytes a second that go to workers at least; a file that takes longer is sent again, and its runs fail in the end."""
FROZEN = 30.0
"""Seconds without a heartbeat after which a worker gets no tasks, and those it has go to others as well."""
IN_FLIGHT = 2
"""Tasks a thread that are sent at a time: that many results at most wait to be fetched."""
LOSSES = 4
"""Workers that die one after the other while a run is all there is in the cluster, before it is recorded as failed."""
STORM = 20
"""Workers, beside two for every one there is, that may be lost between two results."""
TRIES = 5
"""How often a task may come back without any result before its runs are recorded as failed."""
GOODBYE = 10.0
"""Seconds workers have for sending what is finished when the sweep ends early."""
AGAIN = "finished runs are stored, the same command does the rest"


@dataclass
class _Flight:
    task: Task
    future: Any
    alone: bool = False
    only: frozenset[str] = frozenset()
    """The workers that may do it, none for any."""
    there: frozenset[str] = frozenset()
    """The workers that had its files when it was sent."""
    deaths: int = 0
    """How many workers had been lost when it was sent."""


class Cluster(Executor):
    """Does tasks by the workers of a Dask cluster.

    Parameters
    ----------
    where
        tcp://HOST:PORT, tls://HOST:PORT, a scheduler file, "local:N", a `distributed.Client` or a Dask cluster object.
    store
        The results folder, written here only.
    patience
        Seconds in which something must move.

    Raises
    ------
    UsageError
        No such address, or `distributed` is not installed.
    ClusterError
        Nobody answers there, or no worker comes up that has this package.
    """

    remote = True

    def __init__(self, where: Any, store: Store, patience: float) -> None:
        super().__init__(1)
        self.store, self.patience = store, patience
        self.sweep = uuid.uuid4().hex[:12]
        self.freight = Freight()
        self.queue, self.suspects = deque[Task](), deque[Task]()
        self.flying: dict[str, _Flight] = {}
        self.arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.losses, self.tries = Counter[str](), Counter[str]()
        self.sent = 0
        self.workers: dict[str, int] = {}  # threads of those that are there, by address
        self.places: dict[str, str] = {}  # the folder of each, which no other has
        self.heartbeats: dict[str, tuple[Any, float]] = {}
        self.paused: set[str] = set()  # those that begin nothing, and play nothing
        self.admitted: set[str] = set()
        self.greeting: set[str] = set()  # those that were asked what they are
        self.greeted: queue.SimpleQueue[tuple[list[str], dict[str, Any]]] = queue.SimpleQueue()
        self.refused: dict[str, str] = {}  # why a worker gets no tasks
        self.deaths = self.deaths_since = self.most = 0
        self.looked, self.pause = -1e9, LOOK
        self.again = False  # whether all that is under way was sent a second time since something moved
        self.heard = self.moved = time.monotonic()
        self.where, self.link = where, Link(where, patience)
        self.client = self.link.client
        self._said: set[str] = set()
        try:
            self._wait_for_the_first()
        except BaseException:
            self.close()
            raise
        if dashboard := self.link.dashboard():
            self._say(f"dashboard: {dashboard}")

    # --------------------------------------------------------------------------------------------------------- the interface

    def _take(self, task: Task) -> None:
        self.queue.append(task)

    def state(self) -> State:
        """Return how many workers there are, how many tasks were sent, and how many workers were lost."""
        return State(len(self._good()), len(self.flying), self.deaths)

    def _done(self) -> Iterator[Told]:
        told = time.monotonic()
        self.moved = told
        try:
            while self.queue or self.flying or self.suspects:
                self._look()
                self._send()
                for future in self._arrivals(TICK):
                    for each in self._received(future):
                        told = time.monotonic()
                        yield each
                if time.monotonic() - told > TICK:
                    told = time.monotonic()
                    yield [], None
        finally:
            if self.flying:
                self._rescue()

    def close(self) -> None:
        """Cancel what is left and leave the cluster; one that was started here ends."""
        super().close()
        for flight in self.flying.values():
            with contextlib.suppress(Exception):
                flight.future.release()  # not cancel, which waits for an answer
        self.flying.clear()
        self.link.close()

    # ------------------------------------------------------------------------------------------------------ looking at it

    def _wait_for_the_first(self) -> None:
        """Wait until a worker is there that has this package."""
        while not self._good():
            why = "; ".join(dict.fromkeys(self.refused.values()))
            if self.refused and len(self.refused) == len(self.workers):
                raise ClusterError(f"{self.link.name}: {why}")
            if time.monotonic() - self.moved > self.patience and not self.greeting:
                why = why or "no worker has come up"
                raise ClusterError(f"{self.link.name}: no worker to play on within {self.patience:g} s ({why})")
            time.sleep(0.05)
            self._look()
        self.moved = time.monotonic()

    def _good(self) -> list[str]:
        """Return the addresses of the workers that get tasks."""
        frozen = self._frozen()
        return [each for each in self.workers if each in self.admitted and each not in frozen]

    def _frozen(self) -> set[str]:
        # as of the last answer: heartbeats are not seen between two looks
        return {address for address, (_, since) in self.heartbeats.items() if self.heard - since > FROZEN}

    def _look(self) -> None:
        """Ask the scheduler who is there and what is being worked on, and raise a ClusterError where nothing moves."""
        now = time.monotonic()
        if now - self.looked < self.pause:
            return
        if now - self.looked > self.pause + max(self.patience, ANSWER):
            # This process was held up, by Ctrl-Z or its disk: what was meanwhile is not known.
            self.heard = self.moved = now
        self.client = self.link.restored()
        found, busy = self.link.ask("identity"), self.link.ask("processing")
        self.looked = time.monotonic()
        self.pause = LOOK
        if found is None or busy is None:
            if self.looked - self.heard > self.patience:
                silent = f"the scheduler has not answered for {self.patience:g} s"
                raise ClusterError(f"{self.link.name}: {silent}; {AGAIN}")
            return
        self.heard = self.looked
        self.pause = max(LOOK, min(10 * (self.looked - now), self.patience / 4))
        self._note_workers(found["workers"])
        self._free_orphans()
        self._free_frozen(busy)
        self._watch(busy)

    def _note_workers(self, found: dict[str, Any]) -> None:
        places = {address: each.get("local_directory", "") for address, each in found.items()}
        # Where ports are given, one that starts again has the address of the one that died, and none of its files.
        gone = {address for address, place in self.places.items() if places.get(address) != place}
        self.places = places
        self.deaths += len(gone)
        self.deaths_since += len(gone)
        for address in gone:
            self.admitted.discard(address)
            self.refused.pop(address, None)
            self.heartbeats.pop(address, None)
        self.workers = {address: int(each["nthreads"]) for address, each in found.items()}
        self.paused = {address for address, each in found.items() if _is_paused(each)}
        for address, each in found.items():
            beat = self.heartbeats.get(address)
            if beat is None or (beat[0] != each["last_seen"] and address not in self.paused):
                self.heartbeats[address] = each["last_seen"], time.monotonic()
        known = self.admitted | self.refused.keys() | self.greeting
        self._greet([address for address in found if address not in known])
        with contextlib.suppress(queue.Empty):
            while True:
                self._admit(*self.greeted.get_nowait())
        self.most = max(self.most, len(self.workers))
        self.jobs = max(1, sum(self.workers[address] for address in self._good()))

    def _greet(self, new: list[str]) -> None:
        """Ask new workers what they are. They import the package then, for seconds, and nobody else waits for that."""
        if new:
            self.greeting |= set(new)
            threading.Thread(target=self._ask_what_they_are, args=(new,), daemon=True).start()

    def _ask_what_they_are(self, new: list[str]) -> None:
        self.greeted.put((new, self.link.run(remote.hello, workers=new, seconds=HELLO)))

    def _admit(self, new: list[str], answers: dict[str, Any]) -> None:
        """Give workers that are as they should be the files that were sent so far; the others get no tasks."""
        self.greeting -= set(new)
        for address, said in answers.items():
            if address not in self.workers:  # gone meanwhile
                continue
            if _is_silence(said):
                continue  # it is asked again
            if not isinstance(said, dict):
                line = " ".join(str(said).split())[:200]
                self._refuse(address, f"a worker cannot import this package ({type(said).__name__}: {line})")
            elif said["package"] != package_digest():
                theirs, ours = (each["packages"]["banditlab"] for each in (said["facts"], facts()))
                differs = f"{theirs}, here {ours}" if theirs != ours else f"{theirs} of other sources than here"
                self._refuse(address, f"a worker has banditlab {differs}; it gets no tasks")
            else:
                if line := differences(said["facts"], facts()):
                    self._say(f"workers differ from here: {line}; the last digits of their numbers may, too")
                self.admitted.add(address)
                if self.freight.parts:
                    self._provide([address], self.freight.parts)

    def _refuse(self, address: str, why: str) -> None:
        self.refused[address] = why
        self.admitted.discard(address)
        self._say(why)

    def _say(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.notices.append(line)

    def _watch(self, busy: dict[str, Any]) -> None:
        now, good = time.monotonic(), self._good()
        if any(key in self.flying for address in good for key in busy.get(address, ())):
            self.moved = now
        if self.moved > now - self.patience / 2:
            self.again = False
        elif not self.again:  # the answers may have been lost with a connection: once more, under other keys
            self.again = True
            for key in list(self.flying):
                self._withdraw(key)
        lost = f"{self.deaths_since} workers were lost since the last result"
        if self.deaths_since > STORM + 2 * self.most:
            raise ClusterError(f"{self.link.name}: {lost}; {AGAIN}")
        if (self.flying or self.queue or self.suspects) and now - self.moved > self.patience:
            there = f"{len(good)} workers are there, {lost}"
            raise ClusterError(f"{self.link.name}: nothing has moved for {self.patience:g} s ({there}); {AGAIN}")

    def _free_orphans(self) -> None:
        """Take back what only workers may do that are gone."""
        for key, flight in list(self.flying.items()):
            if flight.only and not flight.only & self.workers.keys():
                self._withdraw(key)

    def _withdraw(self, key: str) -> None:
        flight = self.flying.pop(key)
        flight.future.release()  # Dask forgets it, and a worker that plays it nevertheless stops
        self._back(flight)

    def _free_frozen(self, busy: dict[str, Any]) -> None:
        """Send what workers have that no longer answer to others, too."""
        for address in self._frozen() & self.workers.keys():
            for key in [key for key in busy.get(address, ()) if key in self.flying]:
                what = "has begun nothing, for want of memory," if address in self.paused else "has not been heard of"
                self._say(f"{address} {what} for {FROZEN:g} s; its tasks go to others")
                self._withdraw(key)

    # ------------------------------------------------------------------------------------------------------------- sending

    def _send(self) -> None:
        good = self._good()
        if not good or self.client.status != "running":
            return
        while self.queue and len(self.flying) < IN_FLIGHT * self.jobs and self._fly(self.queue[0], good):
            self.queue.popleft()
        if self.suspects and not self.queue and not self.flying and self._fly(self.suspects[0], good, alone=True):
            self.suspects.popleft()

    def _fly(self, task: Task, good: list[str], *, alone: bool = False) -> bool:
        """Send a task, and return whether the connection took it."""
        parcel = self._parcel(task)  # which may take a minute
        key = f"banditlab-{self.sweep}-{self.sent}"
        some = good if len(good) < len(self.workers) else []  # anybody, those that are still to come as well
        try:
            future = self.client.submit(remote.played, parcel, key=key, pure=False, workers=some or None)
        except Exception:
            if self.client.status == "running":
                raise
            return False
        self.sent += 1
        self.flying[key] = _Flight(task, future, alone, frozenset(some), frozenset(good), self.deaths)
        future.add_done_callback(self.arrived.put)
        return True

    def _parcel(self, task: Task) -> dict[str, Any]:
        """Return a task as it travels, its files sent ahead."""
        known = set(self.freight.parts)
        for run in task.runs:  # what only this machine may be able to say of it
            _ = run.run_id, run.stream_id, run.description, run.foreign
        paths = [self.freight.of_run(run) for run in task.runs]
        labs = [self.freight.of_lab(lab) for lab in task.labs]
        if new := {key: part for key, part in self.freight.parts.items() if key not in known}:
            self._provide(self._good(), new)
        return {
            "sweep": self.sweep,
            "package": package_digest(),
            "needs": sorted({key for each in paths for key in each.values()} | {key for lab in labs for _, key in lab}),
            "paths": paths,
            "labs": labs,
            "files": self._comparators(task),
            "task": pickle.dumps(task),
        }

    def _comparators(self, task: Task) -> dict[str, bytes]:
        """Return the files of comparators that are there already: what they lack is added."""
        files: dict[str, bytes] = {}
        for run in task.runs:
            if task.comparators or run.adaptive:
                names = self.store.comparator_files(run.stream_id)
                found = {name: data for name in names if (data := self.store.files.data(name)) is not None}
                files |= found if len(found) == len(names) else {}
        return files

    def _provide(self, workers: list[str], parts: dict[str, Any]) -> None:
        """Send files to workers; one that did not get them says so when it is given a task."""
        seconds = HELLO + len(workers) * sum(len(content) for _, content in parts.values()) / SLOWEST
        for address, said in self.link.run(remote.receive, parts, workers=workers, seconds=seconds).items():
            if isinstance(said, Exception) and not _is_silence(said):
                self._refuse(address, f"a worker takes no files ({type(said).__name__}: {said})")

    # ----------------------------------------------------------------------------------------------------------- receiving

    def _arrivals(self, seconds: float) -> Iterator[Any]:
        """Yield futures that are done: those that wait, else the next within so many seconds."""
        with contextlib.suppress(queue.Empty):
            yield self.arrived.get(timeout=seconds)
            for _ in range(IN_FLIGHT * self.jobs):
                yield self.arrived.get_nowait()

    def _received(self, future: Any) -> Iterator[Told]:
        flight = self.flying.get(future.key)
        if flight is None:  # it was sent to another as well
            return
        if future.status == "finished":
            try:
                reply = future.result(timeout=ANSWER)
            except Exception:  # its worker is gone; Dask has it done again
                future.add_done_callback(self.arrived.put)
                return
            del self.flying[future.key]
            yield from self._accept(flight, reply)
        elif future.status == "error":
            del self.flying[future.key]
            yield from self._erred(flight, future.exception())
        elif future.status == "cancelled":  # with the scheduler that knew of it
            del self.flying[future.key]
            self._back(flight)
        else:  # lost before it was fetched
            future.add_done_callback(self.arrived.put)

    def _back(self, flight: _Flight) -> None:
        (self.suspects if flight.alone else self.queue).appendleft(flight.task)

    def _accept(self, flight: _Flight, reply: dict[str, Any]) -> Iterator[Told]:
        """Write what a worker sent, and say what it means; what it did not do goes back."""
        address, task = reply["worker"], flight.task
        self.moved = time.monotonic()
        if reply.get("stranger"):
            self._refuse(address, "a worker has another banditlab than here; it gets no tasks")
            self._back(flight)
            return
        if "missing" in reply:
            self._provide([address], {key: self.freight.parts[key] for key in reply["missing"]})
            if address not in flight.there:
                yield from self._came_later(flight)
            else:
                yield from self._again(flight, f"{address} has not got the files that were sent to it")
            return
        self.deaths_since = 0
        if reply["refused"]:
            self._refuse(address, f"{address}: {reply['refused']}; it gets no tasks")
        runs = {task.id_of(run): run for run in task.runs if task.id_of(run) in self._owed}
        try:
            stored = take(self.store, reply["files"], set(runs))
        except DamagedError as error:
            yield from self._again(flight, f"{error} came damaged from {address}")
            return
        said = {outcome.id: outcome for each in reply["outcomes"] if (outcome := Outcome(*each)).id in runs}
        if task.comparators:  # those that lacked nothing: another process was quicker
            stored |= {id_ for id_ in said if self.store.comparators(id_)[0]}
        done = [each for id_, each in said.items() if each.failure or id_ in stored]
        if not task.comparators:  # a run that was stored in the last moment
            done += [Outcome(id_, runs[id_].rounds, 0.0) for id_ in stored - said.keys()]
        yield done, task
        settled = {outcome.id for outcome in done}
        left = replace(task, runs=tuple(run for id_, run in runs.items() if id_ not in settled))
        if left.runs and done:
            self._back(replace_task(flight, left))
        elif left.runs:
            yield from self._again(replace_task(flight, left), reply["refused"] or f"{address} said nothing of it")

    def _came_later(self, flight: _Flight) -> Iterator[Told]:
        """A worker was given a task before files, which is nobody's doing, unless it stands in for one that died."""
        if flight.alone and self.deaths > flight.deaths:  # one was its worker; others leave for their own reasons
            yield from self._lost(flight.task, 1)
        else:
            self._back(flight)

    def _again(self, flight: _Flight, why: str) -> Iterator[Told]:
        """Put a task back that came to nothing; one that does so again and again is recorded as failed."""
        self.tries[id_ := flight.task.id_of(flight.task.runs[0])] += 1
        if self.tries[id_] < TRIES:
            self._back(flight)
        else:
            yield self._blame(flight.task, f"the cluster gave no result in {TRIES} tries ({why})"), flight.task

    def _erred(self, flight: _Flight, error: BaseException) -> Iterator[Told]:
        from distributed.scheduler import KilledWorker

        if not isinstance(error, KilledWorker):
            yield from self._again(flight, f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
            return
        task = flight.task
        if not flight.alone:
            self.suspects.extend(replace(task, runs=(run,)) for run in task.runs)
        else:
            yield from self._lost(task, error.allowed_failures + 1)

    def _lost(self, task: Task, workers: int) -> Iterator[Told]:
        """Count workers that died while a run was all there was in the cluster, and blame it where they are many."""
        self.losses[id_ := task.id_of(task.runs[0])] += workers
        if self.losses[id_] < LOSSES:
            self.suspects.append(task)
            return
        self.deaths_since = 0  # it was this run, no storm
        why = f"{self.losses[id_]} workers died while it was all there was in the cluster"
        yield self._blame(task, why), task

    def _blame(self, task: Task, why: str) -> list[Outcome]:
        trace = "the worker left no traceback"
        return [store_failure(self.store, run, task.comparators, why, trace) for run in self._runs(task)]

    def _runs(self, task: Task) -> list[Run]:
        return [run for run in task.runs if task.id_of(run) in self._owed]

    def _rescue(self) -> None:
        """The sweep ends early: have workers send what is finished, for some seconds, and store it."""
        if self.client.status != "running":
            return
        self.queue.clear()
        waiting = [flight.future for flight in self.flying.values()]
        self.link.run(remote.stop, self.sweep, workers=self._good(), seconds=GOODBYE)
        until = time.monotonic() + GOODBYE
        while self.flying and time.monotonic() < until and self.client.status == "running":
            busy = self.link.ask("processing") or {}
            begun = {key for keys in busy.values() for key in keys}
            if not (begun & self.flying.keys()) and not any(future.done() for future in waiting):
                break
            for future in self._arrivals(TICK):
                waiting = [each for each in waiting if each.key != future.key]
                with contextlib.suppress(Exception):
                    for _ in self._received(future):
                        pass
            self.queue.clear()


def replace_task(flight: _Flight, task: Task) -> _Flight:
    """Return the flight with another task."""
    return replace(flight, task=task)


def _is_paused(worker: dict[str, Any]) -> bool:
    """Return whether a worker plays nothing and begins nothing, as Dask has it where memory is short: for ever, perhaps."""
    counts = worker.get("metrics", {}).get("task_counts", {})
    return worker.get("status") == "paused" and not (counts.get("executing") or counts.get("long-running"))


def _is_silence(said: Any) -> bool:
    """Return whether a worker's answer is that it could not be reached."""
    return isinstance(said, OSError) and said.errno is None


def differences(theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Return where a worker's versions and processor differ from those here, in a few words; "" where they do not."""
    words = [
        f"{name} {theirs['packages'].get(name)} (here {version})"
        for name, version in ours["packages"].items()
        if theirs["packages"].get(name) != version
    ]
    words += [
        f"{name} {theirs[name]} (here {ours[name]})" for name in ("python", "processor") if theirs[name] != ours[name]
    ]
    return ", ".join(words)
