"""What IPython alone understands is a comment for parsers and grammars; other languages are not taken for Python."""

import ast

import pytest

from codespec.languages.python.magics import is_magic, language_of, without_magics


@pytest.mark.parametrize(
    ("cell", "masked"),
    [
        ("%matplotlib inline\nx = 1", "#matplotlib inline\nx = 1"),
        ("!pip install a\n%cd 'b\n?x\nx.y??\nz", "#pip install a\n#cd 'b\n#x\n#.y??\nz"),
        ("if x:\n    %time f()\n    !ls", "if x:\n    0#ime f()\n    0#s"),
        ("files = !ls -l\na, b[0] = %sql select 1", "files = 0#s -l\na, b[0] = 0#ql select 1"),
        ("%%time\nx = f()\n!ls", "#%time\nx = f()\n#ls"),
        ("\n%%bash -x\nls '$a", "\n#%bash -x\nls '$a"),
        ("%%js\nlet a", "//js\nlet a"),
        ("%%sql\nselect 1", "--sql\nselect 1"),
        ("%%writefile a.txt\n%b", "%%writefile a.txt\n%b"),
    ],
)
def test_masked(cell, masked):
    assert without_magics(cell) == masked
    assert len(masked) == len(cell)


@pytest.mark.parametrize(
    "text",
    [
        "x = (a\n  %b)\n",
        "x = a \\\n  %b\n",
        "x = '''\n%no\n!no\n'''\n",
        "x = '\\\n%no'\n",
        's = """\n%a\n',
        "x != y\n",
        "# why?\nx = 'a?'  # b?\n",
        "x = [\n    a,\n    %b,\n]\n",
        "x = a % b\ny = a %b\n",
        "f(x=!y)\n",
        "x == %y\n",
    ],
)  # fmt: skip
def test_python_stays(text):
    assert without_magics(text) == text


def test_what_is_left_is_python():
    cell = "%load_ext a\nimport b\nif b:\n    %time c = 1\nd = !ls\nb?\nfor e in d:\n    !rm {e}\n"
    ast.parse(without_magics(cell))


def test_languages():
    cells = ["x", "%%time\nx", "%x\n%%bash", "%%bash", "%%sh -c", "%%javascript", "%%cython\nx", "%%writefile a.py"]
    found = [language_of(each) for each in cells]
    assert found == ["python", "python", "python", "shellscript", "shellscript", "javascript", None, None]


def test_the_line_of_a_command():
    cell = "x = 1\n%cd a\ny"
    assert [is_magic(cell, at) for at in (0, 5, 6, 11, 12, 13)] == [False, False, True, True, False, False]


@pytest.mark.parametrize("part", ["(", "'", '"""', "%a\n", "a\\\n", "a = ", "?\n", "\\", "[a ", "=!", "%%"])
def test_long_cells(part):
    for count in (1_000, 30_000):
        assert len(without_magics(part * count)) == len(part) * count
