"""The whole way from a document and an offset to a text, on the embedded models."""

import json
import random
import threading
from dataclasses import replace
from importlib.util import find_spec

import pytest

from codespec import Completer, Config, Grammar, Limits, LocalEngine, Request, Sampling
from codespec.completion.attempts import ATTEMPTS
from codespec.completion.open_documents import OpenDocuments
from codespec.completion.prompt.prompt import LEAST_CONTEXT
from codespec.errors import CodespecError
from codespec.languages import by_id
from codespec.models.registry import EMBEDDED_TARGET
from codespec.protocols import Snippet
from codespec.syntax.tree import syntax_tree
from tests.present import present

BASE = replace(Config(), max_tokens=24, time_budget_ms=0, grammar="none")
TEXT = "import os\n\n\ndef main(argv):\n    if not argv:\n        raise \n    return os.path.join(*argv)\n"


class Counting(LocalEngine):
    generations = 0

    def generate(self, *arguments, **more):
        self.generations += 1
        return super().generate(*arguments, **more)


@pytest.fixture(scope="module")
def engine():
    engine = Counting(EMBEDDED_TARGET, exact=True)
    yield engine
    engine.close()


def complete(engine, text, offset, config=BASE, **options):
    return Completer(engine, config).complete(Request(text, offset, "python", "main.py", **options))


def test_a_line_is_completed_within_the_line(engine):
    offset = TEXT.index("raise ") + 6
    [completion] = complete(engine, TEXT, offset)
    assert "\n" not in completion.text
    # The space is there already.
    assert completion.text
    assert not completion.text.startswith(" ")


@pytest.mark.parametrize("offset", [0, 1, TEXT.index("\n\n\n") + 1, len(TEXT)])
def test_any_place_is_a_place(engine, offset):
    assert len(complete(engine, TEXT, offset)) == 1


@pytest.mark.parametrize("text", ["", "\n", "\r\n", " ", "\t", "🦙", "a\x00b", "x" * 20_000, "\ud83d"])
def test_any_text_is_a_document(engine, text):
    assert len(complete(engine, text, len(text))) == 1


def test_blanks_are_nothing_to_show(engine):
    text = "package main\n\nfunc main() {\n\tfor i := 0; i < 3; i++ {\n\t\t\n\t}\n}\n"
    offset = text.index("\t\t\n") + 2
    completer = Completer(engine, replace(BASE, grammar="auto"))
    [completion] = completer.complete(Request(text, offset, "go", "main.go"))
    assert completion.text == "" or completion.text.strip()
    assert all(c.text == c.text.strip() or c.text.strip() for c in complete(engine, "\n\n", 1, count=3))


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_make_no_difference(engine, end):
    offset = TEXT.index("raise ") + 6
    ended = TEXT.replace("\n", end)
    [one] = complete(engine, TEXT, offset)
    [other] = complete(engine, ended, ended.index("raise ") + 6)
    assert (one.text, one.report["gate"]) == (other.text, other.report["gate"])


@pytest.mark.parametrize(("order", "most", "least"), [("auto", 2, 0), ("spm", 2, 0), ("psm", 200, 12)])
def test_with_the_suffix_first_a_key_reads_no_suffix(engine, order, most, least):
    completer = Completer(engine, replace(BASE, target=replace(BASE.target, fim=order)))
    offset = TEXT.index("raise ")
    completer.prefill(Request(TEXT, offset, "python", "main.py"))
    read = completer.prefill(Request(TEXT[:offset] + "x(" + TEXT[offset:], offset + 2, "python", "main.py"))
    assert least <= read <= most


def test_pieces_of_other_files_are_read_where_there_is_room(engine):
    context = (Snippet("util.py", "def helper(argv):\n    return argv[1:]\n"),)
    requests = [Request(TEXT, 40, "python", "/w/main.py", workspace="/w", context=each) for each in ((), context)]
    small = Completer(engine, BASE)
    assert [small.prefill(each) for each in requests][1] <= 1
    large = LocalEngine(EMBEDDED_TARGET, context_length=LEAST_CONTEXT)
    try:
        completer = Completer(large, BASE)
        assert [completer.prefill(each) for each in requests][1] > 20
    finally:
        large.close()


def test_what_the_target_holds_is_not_decoded_again(engine):
    offset = TEXT.index("raise ") + 6
    complete(engine, TEXT, offset)
    [again] = complete(engine, TEXT, offset)
    assert again.report["prefill_tokens"] == 1
    assert again.report["reused_tokens"] > 20


