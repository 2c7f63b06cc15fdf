"""`banditlab new`: create a lab, an agent or an environment. No file is overwritten."""

from __future__ import annotations

import keyword
import re
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template

from banditlab.errors import UsageError
from banditlab.registry import MARK, registry

FIRST_AGENT = "greedy-plain"
COMPILED_AGENT = "greedy-logistic"
FIRST_ENV = "clusters"


def next_steps(folder: str | Path) -> str:
    """Return the next commands for a new lab, with their purposes."""
    steps = [
        (f"cd {shlex.quote(str(folder))}", "commands find the lab from this folder and its subfolders"),
        (f"banditlab check agents/{FIRST_AGENT}.py", "check the agent; change it, and check again"),
        ("banditlab run runs/first.toml --dry-run", "print the planned runs of the first sweep"),
        ("banditlab run runs/first.toml", "run it, print a ranked table and write report.html"),
        ("banditlab new agent NAME", "write another example; with --compiled it is many times faster"),
    ]
    width = max(len(command) for command, _ in steps)
    return "\n".join(["", "Next:", *(f"  {command:{width}}  # {why}" for command, why in steps)])


def new_lab(folder: str | Path) -> list[Path]:
    """Create agents/, envs/, runs/ and analysis/ in `folder`, each with a README and a first example; return the files.

    The first agent is plain Python, and the second is the same agent compiled. `lab.toml` marks the folder as a lab.

    Raises
    ------
    UsageError
        A file exists (nothing is written then), or the folder cannot be written.
    """
    lab = Path(folder)
    agent, compiled, env = _agent_names(FIRST_AGENT), _agent_names(COMPILED_AGENT), _env_names(FIRST_ENV)
    names = {"agent_id": agent["id"], "agent_file": f"{FIRST_AGENT}.py"}
    names |= {"compiled_id": compiled["id"], "compiled_file": f"{COMPILED_AGENT}.py"}
    names |= {"env_id": env["id"], "env_file": f"{FIRST_ENV}.py"}
    texts = {
        lab / MARK: _filled("lab.toml", {}),
        lab / "agents" / f"{FIRST_AGENT}.py": _filled("plain_agent.py", agent),
        lab / "agents" / f"{COMPILED_AGENT}.py": _filled("agent.py", compiled),
        lab / "envs" / f"{FIRST_ENV}.py": _filled("env.py", env),
        lab / "runs" / "first.toml": _filled("first.toml", names),
        lab / "runs" / ".gitignore": "results/\n",
        lab / "analysis" / "first.py": _filled("analysis.py", {"name": "first"}),
    }
    texts |= {lab / room / "README.md": _filled(f"{room}.md", {}) for room in ("agents", "envs", "runs", "analysis")}
    return _write(texts)


def new_agent(name: str, folder: str | Path = ".", *, compiled: bool = False) -> Path:
    """Write a working agent, in plain Python or with compiled kernels, to agents/NAME.py, or to NAME.py if there is no
    folder agents/.

    Raises
    ------
    UsageError
        The name is not an identifier (dashes are allowed) or is taken, or the file exists.
    """
    template = "agent.py" if compiled else "plain_agent.py"
    return _write({_place(folder, "agents", name): _filled(template, _agent_names(name))})[0]


def new_env(name: str, folder: str | Path = ".") -> Path:
    """Write a working environment to envs/NAME.py, or to NAME.py if there is no folder envs/.

    Raises
    ------
    UsageError
        The name is not an identifier (dashes are allowed) or is taken, or the file exists.
    """
    return _write({_place(folder, "envs", name): _filled("env.py", _env_names(name))})[0]


def _agent_names(name: str) -> dict[str, str]:
    return _unused("agents", name, {"id": name, "class_name": _class_name(name)})


def _env_names(name: str) -> dict[str, str]:
    class_name = _class_name(name)
    return _unused("envs", name, {"id": f"lab/{class_name}-v0", "class_name": class_name})


def _class_name(name: str) -> str:
    """Return a name as the name of a class: "my-agent" becomes "MyAgent"."""
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*", name):
        raise UsageError(
            f"the name {name!r} must be letters and digits, in parts joined by single dashes or underscores, "
            "and begin with a letter"
        )
    class_name = "".join(part[0].upper() + part[1:] for part in re.split("[-_]", name))
    if keyword.iskeyword(class_name):
        raise UsageError(f"the name {name!r} gives the class {class_name}, a keyword of Python; choose another name")
    return class_name


def _unused(kind: str, name: str, names: dict[str, str]) -> dict[str, str]:
    for entry in registry().entries(kind):
        if entry.id == names["id"]:
            raise UsageError(f"the name {name!r} is taken: {entry.id!r} is already among the {kind} of {entry.origin}")
    return names


def _place(folder: str | Path, room: str, name: str) -> Path:
    home = Path(folder)
    return (home / room if (home / room).is_dir() else home) / f"{name}.py"


def _filled(template: str, names: dict[str, str]) -> str:
    text = files("banditlab.cli").joinpath("templates", f"{template}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(names)


def _write(texts: dict[Path, str]) -> list[Path]:
    """Write all files, or none if one of them exists."""
    for path in texts:
        if path.exists():
            raise UsageError(f"{path}: the file exists; nothing was written")
    for path, text in texts.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    return list(texts)
