"""What is handed out: a wheel and an sdist with the package and nothing else, and a clone that shadows nothing."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import banditlab
from banditlab import distributions

ROOT = Path(banditlab.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CACHES = {"__pycache__", ".mypy_cache", ".ruff_cache"}
BESIDE = ["pyproject.toml", "README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE", ".gitignore"]
DECOYS = [
    "tests/test_a.py",
    "agents/mine.py",
    "envs/mine.py",
    "runs/a.toml",
    "runs/results/a/runs.parquet",
    "analysis/a.py",
    "benchmarks/a.py",
    "docs/a.md",
    "results/a/report.html",
    "build/lib/banditlab/old.py",
    ".venv/lib/python3/site-packages/a.py",
    ".ci/run",
    "banditlab/agents/__pycache__/banditron.cpython-311.pyc",
    "banditlab/agents/banditron.act_kernel-1.py311.nbi",
    "banditlab/agents/banditron.act_kernel-1.py311.1.nbc",
]
"""Files that lie about in a checkout and are in no wheel."""


def files_of_the_package() -> set[str]:
    """Return every file under banditlab/ but caches, with its path from the root."""
    found = (file.relative_to(ROOT) for file in (ROOT / "banditlab").rglob("*") if file.is_file())
    return {file.as_posix() for file in found if not CACHES & set(file.parts)}


def test_the_package_knows_its_name_and_the_build_reads_its_version() -> None:
    assert PROJECT["project"]["name"] == distributions.NAME
    assert "version" not in PROJECT["project"]
    text = (ROOT / PROJECT["tool"]["hatch"]["version"]["path"]).read_text("utf-8")
    assert re.findall(r'^VERSION = "(.*)"$', text, re.MULTILINE) == [banditlab.__version__]  # what hatchling looks for


def test_git_ignores_no_room_of_the_package() -> None:
    """`results/` in .gitignore would take banditlab/results/ out of commits, of the wheel and of the sdist."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no git checkout")
    folders = {ROOT / "banditlab" / room for room in ("build", "dist", "results", "runs")}
    folders |= {(ROOT / file).parent for file in files_of_the_package()}
    paths = [str(folder.relative_to(ROOT) / "new.py") for folder in sorted(folders)]
    said = subprocess.run(["git", "check-ignore", *paths], cwd=ROOT, capture_output=True, text=True)
    assert (said.returncode, said.stdout) == (1, ""), said.stdout + said.stderr
    caches = ["banditlab/results/__pycache__/a.pyc", "results/a/runs.parquet", "runs/results/a", "dist/a.whl"]
    said = subprocess.run(["git", "check-ignore", *caches], cwd=ROOT, capture_output=True, text=True)
    assert said.stdout.split() == caches


def test_a_clone_shadows_nothing(tmp_path: Path) -> None:
    """In the folder that holds a clone, `import banditlab` finds the installed package, not the clone's folder."""
    try:
        importlib.metadata.distribution(distributions.NAME)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed here, only found by its path")
    (tmp_path / "banditlab").symlink_to(ROOT, target_is_directory=True)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "from banditlab import Problem; import banditlab; print(banditlab.__file__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("__init__.py"), done.stdout


TEXTS = (".md", ".py", ".toml", ".txt", ".j2", ".js", ".yml", ".cfg", ".cff", ".html", "run")
FOREIGN = re.compile(r"""pip install [^\n&;|#]*(?<![\w./-])banditlab(?![\w/-])|["'`]banditlab\[\w""")


def test_nobody_is_told_to_install_the_other_package() -> None:
    """On PyPI, `banditlab` is another project."""
    folders = [
        ROOT / name
        for name in ("banditlab", "tests", "docs", "audits", "benchmarks", "analysis", "agents", "envs", "runs")
    ]
    files = [file for folder in [*folders, ROOT / ".ci"] for file in folder.rglob("*") if not CACHES & set(file.parts)]
    files = [file for file in [*files, *ROOT.glob("*")] if file.is_file() and file.name.endswith(TEXTS)]
    assert len(files) > 500
    for line in ("pip install -U banditlab", 'pip install "banditlab[serve]"', "needs 'banditlab[peers]'"):
        assert FOREIGN.search(line), line
    assert not FOREIGN.search("pip install dist/banditlab-0.1.0.whl && pip install -e .")
    found = [
        f"{file}: {line}" for file in files for line in file.read_text("utf-8").splitlines() if FOREIGN.search(line)
    ]
    own = [line for line in found if line.startswith(f"{Path(__file__)}: ")]
    assert sorted(set(found) - set(own)) == []


# ----------------------------------------------------------------------------------------------- two distributions, one folder


