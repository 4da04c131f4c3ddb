"""Which names of Python stand for the same thing."""

import pytest

from tests.syntax.scopes.marked import check

# The name `new` has come where it stands; every `old` in brackets is one that stands for the same thing.
CASES = [
    "def f(new):\n    return <old> + <old>.old + g(old=<old>)\n\ndef g(old):\n    return old\n",
    "def f():\n    new = 1\n    print(<old>)\n    for x in <old>:\n        pass\n    return [<old> for y in x]\n",
    "def f(old):\n    return [new for new in old]\n",
    "def f(old):\n    return [<old> for new in old]\n",
    "def f(new):\n    def g(old):\n        return old\n    return lambda: <old>\n",
    "def f(<old>):\n    return new\n",
    "x = lambda <old>: new.y\n",
    "for new in range(3):\n    print(<old>)\n",
    "def new():\n    pass\n\n<old>()\n",
    "def f(new, *, other=1):\n    return new\n",
    "import old\ndef f():\n    return new\n",
    "def f(x, new: int = 3, *args):\n    return f'{<old>}' + 'old'  # old\n",
    "class A:\n    def m(self, new):\n        self.old = <old>\n",
    "with open(x) as new:\n    <old>.read()\n",
    "old = 1\nclass A:\n    new = 2\n    def m(self):\n        return old\n",
    "class A(old):\n    new = 2\n    x = <old>\n    def m(self):\n        return old\n",
    "def f(new: old = old) -> old:\n    return <old>\n",
    "for new in x:\n    f(lambda old=<old>: old)\n",
    "def f():\n    new = 0\n    def g():\n        nonlocal <old>\n        <old> = 5\n    return <old>\n",
    # `global`, `nonlocal` and imports say nothing of other functions.
    (
        "new = 0\n\ndef add(n):\n    global <old>\n    <old> += n\n\ndef other(old):\n    return old\n\n"
        "def third():\n    for old in x:\n        pass\n"
    ),
    (
        "import new\n\ndef load():\n    return <old>.path\n\ndef other(old):\n    return old\n\n"
        "def third():\n    old = 1\n    return old\n"
    ),
    "from a import new\n<old>(a.old)\n",
    "from old import new\nprint(<old>)\n",
    "import old.new\nprint(old.old)\n",
    "from a import x as new\nprint(<old>)\n",
    "import a.old as new\nprint(<old>)\n",
    (
        "def f(new):\n    def g():\n        global old\n        old = 1\n    def h():\n"
        "        nonlocal <old>\n        return <old>\n"
    ),
    "def f():\n    global new\n    def g():\n        return <old>\n    def h(old):\n        return old\n\n<old> = 1\n",
    "class A:\n    global new\n    <old> = 1\n\ndef f():\n    return <old>\n",
    # What binds.
    "def f():\n    new = 0\n    <old> += 1\n    old: int = 2\n".replace("old: int", "<old>: int"),
    "old = 1\ndef f():\n    new += 1\n    return <old>\n",
    "def f(x):\n    if (new := x):\n        return <old>\n",
    "def f(xs):\n    a = [y for x in xs if (new := x)]\n    return <old>\n",
    "def f(new):\n    del <old>\n",
    "old = 1\ndef f():\n    del new\n    return <old>\n",
    "try:\n    f()\nexcept E as new:\n    print(<old>)\n",
    "with a as (new, b), <old> as c:\n    pass\n",
    (
        "def f(x):\n    match x:\n        case [new, *rest]:\n            return <old>\n"
        "        case Old(old=a) | {'old': a, **b}:\n            return a.old\n"
    ),
    (
        "def f(x):\n    match x:\n        case A.old:\n            return 1\n        case {'k': new}:\n"
        "            return <old>\n"
    ),
    "def f(x):\n    match x:\n        case str() as new if <old>:\n            return <old>\n",
    "def f(x):\n    match x:\n        case new():\n            return old\n",
    "for new, (a, *b) in x:\n    print(<old>)\nelse:\n    print(<old>)\n",
    # Functions: defaults, annotations and decorators belong outside.
    "old = 1\n@old\ndef f(new: old = old, *a: old, b: old = old) -> old:\n    return <old>\n",
    "new = 1\n@<old>\ndef f(old: <old> = <old>, *a: <old>) -> <old>:\n    return old\n",
    "f = lambda new, b=old: <old> + b\n",
    "def f(new, /, a, *, b):\n    return f(<old>, old=<old>, **<old>)\n",
    "def f(*new, **kw):\n    return [*<old>]\n",
    "def f(a, **new):\n    return g(**<old>)\n",
    "async def f(new):\n    async with <old>:\n        async for x in <old>:\n            await <old>\n",
    # Comprehensions: the first iterable is computed outside.
    "def f(old):\n    return {new: 1 for new in old if <old>}\n",
    "def f(new):\n    return {a: <old> for a in <old> for b in <old>}\n",
    "def f(new):\n    return [old for a in <old> for old in old]\n",
    "x = (new for new in old)\n",
    # Classes: functions in them do not see what they bind.
    (
        "class A:\n    new = 1\n    a = <old>\n    b = [old for x in y]\n    c = lambda: old\n"
        "    def m(self, x=<old>):\n        return old\n"
    ),
    "def f(new):\n    class A:\n        x = <old>\n        def m(self):\n            return <old>\n",
    "new = 1\nclass A:\n    old = old\n    def m(self):\n        return <old>\n",
    # Type parameters.
    "def f[new](a: <old>, *b: list[<old>]) -> <old>:\n    return <old>\n\nx: old\n",
    "class A[new: int](B[<old>]):\n    x: <old>\n    def m(self) -> <old>: ...\n\nx: old\n",
    "type A[new] = list[<old>]\nx: old\n",
    "type new = int\nx: <old>\n",
    # Texts.
    'def f(new):\n    return f\'{<old>!r:>{<old>}} {<old>.old} {"old"} old {x["old"]}\'\n',
    "def f(new):\n    x: 'old' = {'old': <old>}  # old\n    return x['old'], x.old(old=1)\n",
    # In doubt nothing is offered.
    "def f(new):\n    return '{old}'.format(**locals()) + old\n",
    "new = 1\nexec('old = 2')\nprint(old)\n",
    "def f(new):\n    eval('old')\n    return old\n",
    "def f(new):\n    vars(x)\n    return <old>\n",
    "class A:\n    def f(self, __new):\n        return __old\n",
    "try:\n    new = x\nexcept NameError:\n    old = y\n".replace("old", "<old>"),
    "from m import *\ndef f():\n    return new + old\n",
    "def f(new):\n    return old +\n",
    "def broken(:\n    pass\nnew = 1\nprint(old)\n",
    "def broken(:\n    pass\n\ndef f(new):\n    return <old>\n",
]


@pytest.mark.parametrize("marked", CASES)
def test_uses(marked):
    check("python", marked, "old", "new")