def test_alternatives_differ(engine):
    texts = [c.text for c in complete(engine, TEXT, TEXT.index("raise ") + 6, count=3)]
    assert len(texts) == len(set(texts)) > 1


@pytest.fixture(scope="module")
def usual():
    """An engine in which texts are decoded side by side: an exact one has one sequence."""
    engine = LocalEngine(EMBEDDED_TARGET)
    yield engine
    engine.close()


def test_alternatives_are_decoded_side_by_side(usual):
    engine = usual
    offset = TEXT.index("raise ") + 6
    [one] = complete(engine, TEXT, offset)
    several = complete(engine, TEXT, offset, count=3)
    assert several[0].text == one.text
    # What is generated in a pass is one token of each text.
    assert several[0].report["target_calls"] < sum(len(each.rounds) for each in several)
    [again] = complete(engine, TEXT, offset)
    assert again.report["prefill_tokens"] == 1
    assert again.text == one.text


def test_alternatives_keep_to_the_grammar_each(usual):
    text = '{"name": '
    config = replace(BASE, grammar="json", gate="off")
    request = Request(text, len(text), "json", "a.json", count=3)
    found = Completer(usual, config).complete(request)
    assert len(found) > 1
    state = Grammar.load("json").state(usual._grammar_tokenizer)
    for each in found:
        begun = state.copy()
        tokens = usual.vocabulary.tokenize(text + each.text)
        assert begun.accept(tokens) == len(tokens)


def test_a_cancelled_request_gives_nothing(engine):
    cancel = threading.Event()
    cancel.set()
    request = Request(TEXT, 40, "python", "main.py")
    assert Completer(engine, BASE).complete(request, cancel) == []


def test_aborting_from_another_thread(engine):
    completer = Completer(engine, replace(BASE, max_tokens=400))
    stopped = threading.Event()

    def abort():
        while not stopped.wait(0.001):
            completer.abort()

    thread = threading.Thread(target=abort)
    thread.start()
    try:
        assert completer.complete(Request(TEXT, len(TEXT), "plaintext", "x")) == []
    finally:
        stopped.set()
        thread.join()
    assert len(complete(engine, TEXT, 40)) == 1


def test_an_abort_is_heard_between_the_steps_of_a_prompt(engine):
    class Aborts:
        def is_set(self):
            engine.abort()
            return False

    prompt = [*range(1000, 1200)]
    read = engine.prefill(prompt, Aborts())
    assert 0 < read < len(prompt)
    assert engine.prefill(prompt) == len(prompt) - read


def test_it_says_while_a_prompt_is_read(engine):
    seen = []

    class Watches:
        def is_set(self):
            seen.append(engine.reading)
            return False

    engine.prefill([*range(3000, 3200)], Watches())
    assert seen
    assert all(seen)
    assert not engine.reading
    seen.clear()
    for _ in engine.generate([*range(3000, 3150), *range(2000, 2200)], limits=Limits(8), cancel=Watches()):
        assert not engine.reading
    assert True in seen
    assert seen[-1] is False


def test_every_prefix_of_a_constrained_completion_is_viable(engine):
    from codespec import Grammar

    config = replace(BASE, grammar="json")
    text = '{"name": "x", "values": ['
    for seed in range(10):
        completer = Completer(engine, config, Sampling(temperature=1.0, seed=seed))
        [completion] = completer.complete(Request(text, len(text), "json", "a.json"))
        assert completion.report["grammar"] == "json"
        state = engine.grammar_state(Grammar.load("json"))
        tokens = engine.vocabulary.tokenize(text + completion.text)
        assert state.accept(tokens) == len(tokens)


def test_a_time_budget_ends_a_generation(engine):
    completion = next(Completer(engine, BASE).generate("import os\n", limits=Limits(400, time_budget_ms=1)))
    assert completion.finish_reason == "time"
    assert completion.report["tokens"] < 400


def test_a_draft_that_cannot_be_loaded_changes_nothing(engine, tmp_path):
    from tests import byte_vocabulary

    path = tmp_path / "bytes.gguf"
    byte_vocabulary.write(path)  # no weights
    with pytest.raises(CodespecError, match=r"bytes\.gguf: "):
        engine.drafts.choose(path)
    assert len(complete(engine, TEXT, 40)) == 1


JSON = '{\n  "name": "x",\n  "values": [1, 2, 3],\n  "nested": {\n    "deep": true,\n    "other": null\n  }\n}\n'


def cuts(text, count, seed=1):
    """Places in ``text``, and what is left with up to 12 characters taken out there."""
    chooser = random.Random(seed)
    for _ in range(count):
        start = chooser.randrange(len(text))
        yield start, text[:start] + text[min(len(text), start + chooser.randrange(12)) :]


