"""Policies on the command line: train, serve, and show the status."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from banditlab.cli.plain import plain
from banditlab.distributions import refuse_without
from banditlab.engine.spec import settings_of
from banditlab.errors import UsageError

if TYPE_CHECKING:
    from banditlab.policy import Evaluated

RECIPE = ("scaling", "missing", "max_categories", "roles")
"""Settings of a table that describe its contexts. For a log, only these and those of `FROM_LOG` are allowed."""
FROM_LOG = {"agent", "settings", "seed", "floor", "format", "encoding", "separator"}


def train(data: Path | None, out: Path, schema: Path | None, from_log: str, **options: Any) -> None:
    """Train a policy, or create an untrained one from a schema; write it and print a summary."""
    from banditlab.policy.policy import Policy
    from banditlab.policy.training import summary_line

    if not out.absolute().parent.is_dir():
        raise UsageError(f"-o {out}: the folder {out.parent} does not exist")
    log, options["settings"] = options.pop("columns"), settings_of(options["settings"])
    given = {name: value for name, value in options.items() if value not in (None, "", False)}
    sources = [each for each in (data, schema, from_log or None) if each is not None]
    if len(sources) != 1 or (data is None and (options.get("label") or options["best_of"])):
        raise UsageError(
            "train needs a table of labelled rows; or, without --label and --best-of, either --schema or --from-log"
        )
    if any(log.values()) and not from_log:
        raise UsageError("--action, --reward, --propensity, --id and --logger need --from-log")
    if from_log:
        from banditlab.policy.learning import train_from_log

        recipe = {name: given.pop(name) for name in RECIPE if name in given}
        if drop := given.pop("drop_columns", ()):
            recipe["roles"] = recipe.get("roles", {}) | dict.fromkeys(drop, "drop")
        if odd := given.keys() - FROM_LOG:
            raise UsageError(f"--from-log does not allow {', '.join(sorted(odd))}; leave out these options")
        print_evaluated(str(out), train_from_log(from_log, out, recipe=recipe, **given, **log))
    elif schema is not None:
        Policy.new(*_schema(schema), **given).save(out)
        typer.echo(f"{schema}: no updates yet")
    else:
        policy = Policy.train(data, **given)
        policy.save(out)
        typer.echo(plain(summary_line(policy.describe()["trained"])))
    typer.echo(f"written to {out}; next: banditlab serve {shlex.quote(str(out))} --log events.db")


def _schema(file: Path) -> tuple[Any, Any]:
    """Return the columns and actions in a schema file."""
    try:
        found = json.loads(file.read_bytes())
        return found["columns"], found["actions"]
    except (OSError, ValueError, LookupError, TypeError):
        example = '{"columns": {"age": [18, 80], "plan": ["free", "pro"]}, "actions": ["call", "gift"]}'
        raise UsageError(f"--schema {file}: must contain a JSON object such as {example}") from None


def serve(
    policy: Path, log: str, host: str, port: int, token_file: Path | None, person: str, extra: str, **rule: Any
) -> None:
    """Serve a policy until the process receives a signal to stop."""
    refuse_without("serve", "starlette", "uvicorn", "prometheus_client")
    from banditlab.policy.policy import Policy
    from banditlab.policy.server import serve as serve_

    warnings.showwarning = _notice
    warnings.simplefilter("always", RuntimeWarning)
    token = _token(token_file)
    rule["extra"] = extra
    opened = Policy.open(policy, log, person=person, **rule) if log else Policy.load(policy, **rule)
    if not log:
        typer.echo("notice: without --log, decisions and feedback are lost when the process ends", err=True)
    with opened:
        serve_(opened, host=host, port=port, token=token)


def _token(file: Path | None) -> str:
    if file is None:
        return os.environ.get("BANDITLAB_TOKEN", "")
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise UsageError(f"--token-file {file}: cannot be read ({why})") from None
    if not lines or not lines[0].strip():
        raise UsageError(f"--token-file {file}: the first line is empty")
    return lines[0].strip()


def _notice(message: Warning | str, *_: Any, **__: Any) -> None:
    print(plain(f"notice: {' '.join(str(message).split())}"), file=sys.stderr, flush=True)


def print_log_status(log: str, picture: Path | None, verify: bool) -> None:
    """Print the status of a log's policy; with `verify`, check every event; with `picture`, write a figure of the
    status to that file.
    """
    from banditlab.policy.picture import draw_status
    from banditlab.policy.status import status_of_log, verify_log

    if verify:
        typer.echo(f"verified: {verify_log(log):,} events are complete, with correct checksums")
    status = status_of_log(log)
    for line in status.lines():
        typer.echo(plain(line))
    if picture is not None:
        draw_status(status, picture)
        typer.echo(f"written: {picture}")


def print_evaluated(policy: str, made: Evaluated, picture: Path | None = None) -> None:
    """Print the estimated mean reward of a policy on a log, and write a figure if requested."""
    found, actions, logged, notes = made
    rows = {
        "decisions": f"{found.rounds:,} of {len(actions):,} actions, mean reward {logged:.4f}",
        f"value of {policy}": f"{found.value:.4f}, 95 % interval {found.low:.4f} to {found.high:.4f} ({found.recommended})",
        "bounds": f"{found.least:.4f} to {found.most:.4f} where actions have no support, without sampling error",
        "others": f"ips {found.ips:.4f}, snips {found.snips:.4f}, direct {found.direct:.4f}, doubly robust "
        f"{found.doubly_robust:.4f}, standard error {found.standard_error:.4f}",
        "weights": f"effective sample size {found.effective_sample_size:,.0f}, largest {found.largest_weight:.3g}, mean "
        f"{found.mean_weight:.3f}, without support {found.unsupported:.2%}",
    }
    lines = [f"{name}: {text}" for name, text in rows.items() if name != "bounds" or found.unsupported]
    lines += [f"warning: {text}" for text in [*notes, *filter(None, [found.reason])]]
    for line in [*lines, *(f"assumes: {text}" for text in found.assumptions)]:
        typer.echo(textwrap.fill(plain(line), 80, subsequent_indent="  ", break_long_words=False))
    if picture is not None:
        from banditlab.policy.picture import draw_evaluation

        draw_evaluation(made, policy, picture)
        typer.echo(f"written: {picture}")
