"""What is told of made-up results, which is on record: `python -m tests.analysis.report_record` writes it anew.

The text and the data of a report's page, its tables, what is exported for papers, a board's data.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from unittest.mock import patch

import numpy as np

from banditlab.analysis import papers, write_report
from banditlab.analysis.board import write_board
from banditlab.results.store import Store
from tests.analysis.conftest import Folder

PLACE = Path(__file__).parent / "told"
NOON = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC).timestamp()
DIGITS, LOGISTIC = "banditlab/Digits-v0", "banditlab/Logistic-v0(n_classes=3)"


class Text(HTMLParser):
    """The text of a page, a line for each element that has some, and the data in it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.inside: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self.inside]
        if "style" in tags or "svg" in tags:
            return
        if tags[-1:] == ["script"]:
            if self.inside[-1][1].get("type") == "application/json":
                self.lines.append(json.dumps(json.loads(data), indent=1, ensure_ascii=False))
        elif line := " ".join(data.split()):
            self.lines.append(line)


def wave(repetition: int, seed: int) -> float:
    """A number about 0 for each repetition."""
    return float(np.random.default_rng([seed, repetition]).normal())


def everyday(folder: Folder) -> None:
    """Two environments; players over gamma and B, with bounds in nats and bits, vacuous or not; forecasters; a reference."""
    for e, environment in enumerate((DIGITS, LOGISTIC)):
        for r in range(5):
            for j, B in enumerate((1.0, 3.0, 10.0)):
                curve = np.sqrt(np.array(folder.checkpoints) / 1000) * (90 - 25 * j + 3 * wave(r, j) + 10 * e)
                folder.add_comparator(r, B, curve, environment=environment, gap=1e-4)
            for i, gamma in enumerate((0.03, 0.1, 0.3)):
                for B in (1.0, 3.0):
                    shares = (np.array(folder.checkpoints) / 1000) ** (0.8 - 0.05 * i) * (
                        300 + 40 * i - 10 * B + 4 * wave(r, i)
                    )
                    folder.add_run(
                        "exploration(ogd)",
                        r,
                        shares,
                        mistakes=shares + 3 * wave(r, 90),
                        environment=environment,
                        written={"gamma": gamma, "norm_bound": B},
                        bound=np.array(folder.checkpoints) ** 0.5 * 12,
                        bound_unit="nats",
                        explored=1000 * gamma,
                        seconds=0.03,
                    )
                folder.add_run(
                    "gaptron",
                    r,
                    350.0 + 30 * i + 6 * wave(r, 9 + i),
                    environment=environment,
                    bound=700.0 + e,
                    written={"gamma": gamma},
                    bound_unit="bits",
                    explored=1000 * gamma,
                    seconds=0.0041,
                )
            folder.add_run(
                "fastcb",
                r,
                302.0 + 5 * wave(r, 20),
                environment=environment,
                bound=1e6,
                bound_unit="nats",
                resolved={"norm_bound": 3.0},
                seconds=0.9,
            )
            folder.add_run(
                "uniform", r, 900.0 + wave(r, 21) - 233 * e, environment=environment, seconds=1e-4, explored=1000.0
            )
            folder.add_run(
                "ftrl",
                r,
                140.0 + wave(r, 22),
                environment=environment,
                kind="label",
                written={"norm_bound": 3.0},
                bound=80.0,
                bound_unit="nats",
                expected_kind="conditional",
            )
            folder.add_run(
                "ogd", r, 190.0 + wave(r, 23), environment=environment, kind="label", written={"norm_bound": 10.0}
            )
            folder.add_run("adaboost", r, 222.0 + wave(r, 24), environment=environment, kind="reference", seconds=0.2)
    folder.groups = {"gaptron": "theory", "fastcb": "practice", "adaboost": "reference"}
    folder.skipped = [{"environment": DIGITS, "player": "soba", "reason": "its state does not fit"}]


