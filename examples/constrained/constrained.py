"""The same model, held to JSON, to a JSON Schema, to a regular expression and to a language."""

from pathlib import Path

from codespec import Config, Grammar, Request, Sampling, load_completer

SCHEMA = Path(__file__).with_name("task.schema.json")
DATE = r"20\d\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
FILES = {  # the cursor stands at ▮
    "json": '{\n  "name": "basket",\n  "version": ▮,\n  "private": true\n}\n',
    "python": "def mean(values: list[float]) -> float:\n    return ▮\n\n\nprint(mean([1.0, 2.0, 4.0]))\n",
}

completer = load_completer(Config(time_budget_ms=0), sampling=Sampling(temperature=0.7, seed=3))

for what, prompt, grammar in (
    ("A JSON Schema", "tasks.json:\n", Grammar.load(SCHEMA)),
    ("A regular expression", "Released: ", Grammar.from_regex(DATE)),
):
    print(f"{what}:")
    for completion in completer.generate(prompt, grammar, count=2):
        print(f"  {completion.finish_reason}: {completion.text}")

for language, text in FILES.items():
    before, behind = text.split("▮")
    print(f"A language, {language}, in the middle of a file:")
    request = Request(before + behind, len(before), language, grammar=language, count=2)
    for completion in completer.complete(request):
        print(f"  {completion.finish_reason}: {before.splitlines()[-1].strip()} {completion.text}")

completer.close()