def fill(completer, text, offset, language="json", path="a.json"):
    [completion] = completer.complete(Request(text, offset, language, path))
    return completion, text[:offset] + completion.text + text[offset:]


def test_a_completion_that_stops_leaves_a_file_that_parses(engine):
    completer = Completer(engine, replace(BASE, grammar="auto"))
    stopped = 0
    for offset, text in cuts(JSON, 40):
        completion, whole = fill(completer, text, offset)
        assert completion.report["grammar"] == "json"
        assert completion.report["timings_ms"]["grammar"] > 0
        if completion.finish_reason == "stop" or completion.report["gate"] in ("passed", "cut"):
            assert json.loads(whole)
            stopped += 1
    assert stopped > 10


@pytest.mark.parametrize("offset", [1, 14])
def test_a_byte_order_mark_changes_nothing(engine, offset):
    completer = Completer(engine, replace(BASE, grammar="auto"))
    [plain], [marked] = (
        completer.complete(Request(text, at, "json", "a.json"))
        for text, at in ((JSON, offset - 1), ("\ufeff" + JSON, offset))
    )
    assert marked.text == plain.text
    assert marked.report["grammar"] == plain.report["grammar"] == "json"


def test_what_the_gate_did_is_reported(engine):
    broken = '{"a": [1, 2,\n "b": ]]]'
    verdicts = {
        ("window", "json", '{"a": }', 6): {"passed", "cut"},
        ("off", "json", '{"a": }', 6): {"off"},
        ("window", "plaintext", "some text", 4): {"unavailable"},
        ("window", "json", broken, 12): {"broken", "dropped"},
    }
    for (gate, language, text, offset), expected in verdicts.items():
        completer = Completer(engine, replace(BASE, grammar="auto", gate=gate))
        completion, _ = fill(completer, text, offset, language)
        assert completion.report["gate"] in expected, (gate, language, completion)


def test_behind_much_text_signs_are_judged_beside_a_grammar(engine):
    before = "class A {\n" + "    // A line that says nothing about what follows.\n" * 900 + "    void f(int a) {\n"
    after = "        g(a);\n    }\n" + "    // Another line.\n" * 60 + "}\n"
    cursor = OpenDocuments(engine).context_at("A.java", by_id("java"), "java", before + after, len(before), "window")
    assert cursor.grammar.state is not None
    assert present(cursor.gate).fit(cursor.lead + "        if (a > 1) {\n") is None
    assert present(cursor.gate).fit(cursor.lead + "        h(a);\n") == cursor.lead + "        h(a);\n"


def test_without_a_grammar_the_syntax_tree_is_the_judge(engine):
    completer = Completer(engine, BASE)
    for offset, text in cuts(TEXT, 30):
        completion, whole = fill(completer, text, offset, "python", "a.py")
        assert completion.report["grammar"] == "none"
        if completion.finish_reason == "stop" and completion.report["gate"] == "passed":
            assert present(syntax_tree(by_id("python"), whole)).problems.count == 0


def test_a_file_that_is_broken_further_up_is_read_from_a_block_on(engine):
    text = "def broken(:\n    pass\n\n\ndef main(argv):\n    if argv:\n        return \n    return None\n"
    completion, _ = fill(Completer(engine, replace(BASE, grammar="auto")), text, text.index("return \n") + 7, "python")
    assert completion.report["grammar"] == "python (from line 5)"
    assert completion.text.strip()


def test_a_text_outside_of_the_grammar_is_completed_without_it(engine):
    completion, _ = fill(Completer(engine, replace(BASE, grammar="auto")), "{\n!!! ", 6)
    assert completion.report["grammar"] == "none (json: line 2 does not match it)"


@pytest.mark.skipif(find_spec("tree_sitter_yaml") is not None, reason="there is a parser of YAML")
@pytest.mark.parametrize("key", ["? a\n: 1\n", "*a : 1\n"])
def test_outside_of_the_grammar_and_without_another_judge_a_text_ends_with_its_line(engine, key):
    text = f"x: &a 1\n{key}services:\n  one:\n    image: \nother: 1\n"
    completer = Completer(engine, replace(BASE, grammar="auto"))
    completion, _ = fill(completer, text, text.index("image: ") + 7, "yaml", "a.yaml")
    assert completion.report["grammar"].startswith("none (yaml: ")
    assert completion.report["gate"] in ("passed", "cut", "dropped")
    assert "\n" not in completion.text


