"""An answer as a Pydantic model, from `codespec serve --http 8080` with an instruct model.

Bounds keep an answer short: they are part of the grammar, so that even a small model comes to an end.
"""

import os
from typing import Annotated

from openai import OpenAI
from pydantic import BaseModel, Field

Word = Annotated[str, Field(max_length=24)]


class Package(BaseModel):
    name: Word
    version: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,2}$")]
    keywords: Annotated[list[Word], Field(max_length=4)]


url = os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1")
client = OpenAI(base_url=url, api_key="none is wanted on this machine")
answer = client.chat.completions.parse(
    model="codespec",
    messages=[{"role": "user", "content": "Describe a package that parses dates."}],
    response_format=Package,
    max_completion_tokens=900,
)
print(answer.choices[0].message.parsed)
