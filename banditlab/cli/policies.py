"""Policies on the command line: train one, serve it, ask how it does."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from banditlab.cli.plain import plain
from banditlab.distributions import refuse_without
from banditlab.engine.spec import settings_of
from banditlab.errors import UsageError


def train(
    data: Path,
    label: str,
    out: Path,
    agent: str,
    settings: list[str],
    best_of: Path | None,
    seed: int,
    table: dict[str, Any],
) -> None:
    """Train a policy, write it, and say how it went."""
    from banditlab.policy.training import summary_line
    from banditlab.policy.training import train as train_

    if not out.absolute().parent.is_dir():
        raise UsageError(f"-o {out}: there is no folder {out.parent}")
    policy = train_(
        data, label, out=out, agent=agent, settings=settings_of(settings), best_of=best_of, seed=seed, **table
    )
    typer.echo(plain(summary_line(policy.describe()["trained"])))
    typer.echo(f"written to {out}; next: banditlab serve {shlex.quote(str(out))} --log events.db")


def serve(
    policy: Path, log: str, host: str, port: int, token_file: Path | None, person: str, extra: str, **rule: Any
) -> None:
    """Serve a policy until the process is asked to stop."""
    refuse_without("serve", "starlette", "uvicorn", "prometheus_client")
    from banditlab.policy.policy import Policy
    from banditlab.policy.server import serve as serve_

    warnings.showwarning = _notice
    warnings.simplefilter("always", RuntimeWarning)
    token = _token(token_file)
    rule["extra"] = extra
    opened = Policy.open(policy, log, person=person, **rule) if log else Policy.load(policy, **rule)
    if not log:
        typer.echo("notice: without --log decisions and answers are gone when the process ends", err=True)
    with opened:
        serve_(opened, host=host, port=port, token=token)


def _token(file: Path | None) -> str:
    if file is None:
        return os.environ.get("BANDITLAB_TOKEN", "")
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--token-file {file}: cannot be read ({getattr(error, 'strerror', None) or 'no text'})"
        ) from None
    if not lines or not lines[0].strip():
        raise UsageError(f"--token-file {file}: its first line is empty")
    return lines[0].strip()


def _notice(message: Warning | str, *_: Any, **__: Any) -> None:
    print(plain(f"notice: {' '.join(str(message).split())}"), file=sys.stderr, flush=True)


def print_log_status(log: str, picture: Path | None, verify: bool) -> None:
    """Print what a log says of its policy; check all of it and draw it if asked to."""
    from banditlab.policy.picture import draw_status
    from banditlab.policy.status import status_of_log, verify_log

    if verify:
        typer.echo(f"verified: {verify_log(log):,} events, none missing, each with its checksum")
    status = status_of_log(log)
    for line in status.lines():
        typer.echo(plain(line))
    if picture is not None:
        draw_status(status, picture)
        typer.echo(f"drawn: {picture}")


def prune(log: str, before: str) -> None:
    """Remove a log's events before a date."""
    from banditlab.policy.policy import Policy

    try:
        date = datetime.fromisoformat(before)
    except ValueError:
        raise UsageError(f"--before {before}: must be a date, for instance 2026-01-31") from None
    with Policy.resume(log) as policy:
        count = policy.prune(date.replace(tzinfo=date.tzinfo or UTC))
    typer.echo(f"{log}: {count:,} decisions removed")


def forget(log: str, person: str) -> None:
    """Blank the contexts of one person's decisions."""
    from banditlab.policy.policy import Policy

    key, sign, value = person.partition("=")
    if not sign:
        raise UsageError(f"{person}: must be KEY=VALUE, for instance customer=4711")
    with Policy.resume(log) as policy:
        count = policy.forget(key, value)
    typer.echo(f"{log}: the contexts of {count:,} decisions blanked")
