"""The errors of a plug-in on the page "Fix a plug-in" each give one message, which the page shows word for word."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from banditlab.checks import check_file
from banditlab.cli.checking import print_checks
from banditlab.errors import UsageError

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "how-to" / "mend-a-plug-in.md").read_text(encoding="utf-8")
AGENT, ENV = "own-agent.md", "own-environment.md"
LINE = "            self.W[k] += sign * context\n"
ERRORS = [
    (AGENT, "rng, *, gamma", "rng, gamma", "the setting 'gamma' is not keyword-only"),
    (AGENT, "gamma: float = 0.05", "gamma=0.05", "the setting 'gamma' has no annotation"),
    (AGENT, 'probability("gamma", gamma)', "gamma", "gamma = -1 was accepted"),
    (AGENT, "self.rng.random(2)", "np.random.default_rng().random(2)", "two runs from one seed differ"),
    (AGENT, "return Decision(action, p)", "return action", "act returned a int"),
    (AGENT, "+= 1.0 - self.gamma", "+= 1.0", "the probabilities sum to 1.05"),
    (AGENT, "    explores = False\n", "", "explored is None"),
    (AGENT, "return Decision(action, p)", "return Decision(action + 1, p)", "the action is 3"),
    (AGENT, LINE, f"{LINE}        self.rounds = getattr(self, 'rounds', 0) + 1\n", "created after the constructor"),
    (AGENT, "        super().__init__(problem, rng)\n", "", "it has no problem"),
    (ENV, '"lab/Moons-v0"', '"Moons"', "id is 'Moons'"),
    (ENV, "radius=4.0", "radius=1.0", "it must be at most R = 1"),
    (ENV, "streams.contexts.random(size)", "np.random.default_rng().random(size)", "two episodes from one seed differ"),
    (ENV, "), y\n", "), y + 1\n", "returned the label 2"),
]
"""The tutorial whose plug-in gets the error, a text of it, what stands in its place, a part of the page's message."""


def plugin(page: str) -> str:
    """Return the first Python file that a tutorial writes."""
    text = (DOCS / "tutorials" / page).read_text(encoding="utf-8")
    return re.findall(r"<!-- file: \S+\.py -->\n```python\n(.*?)```", text, re.DOTALL)[0]


@pytest.mark.parametrize("page", [AGENT, ENV])
def test_what_the_tutorials_write_passes_at_once(page: str, tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(plugin(page), encoding="utf-8")
    results = list(check_file(file))
    assert [str(result) for result in results if result.status == "failed"] == []
    assert sum(result.status == "passed" for result in results) >= 12


@pytest.mark.parametrize(("page", "old", "new", "part"), ERRORS, ids=[part for _, _, _, part in ERRORS])
def test_an_error_gives_one_message(page: str, old: str, new: str, part: str, tmp_path: Path, capsys) -> None:
    file = tmp_path / "p.py"
    assert old in plugin(page)
    file.write_text(plugin(page).replace(old, new), encoding="utf-8")
    assert print_checks(str(file), settings=[]) == 1
    [failed] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("failed")]
    [message] = [found for found in re.findall(r"^\|.*\| `([^`]*)` \|$", PAGE, re.MULTILINE) if part in found]
    assert re.search(re.escape(message).replace(r"\.\.\.", ".*") + "$", failed), failed


def test_the_page_has_no_other_message() -> None:
    assert len(re.findall(r"^\|.*\| `[^`]*` \|$", PAGE, re.MULTILINE)) == len(ERRORS)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer: Windows")
@pytest.mark.parametrize(
    "loop", ["while True:\n    pass\n", "while True:\n    try:\n        pass\n    except Exception:\n        pass\n"]
)
@pytest.mark.few(1)
@pytest.mark.slow
def test_a_file_whose_import_never_ends_is_given_up(loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDITLAB_PLUGIN_SECONDS", "1")
    file = tmp_path / "p.py"
    file.write_text(f"{plugin(AGENT)}\n{loop}", encoding="utf-8")
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(UsageError, match=r"its import did not end within 1 s \(BANDITLAB_PLUGIN_SECONDS\)"):
        check_file(file)
    assert signal.getsignal(signal.SIGALRM) is before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_function_is_no_plug_in(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text("def mine(problem, rng):\n    return None\n\n\nmine.id = 'mine'\n", encoding="utf-8")
    with pytest.raises(UsageError, match="with an id; mine is a function: a plug-in is a class"):
        check_file(file)


def test_a_class_to_derive_from_is_left_alone_and_an_unfinished_one_is_not(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    base = "\n\nclass Base(Agent):\n    pass\n"
    file.write_text(plugin(AGENT) + base, encoding="utf-8")
    assert [r for r in check_file(file) if r.status == "failed"] == []
    file.write_text(plugin(AGENT) + base.replace("pass", 'id = "base"'), encoding="utf-8")
    [failed] = [r for r in check_file(file) if r.status == "failed"]
    assert failed.reason.startswith("does not define act, learn: write")
