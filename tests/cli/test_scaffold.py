"""What `banditlab new` writes works as it stands, and nothing is overwritten."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from banditlab.checks import check_file
from banditlab.cli.scaffold import new_agent, new_env, new_lab, next_steps
from banditlab.errors import UsageError
from banditlab.registry import lab_around


def failures(file: Path) -> list[str]:
    results = list(check_file(file))
    assert any(result.status == "passed" for result in results)
    return [str(result) for result in results if result.status == "failed"]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home") / "my lab"
    new_lab(folder)
    return folder


def test_a_new_lab_has_four_rooms_with_a_readme_each(tmp_path: Path) -> None:
    made = new_lab(tmp_path / "lab")
    files = sorted(str(path.relative_to(tmp_path / "lab")) for path in made)
    assert files == [
        "agents/README.md",
        "agents/greedy-logistic.py",
        "agents/greedy-plain.py",
        "analysis/README.md",
        "analysis/first.py",
        "envs/README.md",
        "envs/clusters.py",
        "lab.toml",
        "runs/.gitignore",
        "runs/README.md",
        "runs/first.toml",
    ]
    assert all(path.read_text().strip() for path in made)
    assert not [path for path in made if "$" in path.read_text()]


def test_the_first_agent_and_environment_pass_their_checks(lab: Path) -> None:
    assert failures(lab / "agents" / "greedy-plain.py") == []
    assert failures(lab / "agents" / "greedy-logistic.py") == []
    assert failures(lab / "envs" / "clusters.py") == []


@pytest.mark.slow
def test_the_first_sweep_is_a_valid_one(lab: Path) -> None:
    code = (
        "from banditlab.registry import registry; registry().open_lab('.');"
        "from banditlab.engine import Sweep, read_spec;"
        "plan = Sweep(read_spec('runs/first.toml')).plan; print(len(plan.runs), len(plan.skipped))"
    )
    # Another process: this one's registry is not to know the lab.
    out = subprocess.run([sys.executable, "-c", code], cwd=lab, capture_output=True, text=True, check=True)
    assert out.stdout.split() == [str(2 * 8 * 5), "0"]


def test_the_readmes_speak_of_files_that_are_there(lab: Path) -> None:
    assert "runs/first.toml" in (lab / "runs" / "README.md").read_text()
    assert "first.py" in (lab / "analysis" / "README.md").read_text()


def test_new_agent_goes_to_the_labs_folder(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab)
    file = new_agent("my-agent2")
    assert file == Path("agents/my-agent2.py")
    text = file.read_text()
    assert "class MyAgent2(Agent):" in text
    assert 'id = "my-agent2"' in text
    assert failures(file) == []
    compiled = new_agent("my-agent3", compiled=True)
    assert "class MyAgent3(KernelAgent):" in compiled.read_text()


def test_new_env_goes_to_the_labs_folder(lab: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lab)
    file = new_env("two_moons")
    assert file == Path("envs/two_moons.py")
    assert 'id = "lab/TwoMoons-v0"' in file.read_text()
    assert failures(file) == []


def test_without_a_lab_files_go_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert new_agent("mine") == Path("mine.py")
    assert new_env("ours") == Path("ours.py")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.py", "ours.py"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("mine")
    with pytest.raises(UsageError) as caught:
        new_agent("mine", tmp_path)
    assert str(caught.value) == f"{file}: the file exists; nothing was written"
    assert file.read_text() == "mine"


def test_a_lab_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "first.toml").write_text("mine")
    with pytest.raises(UsageError, match=r"first\.toml: the file exists; nothing was written$"):
        new_lab(tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["runs", "first.toml"]


def test_a_lab_fits_into_a_folder_that_holds_other_things(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    new_lab(tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError) as caught:
        new_lab(tmp_path / "file")
    assert str(caught.value).endswith("lab.toml: cannot be written (File exists)")


@pytest.mark.parametrize("name", ["", "1st", "a b", "../x", "a/b", "-a", "a-", "a--b", "a.py", "$x", "é"])
@pytest.mark.parametrize("make", [new_agent, new_env])
def test_a_bad_name_is_refused(tmp_path: Path, make: object, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        make(name, tmp_path)  # type: ignore[operator]
    expected = "must be letters and digits, in parts joined by single dashes or underscores, and begin with a letter"
    assert str(caught.value) == f"the name {name!r} {expected}"
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        new_agent("banditron", tmp_path)
    assert str(caught.value) == "the name 'banditron' is taken: 'banditron' is already among the agents of banditlab"


@pytest.mark.parametrize("name", ["none", "None", "true"])
def test_a_name_that_python_keeps_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=f"gives the class {name.capitalize()}, a keyword of Python"):
        new_agent(name, tmp_path)


@pytest.mark.parametrize("name", ["class", "import"])
def test_a_keyword_makes_a_file_that_parses(tmp_path: Path, name: str) -> None:
    ast.parse(new_agent(name, tmp_path).read_text())


def test_the_lab_is_found_from_the_folder_one_stands_in(lab: Path, tmp_path: Path) -> None:
    assert lab_around(lab) == lab.resolve()
    assert lab_around(lab / "runs") == lab.resolve()
    assert lab_around(tmp_path) is None


def test_next_steps_are_commands_that_name_files_of_the_lab(lab: Path) -> None:
    commands = [line.partition("#")[0].split() for line in next_steps(lab).splitlines() if line.startswith("  ")]
    assert [words[:2] for words in commands][1:] == [
        ["banditlab", "check"],
        ["banditlab", "run"],
        ["banditlab", "run"],
        ["banditlab", "new"],
    ]
    named = [word for words in commands for word in words if word.endswith((".py", ".toml"))]
    assert len(named) == 3
    assert all((lab / word).is_file() for word in named)