def wheel(folder: Path, name: str, files: dict[str, str]) -> None:
    """Install a made distribution into a folder, as pip does with a wheel: its files, and the record of them."""
    record = "".join(f"{path},,\n" for path in [*files, f"{name}-1.1.0.dist-info/RECORD"])
    for path, text in {**files, f"{name}-1.1.0.dist-info/RECORD": record}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with this package, installed as `onebit-bandits`."""
    shutil.copytree(ROOT / "banditlab", tmp_path / "banditlab", ignore=shutil.ignore_patterns(*CACHES))
    wheel(tmp_path, "onebit_bandits", {path: (ROOT / path).read_text() for path in ("banditlab/__init__.py",)})
    return tmp_path


def version_in(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(site)}
    env.pop("BANDITLAB_LOOKED_FOR_OTHERS", None)
    return subprocess.run([sys.executable, "-P", *command], cwd=site, capture_output=True, text=True, env=env)


SCRIPT = ("-c", "import sys; from banditlab.cli.main import main; sys.argv = ['banditlab', '--version']; main()")
IMPORT = ("-c", "import banditlab; import banditlab.errors; print('banditlab', banditlab.__version__)")


@pytest.mark.parametrize("command", [SCRIPT, IMPORT])
@pytest.mark.parametrize("name", ["banditlab", "somebody_elses"])
def test_another_distribution_in_our_folder_is_reported_in_one_line(site: Path, command: Any, name: str) -> None:
    wheel(site, name, {"banditlab/bandits.py": "", "elsewhere.py": ""})
    done = version_in(site, *command)
    assert done.stdout == f"banditlab {banditlab.__version__}\n"
    assert done.stderr.splitlines() == [
        f"banditlab: {name} has written into this package's folder, {site / 'banditlab'}; to repair it: pip uninstall "
        f"{name}, then reinstall onebit-bandits with pip install --force-reinstall"
    ]


def test_it_is_reported_where_its_front_door_has_replaced_ours(site: Path) -> None:
    wheel(site, "banditlab", {"banditlab/__init__.py": "__all__ = []\n"})
    done = version_in(site, *SCRIPT)
    assert done.stdout == f"banditlab {banditlab.__version__}\n"
    assert len(done.stderr.splitlines()) == 1
    assert "pip uninstall banditlab" in done.stderr


@pytest.mark.parametrize("command", [SCRIPT, IMPORT])
def test_other_distributions_are_not_reported(site: Path, command: Any) -> None:
    wheel(site, "banditlab_extras", {"banditlab_extras/__init__.py": "", "docs/banditlab/a.txt": ""})
    (site / "without_record-1.0.dist-info").mkdir()
    os.makedirs(site / "folder-1.0.dist-info" / "RECORD")
    if hasattr(os, "mkfifo"):
        os.makedirs(site / "pipe-1.0.dist-info")
        os.mkfifo(site / "pipe-1.0.dist-info" / "RECORD")
    for name in ("~nebit_bandits", "Onebit.Bandits"):
        wheel(site, name, {"banditlab/errors.py": (site / "banditlab" / "errors.py").read_text()})
    assert version_in(site, *command).stderr == ""


def test_a_zipped_package_is_imported(tmp_path: Path) -> None:
    shutil.make_archive(str(tmp_path / "zipped"), "zip", ROOT, "banditlab")
    env = os.environ | {"PYTHONPATH": str(tmp_path / "zipped.zip")}
    done = subprocess.run([sys.executable, "-P", *IMPORT], cwd=tmp_path, capture_output=True, text=True, env=env)
    assert (done.stdout, done.stderr) == (f"banditlab {banditlab.__version__}\n", "")


def test_children_do_not_repeat_the_report(site: Path) -> None:
    wheel(site, "banditlab", {"banditlab/bandits.py": ""})
    code = f"import banditlab, subprocess, sys; subprocess.run([sys.executable, *{list(IMPORT)!r}])"
    assert version_in(site, "-c", code).stderr.count("has written into") == 1


# ------------------------------------------------------------------------------------------------------- wheel and sdist


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of what is packaged, among files that are not to be."""
    folder = tmp_path_factory.mktemp("packaging") / "checkout"
    shutil.copytree(ROOT / "banditlab", folder / "banditlab", ignore=shutil.ignore_patterns(*CACHES))
    for name in BESIDE:
        shutil.copy(ROOT / name, folder / name)
    for decoy in DECOYS:
        (folder / decoy).parent.mkdir(parents=True, exist_ok=True)
        (folder / decoy).write_text("lies about\n")
    return folder


def build(folder: Path, out: Path, *options: str) -> None:
    pytest.importorskip("build", reason="build comes with the extra build")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), *options, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def wheel_of(out: Path) -> zipfile.ZipFile:
    (file,) = out.glob("*.whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def built(checkout: Path) -> Path:
    """Return the folder with the sdist and the wheel that is made from it."""
    out = checkout.parent / "from the sdist"
    build(checkout, out)
    return out


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    names = {name for name in wheel_of(built).namelist() if ".dist-info/" not in name}
    assert names == files_of_the_package()
    assert {"banditlab/py.typed", "banditlab/results/__init__.py", "banditlab/cli/templates/agent.py.txt"} <= names
    assert "banditlab/analysis/templates/report.html.j2" in names


@pytest.mark.slow
def test_the_wheel_says_what_it_is(built: Path) -> None:
    wheel = wheel_of(built)
    info = f"onebit_bandits-{banditlab.__version__}.dist-info"
    metadata = wheel.read(f"{info}/METADATA").decode()
    assert f"\nVersion: {banditlab.__version__}\n" in metadata
    for extra in PROJECT["project"]["optional-dependencies"]:
        assert f"\nProvides-Extra: {extra}\n" in metadata
    assert "banditlab = banditlab.cli.main:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert f"{info}/licenses/LICENSE" in wheel.namelist()


@pytest.mark.slow
def test_the_sdist_holds_what_the_wheel_needs_and_nothing_else(built: Path) -> None:
    (file,) = built.glob("*.tar.gz")
    with tarfile.open(file) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names == files_of_the_package() | {*BESIDE, "PKG-INFO"}


@pytest.mark.slow
def test_the_sdist_and_the_checkout_make_the_same_wheel(checkout: Path, built: Path) -> None:
    out = checkout.parent / "from the checkout"
    build(checkout, out, "--wheel")
    one, other = wheel_of(built), wheel_of(out)
    assert sorted(one.namelist()) == sorted(other.namelist())
    assert all(one.read(name) == other.read(name) for name in one.namelist())
