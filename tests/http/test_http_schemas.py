"""A short run of ``python -m tests.http.schemas``, with schemas as packages have them."""

import asyncio
import json
import random

from tests.http.child_server import ChildServer
from tests.http.schemas import LIMITS, Asker, judged
from tests.schemas.real import collect

PACKAGE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]{1,8}$"},
        "version": {"type": "string", "pattern": r"^\d\.\d$"},
        "private": {"type": "boolean"},
        "files": {"type": "array", "items": {"enum": ["src", "docs", "tests"]}, "maxItems": 3, "uniqueItems": True},
    },
    "required": ["name", "version"],
    "additionalProperties": False,
}
PORTS = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$defs": {"port": {"type": "integer", "minimum": 1, "maximum": 65535}},
    "type": "object",
    "properties": {"http": {"$ref": "#/$defs/port"}, "mode": {"const": "fast"}},
    "required": ["http", "mode"],
    "additionalProperties": False,
}
TREE = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}],
}
REFUSED = {**PORTS, "properties": {"http": {"type": "number", "multipleOf": 1e-300}}}


def test_what_is_generated_is_valid(tmp_path):
    for name, schema in {"package": PACKAGE, "ports": PORTS, "tree": TREE, "refused": REFUSED}.items():
        (tmp_path / "some").mkdir(exist_ok=True)
        (tmp_path / "some" / f"{name}.json").write_text(json.dumps(schema))
    files = collect(tmp_path, random.Random(1))
    assert len(files) == 4
    schemas = [(file.name, json.loads(file.read_text())) for file in files]
    with ChildServer(limits=LIMITS) as server:
        asker = Asker(server, 200)

        async def some():
            await asker.take(schemas, 50)
            return await asker.generate(15)

        report = asyncio.run(some())
    assert list(report.refused) == ["refused.json"]
    assert report.invalid == []
    assert report.reasons["stop"] >= 10
    assert set(report.finished_of) == {"package.json", "ports.json", "tree.json"}


def test_the_judge_sees_what_is_wrong():
    assert judged(PORTS, '{"http": 80, "mode": "fast"}') == ""
    for text in ('{"http": 0, "mode": "fast"}', '{"http": 80}', '{"http": 80, "mode": "fast"', "80"):
        assert judged(PORTS, text)
