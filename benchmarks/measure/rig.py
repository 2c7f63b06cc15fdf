"""A Dask scheduler and workers in processes of their own, to be killed; in namespaces of their own if wanted."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

NETWORK = "10.77.19"
QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "2s",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
}
"""As docs/cluster.md has workers started: they only wait, and need not be looked after."""
OWN_ROOT = 'mount -t tmpfs tmpfs /mnt && mount -t tmpfs tmpfs "$HIDDEN" && cd /mnt && exec "$@"'


class Rig:
    """A scheduler on loopback and workers, each with its own working folder and temporary folder, one thread, and a nanny.

    Parameters
    ----------
    folder
        Where logs, the scheduler file and the workers' folders go.
    apart
        Whether each worker lives in a network and a mount namespace of its own: home, cache and temporary folders in its own
        memory, `hidden` out of sight, a TCP connection to the scheduler and nothing else. Takes root and Linux.
    hidden
        The folder workers apart must not see, where the driver keeps its files.
    """

    def __init__(self, folder: Path, *, apart: bool = False, hidden: Path | None = None) -> None:
        self.folder, self.apart, self.hidden = folder, apart, hidden
        self.environment, self.options = dict(QUIET), list[str]()
        self.file, self.port = folder / "scheduler.json", "0"
        self.host = f"{NETWORK}.1" if apart else "127.0.0.1"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.names: list[str] = []
        if apart:
            self._forget("link", "banditlab")  # of one that was killed
            self._ip("link", "add", "banditlab", "type", "bridge")
            self._ip("addr", "add", f"{self.host}/24", "dev", "banditlab")
            self._ip("link", "set", "banditlab", "up")

    def start(self, workers: int = 2) -> Rig:
        """Start a scheduler and so many workers, w0, w1, ..."""
        self.scheduler()
        for number in range(workers):
            self.worker(f"w{number}")
        return self

    def scheduler(self) -> None:
        """Start a scheduler, at the port of the one before if there was one, and wait until it can be reached."""
        self.file.unlink(missing_ok=True)
        place = ["--host", self.host, "--port", self.port, "--scheduler-file", str(self.file)]
        self._run("scheduler", "scheduler", *place)
        until = time.monotonic() + 60
        while not self.file.exists():
            if time.monotonic() > until:
                raise TimeoutError(f"{self.folder}/scheduler.log")
            time.sleep(0.05)
        self.port = self.address.rpartition(":")[2]

    def worker(self, name: str) -> None:
        """Start a worker."""
        if name not in self.names:
            self.names.append(name)
            if self.apart:
                self._wire(name)
        place = Path("/mnt") if self.apart else self.folder / name
        if not self.apart:
            (place / "tmp").mkdir(parents=True, exist_ok=True)
        options = ["--nworkers", "1", "--nthreads", "1", "--local-directory", str(place), "--name", name]
        self._run("worker", name, self.address, *options)

    @property
    def address(self) -> str:
        """Where the scheduler can be reached."""
        return str(json.loads(self.file.read_text())["address"])

    def mend(self) -> None:
        """Start whoever is missing."""
        for name, process in list(self.processes.items()):
            if process.poll() is not None:
                self.kill(name)
        if "scheduler" not in self.processes:
            self.scheduler()
        for name in [name for name in self.names if name not in self.processes]:
            self.worker(name)

    def kill(self, name: str) -> None:
        """Kill a process with its children, and wait for it."""
        process = self.processes.pop(name)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a process and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.processes[name].pid, number)

    def players(self, name: str) -> list[int]:
        """Return the processes beside a worker that play its tasks."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                number = int(entry.name)
                if os.getpgid(number) == self.processes[name].pid and b"popen_loky" in (entry / "cmdline").read_bytes():
                    found.append(number)
        return found

    def cut(self, name: str, *, off: bool) -> None:
        """Cut a worker's network, or mend it."""
        self._ip("link", "set", f"bl-{name}", "down" if off else "up")

    def end(self) -> None:
        """Kill everything."""
        for name in list(self.processes):
            self.kill(name)
        if self.apart:
            for name in self.names:  # the cable, too: a process on its way out may hold the namespace for a moment
                for kind in ("link", "netns"):
                    self._forget(kind, f"bl-{name}")
            self._forget("link", "banditlab")

    def _wire(self, name: str) -> None:
        number = len(self.names) + 1
        for kind in ("link", "netns"):
            self._forget(kind, f"bl-{name}")
        self._ip("netns", "add", f"bl-{name}")
        self._ip("link", "add", f"bl-{name}", "type", "veth", "peer", "name", "inside", "netns", f"bl-{name}")
        self._ip("link", "set", f"bl-{name}", "master", "banditlab", "up")
        self._ip("-n", f"bl-{name}", "addr", "add", f"{NETWORK}.{number}/24", "dev", "inside")
        for device in ("lo", "inside"):
            self._ip("-n", f"bl-{name}", "link", "set", device, "up")

    @staticmethod
    def _forget(kind: str, name: str) -> None:
        """Delete a link or a namespace, if there is one."""
        subprocess.run(["ip", kind, "del", name], check=False, stderr=subprocess.DEVNULL)

    @staticmethod
    def _ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True)

    def _run(self, role: str, name: str, *arguments: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}", *arguments, "--no-dashboard", *self.options]
        environment = os.environ | self.environment
        if role == "worker" and self.apart:
            environment |= dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "TEMP", "TMP"), "/mnt")
            environment |= {"HIDDEN": str(self.hidden or self.folder)}
            environment.pop("NUMBA_CACHE_DIR", None)
            inside = ["ip", "netns", "exec", f"bl-{name}", "unshare", "--mount", "bash", "-c", OWN_ROOT, "worker"]
            command = [*inside, *command]
        elif role == "worker":
            environment |= {"TMPDIR": str(self.folder / name / "tmp")}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
