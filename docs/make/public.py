"""`python -m docs.make.public`: write docs/public-api.txt, a line per public name; tests/docs/test_public.py checks it.

A line begins with its kind. Names and signatures are those of the doors of `docs.make.api`; the rest are interfaces that
Python does not see: spec keys, columns, files, formats, the command line, HTTP, environment variables.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import click
import typer
from sqlalchemy import MetaData

from banditlab.cli.main import app
from banditlab.engine.spec import Block, Settings, Spec
from banditlab.envs import _saved_encoder as encoder
from banditlab.players import player
from banditlab.policy import container, log
from banditlab.policy.openapi import schema as openapi
from banditlab.results import schema
from docs.make.api import DOORS, homes, public_names

FILE = Path(__file__).parents[1] / "public-api.txt"


def lines() -> list[str]:
    """Return the public interface, a line per name."""
    parts = (names, ids, spec_keys, columns, formats, commands, routes, variables)
    return [line for part in parts for line in part()]


def names() -> Iterator[str]:
    """Yield every public class, with its methods and properties, function and constant."""
    for door in DOORS:
        module = importlib.import_module(door)
        for name in public_names(module):
            thing, place = getattr(module, name), f"{door}.{name}"
            if homes()[id(thing)] != door:
                yield f"name {place} = {homes()[id(thing)]}.{name}"
            elif inspect.isclass(thing):
                yield from class_lines(place, thing)
            else:
                yield f"name {place}{signature(thing) if callable(thing) else ''}"


def ids() -> Iterator[str]:
    """Yield the id of every player and environment, with its class."""
    for door in DOORS:
        for kind, classes in getattr(importlib.import_module(door), "BUILT_IN", {}).items():
            for name, (id_, _) in classes.items():
                yield f"id {kind} {id_} = {door}.{name}"


def class_lines(place: str, thing: type) -> Iterator[str]:
    """Yield a class with its constructor, then its members; those of a public base are lines of the base."""
    bases = [base for base in thing.__mro__[1:] if base in public_classes()]
    yield f"name {place}{signature(thing)}" + (f", a {bases[0].__name__}" if bases else "")
    inherited = {name for base in bases for name in dir(base)}
    for name in sorted(set(dir(thing)) - inherited):
        member = inspect.getattr_static(thing, name)
        owner = next(base for base in thing.__mro__ if name in vars(base))
        if name.startswith("_") or not owner.__module__.startswith("banditlab") or inspect.isclass(member):
            continue
        function = getattr(member, "__func__", member)
        yield f"name {place}.{name}{signature(function) if inspect.isfunction(function) else ''}"


@cache
def public_classes() -> set[type]:
    """Return every class that a door has."""
    things = (getattr(module, name) for module in map(importlib.import_module, DOORS) for name in public_names(module))
    return {thing for thing in things if inspect.isclass(thing)}


class Text(str):
    """A text that `inspect` writes without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def signature(thing: Callable[..., Any]) -> str:
    """Return a signature with its defaults and annotations, "" where Python cannot say it."""
    try:
        found = inspect.signature(thing)
    except (ValueError, TypeError):
        return ""

    def text(annotation: Any) -> Any:
        return Text(annotation.strip("\"'")) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=text(p.annotation)) for p in found.parameters.values()]
    whole = found.replace(parameters=parameters, return_annotation=text(found.return_annotation))
    return re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", str(whole))


def spec_keys() -> Iterator[str]:
    """Yield the keys of a spec file with their types and defaults; blocks take their player's settings besides."""
    for prefix, model in (("", Spec), ("[[block]] ", Block), ("[feedback] ", Settings)):
        for name, field in model.model_fields.items():
            default = "" if field.is_required() else f" = {field.get_default()!r}"
            yield f"spec {prefix}{name}: {_type(field.annotation)}{default}"


def columns() -> Iterator[str]:
    """Yield the columns of results.parquet."""
    for name, kind in schema.COLUMNS.items():
        yield f"results.parquet {name}: {kind}"
    yield "results.parquet setting.NAME: double or string"
    yield "results.parquet diagnostic.NAME: double"


def formats() -> Iterator[str]:
    """Yield the numbers of the file formats, and the parts of each file."""
    yield f"format results folder = {schema.FORMAT}: {', '.join(schema.LISTED)}, {schema.SUMS}"
    yield f"format saved player = {player.STATE_FORMAT}: {', '.join(player.Header.model_fields)}"
    yield f"format policy = {container.FORMAT}: {', '.join(container.Head.model_fields)}"
    yield f"format {encoder.FORMAT} = {encoder.VERSION}"
    yield f"format log = {log.FORMAT}"
    tables: MetaData = log.SCHEMA
    for table in tables.tables.values():
        yield f"log {table.name}: {', '.join(column.name for column in table.columns)}"


def commands() -> Iterator[str]:
    """Yield every command with its arguments and options."""
    yield from _commands(typer.main.get_command(app), "banditlab")


def _commands(command: Any, path: str) -> Iterator[str]:
    parts = [
        part.human_readable_name if isinstance(part, click.Argument) else "/".join(part.opts) for part in command.params
    ]
    yield " ".join(["command", path, *parts])
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(inner, f"{path} {name}")


def routes() -> Iterator[str]:
    """Yield every route of the server with the keys of its body and of its answer."""
    described = {"classes": [], "columns": {}, "imputes": False, "extra": "refuse", "agent": ""}
    for path, methods in openapi(described, 1, False)["paths"].items():
        for method, route in methods.items():
            yield f"http {method.upper()} {path}{_keys(route)}"


def _keys(route: dict[str, Any]) -> str:
    if "requestBody" not in route:
        return ""
    body = route["requestBody"]["content"]["application/json"]["schema"]
    answer = route["responses"]["200"]["content"]["application/json"]["schema"]
    return f" {', '.join(body['properties'])} -> {', '.join(answer.get('properties', {}))}"


def variables() -> Iterator[str]:
    """Yield the environment variables of docs/limits.md."""
    page = (FILE.parent / "limits.md").read_text("utf-8")
    for name, default in re.findall(r"^\| `(BANDITLAB_\w+)` \| ([\d,]+) \|", page, re.MULTILINE):
        yield f"variable {name} = {default}"


def _type(annotation: Any) -> str:
    """Return a type as it is written, without the paths of modules and with the limits of Annotated left out."""
    text = annotation.__name__ if inspect.isclass(annotation) and not get_args(annotation) else str(annotation)
    text = re.sub(r"Annotated\[(\w+), FieldInfo\(.*?\)\]\)\]", r"\1", text)
    return re.sub(r"\b(banditlab|typing)(\.\w+)*\.", "", text)


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    print(f"{FILE}: {len(lines())} names")
