"""What a release is made of agrees with pyproject.toml and with .ci: workflows, recipe, citation, hooks, RELEASING.md."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from banditlab.distributions import NAME, VERSION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ON_CONDA_FORGE = {"matplotlib": "matplotlib-base"}
"""Dependencies that conda-forge has under another name; matplotlib there brings a graphical toolkit."""


def loaded(name: str) -> Any:
    """Return what a YAML file of the repository holds."""
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_version_stands_in_one_place() -> None:
    texts = ["pyproject.toml", "CITATION.cff", "RELEASING.md", "docs/conf.py", *(str(file) for file in WORKFLOWS)]
    assert [name for name in texts if VERSION in (ROOT / name).read_text("utf-8")] == []
    assert re.search(rf"^## {re.escape(VERSION)} \(", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)


def test_condas_recipe_has_the_dependencies_of_the_package() -> None:
    recipe = loaded("conda/recipe.yaml")
    expected = {f"python {PROJECT['requires-python']}"}
    for need in PROJECT["dependencies"]:
        name, least = re.fullmatch(r"([\w-]+)(>=[\d.]+)", need).groups()  # type: ignore[union-attr]
        expected.add(f"{ON_CONDA_FORGE.get(name, name)} {least}")
    assert set(recipe["requirements"]["run"]) == expected
    assert recipe["package"]["name"] == NAME
    [entry] = PROJECT["scripts"].items()
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(entry)]


def test_the_citation_names_the_authors_and_the_licence_of_the_package() -> None:
    citation = loaded("CITATION.cff")
    assert citation["authors"] == PROJECT["authors"]
    assert citation["license"] == PROJECT["license"]


def test_the_tests_run_on_three_systems_and_four_pythons() -> None:
    matrix = loaded(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix == {
        "os": ["ubuntu-latest", "macos-latest", "windows-latest"],
        "python": ["3.11", "3.12", "3.13", "3.14"],
    }


def test_a_release_is_published_without_a_stored_token() -> None:
    publish = loaded(".github/workflows/release.yml")["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["needs"] == "build"
    assert not any("secrets." in file.read_text("utf-8") for file in WORKFLOWS)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_workflows_ask_for_no_more_than_they_need(file: Path) -> None:
    """A step that writes asks for it in its own job."""
    assert yaml.safe_load(file.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_hooks_and_workflows_check_what_ci_checks() -> None:
    """The same three commands; the hooks get the names of the changed files."""
    ci = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    [local] = loaded(".pre-commit-config.yaml")["repos"]
    hooks = [hook["entry"].replace(" --force-exclude", "") for hook in local["hooks"]]
    lint = loaded(".github/workflows/tests.yml")["jobs"]["lint"]["steps"][-1]["run"].split(" && ")
    assert [command.removesuffix(" .") for command in lint] == hooks
    assert set(lint) <= set(ci)
    assert ".ci/release" in ci


def test_files_that_the_release_speaks_of_are_there() -> None:
    files = [ROOT / "RELEASING.md", ROOT / ".ci" / "release", ROOT / ".github" / "pull_request_template.md", *WORKFLOWS]
    for file in files:
        named = re.findall(
            r"(?<![\w/.])((?:\.ci|\.github|banditlab|conda|docs|tests)/[\w./-]*\w)", file.read_text("utf-8")
        )
        assert [name for name in named if not (ROOT / name).exists()] == [], file