def test_a_part_of_a_document_is_read_from_an_enclosing_statement_on(engine):
    text = 'end of a text"""\n\n\ndef main(argv):\n    if argv:\n        return \n    return None\n'
    request = Request(text, text.index("return \n") + 7, "python", "a.py", begins=False)
    [completion] = Completer(engine, replace(BASE, grammar="auto")).complete(request)
    assert completion.report["grammar"] != "python"
    request = replace(request, text="{}", offset=1, language="json", path="a.json", ends=False)
    [completion] = Completer(engine, replace(BASE, grammar="auto", gate="whole")).complete(request)
    assert completion.report["grammar"].startswith("none (json: ")


def test_a_part_of_a_document_need_not_end_where_it_ends(engine):
    completer = Completer(engine, replace(BASE, gate="whole"))
    text = "function f(a) {\n  const x = \n" + "  call(a, 1);\n" * 300
    part = Request(text, text.index("= \n") + 2, "javascript", "a.js")
    [as_the_whole], [as_a_part] = completer.complete(part), completer.complete(replace(part, ends=False))
    assert "}" in as_the_whole.text, "what the block lacks at the end"
    assert as_a_part.report["gate"] == "passed"
    assert "}" not in as_a_part.text


def test_a_request_may_choose_its_draft_and_grammar(engine):
    completer = Completer(engine, replace(BASE, draft="none"))
    request = Request(TEXT, 40, "python", "main.py")
    [completion] = completer.complete(replace(request, draft="auto", grammar="python"))
    assert (completion.report["draft"], completion.report["grammar"]) == ("draft-python", "python")
    [completion] = completer.complete(request)
    assert (completion.report["draft"], completion.report["grammar"]) == ("none", "none")


def test_the_grammar_is_that_of_the_version_that_a_project_supports(engine, tmp_path):
    completer = Completer(engine, replace(BASE, grammar="auto"))
    text = "try:\n    run()\nexcept ValueError, KeyError:\n    \n"
    request = Request(text, len(text) - 1, "python", str(tmp_path / "main.py"), workspace=str(tmp_path))
    [completion] = completer.complete(request)
    assert completion.report["grammar"] != "python"
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.14"')
    [completion] = completer.complete(request)
    assert completion.report["grammar"] == "python3.14"


def test_a_document_is_followed_through_its_edits(engine):
    completer = Completer(engine, replace(BASE, grammar="auto"))
    for offset in (20, 40, 30, len(JSON) - 4, 5):
        for text in (JSON, JSON.replace('"x"', '["x"]')):
            again, _ = fill(completer, text, offset)
            fresh, _ = fill(Completer(engine, replace(BASE, grammar="auto")), text, offset)
            assert (again.text, again.report["grammar"]) == (fresh.text, fresh.report["grammar"])


def test_a_text_of_which_nothing_fits_is_generated_again(engine):
    completer = Completer(engine, replace(BASE, grammar="auto"))
    places = [(TEXT, offset, "python", "a.py") for offset in range(0, len(TEXT), 9)]
    for text in ("[1, 2] ]", '{"a": 1 "b": 2}'):
        places += [(text, offset, "json", "a.json") for offset in range(len(text) + 1)]
    gates = {}
    for place in places:
        before = engine.generations
        completion, _ = fill(completer, *place)
        texts, gate = engine.generations - before, completion.report["gate"]
        gates.setdefault(texts, set()).add(gate)
        # Given up after so many texts, and after one more where a text began with what another one could go on from.
        assert texts <= ATTEMPTS + 1
        assert texts >= ATTEMPTS or gate != "dropped"
        # What one text may take is a limit for each of them, not more.
        assert completion.report["tokens"] <= texts * BASE.max_tokens
    assert "passed" in gates[1]
    assert gates[2] & {"passed", "cut", "broken"}  # the second one fitted
    assert "dropped" in gates[ATTEMPTS]


def test_no_second_text_when_the_time_is_up(engine):
    begun = {}
    for budget in (1, 0):
        before = engine.generations
        fill(Completer(engine, replace(BASE, grammar="auto", time_budget_ms=budget)), "[1, 2] ]", 6)
        begun[budget] = engine.generations - before
    assert begun[1] == 1 < begun[0]


def test_the_whole_suffix_on_request(engine):
    text = '{"a": \n' + ' ,"b": 1\n' * 200 + "!!}"
    near, _ = fill(Completer(engine, replace(BASE, grammar="auto", max_tokens=6)), text, 6)
    far, _ = fill(Completer(engine, replace(BASE, grammar="auto", max_tokens=6, gate="whole")), text, 6)
    assert near.report["gate"] in ("passed", "cut")
    assert far.report["gate"] in ("broken", "dropped")
