"""Vowpal Wabbit behind the same HTTP server: its package for Python has no program, hence no daemon, to measure.

One endpoint decides by VW's own exploration (`--cb_explore K --squarecb`, first order), one learns; open decisions are a
dictionary. No log, no check of a row's types, no metrics, no token.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route


def make_app(classes: list[str]) -> Starlette:
    """Return the application for rows of numbers."""
    import vowpalwabbit

    vw = vowpalwabbit.Workspace(f"--cb_explore {len(classes)} --squarecb --quiet", enable_logging=False)
    rng, waiting = np.random.default_rng(0), {}

    async def decide(request: Request) -> JSONResponse:
        row: dict[str, Any] = json.loads(await request.body())["row"]
        text = "| " + " ".join(f"{name}:{value}" for name, value in row.items())
        p = np.asarray(vw.predict(text))
        k = int(np.searchsorted(np.cumsum(p), rng.random() * p.sum()))
        name = os.urandom(16).hex()
        waiting[name] = (k, float(p[k]), text)
        return JSONResponse({"id": name, "action": classes[k], "probability": float(p[k])})

    async def feedback(request: Request) -> JSONResponse:
        told = json.loads(await request.body())
        k, p, text = waiting.pop(told["id"])
        vw.learn(f"{k + 1}:{0.0 if told['correct'] else 1.0}:{p} {text}")
        return JSONResponse({"accepted": 1})

    return Starlette(
        routes=[Route("/decide", decide, methods=["POST"]), Route("/feedback", feedback, methods=["POST"])]
    )


if __name__ == "__main__":
    uvicorn.run(make_app([str(k) for k in range(10)]), port=int(sys.argv[1]), log_level="error", access_log=False)
