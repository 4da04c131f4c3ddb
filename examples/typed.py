"""A grammar from Python types: which answers of a model could be read back as them. Needs pydantic."""

from dataclasses import dataclass
from typing import Literal

from codespec import Grammar
from codespec.grammar.check import accepts_text


@dataclass
class Task:
    title: str
    priority: Literal["low", "high"]
    tags: list[str]


grammar = Grammar.from_type(list[Task])

for answer in (
    '[{"title": "Write tests", "priority": "high", "tags": ["ci"]}]',
    '[{"title": "Write tests", "priority": "urgent", "tags": []}]',
):
    print("accepted" if accepts_text(grammar, answer).accepted else "rejected", answer)

# With a model: load_completer(Config()).generate("Tasks as JSON: ", grammar) yields texts of this type only.
