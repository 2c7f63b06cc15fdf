"""The server's description in OpenAPI 3.1, and as a web page."""

from __future__ import annotations

from typing import Any

from banditlab import __version__


def schema(policy: dict[str, Any], most: int, token: bool) -> dict[str, Any]:
    """Return the OpenAPI description; `policy` is `Policy.describe`."""
    name = {"type": ["string", "number", "boolean"], "enum": policy["classes"]}
    row = {
        "type": "object",
        "properties": {column: _column(kind) for column, kind in policy["columns"].items()},
        "required": [] if policy["imputes"] else list(policy["columns"]),
        "additionalProperties": policy["extra"] == "ignore",
    }
    choice = {
        "type": "object",
        "required": ["id", "action", "probability", "scores"],
        "properties": {
            "id": {"type": "string"},
            "action": name,
            "probability": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
            "scores": {"type": "object", "additionalProperties": {"type": "number"}},
            "cost": {"type": "number", "minimum": 0, "description": "The class's mean cost in training, where known."},
        },
    }
    answer: dict[str, Any] = {
        "type": "object",
        "required": ["id", "correct"],
        "properties": {"id": {"type": "string"}, "correct": {"type": "boolean"}},
    }
    decide = {
        "type": "object",
        "properties": {"row": row, "rows": _list(row, most), "allowed": _list(name, len(policy["classes"]))},
    }
    feedback = {**answer, "properties": {**answer["properties"], "feedback": _list(answer, most)}, "required": []}
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": f"banditlab: {policy['agent']}", "version": __version__},
        "paths": {
            "/decide": {"post": _post("Choose a class for a row, or for each of several", decide, choice)},
            "/feedback": {"post": _post("Say whether a choice was right: once", feedback, {"type": "object"})},
            "/policy": {"get": _get("Agent, settings, classes, columns, counts")},
            "/health": {"get": _get("Whether the process answers; the log is not asked")},
            "/ready": {"get": _get("Whether a decision could be stored now: 503 where the log is full or away")},
            "/metrics": {"get": _get("Counters in Prometheus' format")},
        },
    }
    if token:
        found["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        found["security"] = [{"token": []}]
    return found


def _column(kind: Any) -> dict[str, Any]:
    if isinstance(kind, list):
        return {
            "type": ["string", "number", "boolean", "null"],
            "description": "A category; another value than the examples counts as unknown.",
            "examples": kind,
        }
    if kind == "numeric":
        return {"type": ["number", "boolean", "string", "null"], "description": "A number, or a text that spells one."}
    if kind == "text":
        return {"type": ["string", "null"], "description": "A text, of which the words count."}
    return {"type": ["string", "null"], "format": "date-time"}


def _list(items: Any, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


def _post(summary: str, body: Any, answer: Any) -> dict[str, Any]:
    refused = {"400": "wrong", "401": "no token", "404": "unknown id", "409": "answered or closed already"}
    refused |= {"413": "too large", "503": "the log cannot be written: nothing was done, try again"}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "done, and on disk", "content": {"application/json": {"schema": answer}}},
            **{status: {"description": text} for status, text in refused.items()},
        },
    }


def _get(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "as it is now"}}}


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>banditlab</title>
<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}pre{background:#f3f3f3;padding:1em}</style>
<h1>A policy</h1>
<p>POST a row, get a choice; later, say whether it was right.</p>
<pre>curl -s localhost:8080/decide -H 'Content-Type: application/json' -d '{"row": {"COLUMN": "VALUE"}}'
curl -s localhost:8080/feedback -H 'Content-Type: application/json' -d '{"id": "ID", "correct": true}'</pre>
<p>Several at once: {"rows": [...]} and {"feedback": [{"id": ..., "correct": ...}]}. Fewer classes: "allowed": [...].</p>
<p><a href="/policy">/policy</a>: columns, classes, counts. <a href="/openapi.json">/openapi.json</a>: all of it in OpenAPI.
<a href="/metrics">/metrics</a>: counters. <a href="/health">/health</a>: it answers.
<a href="/ready">/ready</a>: it can store a decision.</p></html>
"""