def of_a_table(folder: Folder) -> None:
    """A table whose rows are shown again and again: a memoriser, an honest player, one that is worse than a constant."""
    for r in range(4):
        for label, share, seed in (("memory", 0.55, 1), ("honest", 0.4, 2), ("hopeless", 0.7, 3), ("close", 0.41, 4)):
            run = folder.add_run(
                label,
                r,
                1000 * share * (0.5 if label == "memory" else 1.0),
                written={"gamma": 0.1},
                explored=600.0 if label == "hopeless" else 50.0,
            )
            rows = np.clip(share + 0.15 * np.random.default_rng([seed, r]).normal(size=400), 0, 1)
            for row in folder.rows[run]:
                first = min(row["round"], 400)
                wrong = float(rows.mean()) * first
                row |= {
                    "first_sight_rounds": first,
                    "first_sight_mistakes": round(wrong),
                    "row_losses": None,
                    "first_sight_expected_mistakes": wrong,
                    "constant_mistakes": row["round"] * 3 // 5,
                    "first_sight_constant_mistakes": first * 3 // 5,
                    "mistakes_variance": 0.2 * row["round"],
                }
            folder.rows[run][-1]["row_losses"] = np.stack([rows, np.ones(400)]).astype("<f4").tobytes()
        folder.add_comparator(r, 10.0, 380.0 + r)
    folder.data = {"Toy-v0": {"rows": 400, "features": 7, "classes": 5, "largest": 0.4}}


def troubled(folder: Folder) -> None:
    """Runs that are missing or failed, one repetition only, equal players, no comparator."""
    for label in ("banditron", "soba"):
        folder.add_run(label, 0, 431.5, seconds=2.0)
    folder.add_run("linucb", 0, 1000.0, written={"confidence": 0.25})


def made(place: Path) -> dict[str, Path]:
    """Write the results folders; return where they are."""
    first = Folder(place / "everyday", rounds=1000, repetitions=5, norm_bounds=(1.0, 3.0, 10.0))
    everyday(first)
    second = Folder(place / "table", rounds=1000, repetitions=4, norm_bounds=(10.0,))
    of_a_table(second)
    third = Folder(place / "troubled", rounds=1000, repetitions=1, norm_bounds=())
    troubled(third)
    folders = {
        "everyday": first.write(),
        "table": second.write(),
        "troubled": third.write(plan=[*third.rows, "f" * 32, "e" * 32]),
    }
    failed = {"environment": "Toy-v0", "player": "newtron", "repetition": 0, "settings": {"gamma": "0.1"},
              "error": "ValueError: no", "traceback": "Traceback: no", "facts": {}}  # fmt: skip
    Store(folders["troubled"]).write_failure("f" * 32, failed)
    return folders


def plainly(text: str, place: Path) -> str:
    """Return text without this machine's folder, its numbers of eight digits at most."""

    def shorter(found: re.Match[str]) -> str:
        return f"{float(found[0]):.8g}"

    text = re.sub(r"-?\d+\.\d{7,}(?:e[+-]?\d+)?", shorter, text.replace(str(place), "PLACE"))
    return text.rstrip() + "\n"


def told() -> dict[str, str]:
    """Return all that is told of the folders, by the name it has on record."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name).resolve()
        folders = made(place)
        for kind, folder in folders.items():
            page = Text()
            page.feed(write_report(folder).read_text("utf-8"))
            found[f"{kind}.page.txt"] = plainly("\n".join(page.lines), place)
            tables = sorted((folder / "tables").glob("*.csv"))
            found[f"{kind}.tables.txt"] = plainly(
                "\n".join(f"== {file.name}\n{file.read_text('utf-8')}" for file in tables), place
            )
            with patch.object(papers, "_figures", lambda *_: []):  # they are on record by themselves
                written = sorted(each for each in papers.export(folder, formats=("latex",)) if each.suffix == ".tex")
            found[f"{kind}.papers.txt"] = plainly(
                "\n".join(f"== {file.name}\n{file.read_text('utf-8')}" for file in written), place
            )
        for folder in folders.values():  # a board says of which day a sweep is
            os.utime(folder / "runs.json", (NOON, NOON))
        page = Text()
        page.feed(write_board(list(folders.values()), place / "board.html").read_text("utf-8"))
        found["board.txt"] = plainly("\n".join(page.lines), place)
    return found


def main() -> None:
    """Write what is told anew."""
    PLACE.mkdir(exist_ok=True)
    for old in PLACE.iterdir():
        old.unlink()
    for name, text in told().items():
        (PLACE / name).write_text(text, encoding="utf-8", newline="\n")
        print(name, len(text))


if __name__ == "__main__":
    main()
