"""The server's description as OpenAPI 3.1 and as a web page."""

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
            "/decide": {"post": _post("Choose a class for a row, or for each of several rows", decide, choice)},
            "/feedback": {"post": _post("Report whether a choice was right, once", feedback, {"type": "object"})},
            "/policy": {"get": _get("Agent, settings, classes, columns, counts")},
            "/health": {"get": _get("Whether the process responds; the log is not accessed")},
            "/ready": {"get": _get("Whether a decision could be stored now; 503 if the log is full or unreachable")},
            "/metrics": {"get": _get("Counters in the Prometheus format")},
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
            "description": "A category; values other than the examples count as unknown.",
            "examples": kind,
        }
    if kind == "numeric":
        return {"type": ["number", "boolean", "string", "null"], "description": "A number, possibly as a string."}
    if kind == "text":
        return {"type": ["string", "null"], "description": "A text, whose words are features."}
    return {"type": ["string", "null"], "format": "date-time"}


def _list(items: Any, most: int) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": most}


def _post(summary: str, body: Any, answer: Any) -> dict[str, Any]:
    refused = {"400": "wrong", "401": "no token", "404": "unknown id", "409": "already answered or closed"}
    refused |= {"413": "too large", "503": "the log cannot be written; nothing was done, so try again"}
    return {
        "summary": summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {"description": "done and stored on disk", "content": {"application/json": {"schema": answer}}},
            **{status: {"description": text} for status, text in refused.items()},
        },
    }


def _get(summary: str) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": {"description": "current state"}}}


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>banditlab</title>
<style>body{font:16px/1.5 sans-serif;max-width:46em;margin:3em auto;padding:0 1em}pre{background:#f3f3f3;padding:1em}</style>
<h1>A policy</h1>
<p>POST a row to get a choice, and later POST whether it was right.</p>
<pre>curl -s localhost:8080/decide -H 'Content-Type: application/json' -d '{"row": {"COLUMN": "VALUE"}}'
curl -s localhost:8080/feedback -H 'Content-Type: application/json' -d '{"id": "ID", "correct": true}'</pre>
<p>Several rows or feedbacks: {"rows": [...]} and {"feedback": [{"id": ..., "correct": ...}]}.
To restrict the classes: "allowed": [...].</p>
<p><a href="/policy">/policy</a>: columns, classes, counts. <a href="/openapi.json">/openapi.json</a>: the interface in OpenAPI.
<a href="/metrics">/metrics</a>: counters. <a href="/health">/health</a>: the process responds.
<a href="/ready">/ready</a>: a decision can be stored.</p></html>
"""
