"""Fields of a Python class: where a class binds one, and where its methods have it of ``self``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codespec.syntax.scopes.reading import Name, Reader, Scope

_ITSELF = frozenset({b"self", b"cls"})
_ASSIGNED = re.compile(rb"[ \t]{0,8}(?::[^=\n]{1,200})?=(?!=)")


def field_uses(reader: Reader, data: bytes, renamed: Sequence[Name], old: bytes, new: bytes) -> Sequence[Name]:
    """Every name of the field that was renamed where its class, or one of its methods, binds it.

    What another object has of this name may be of another class, and is not among them. None in doubt: several classes
    are meant, the class has the new name already, a string holds the old one, by which it may be found, or there are
    errors of syntax in the class.
    """
    homes = {_home(reader, data, each) for each in renamed}
    home = homes.pop() if len(homes) == 1 else None
    if home is None or home.errors or old.startswith(b"__") or new in reader.keywords or new in home.bound:
        return []
    quoted = re.search(rb"[\"']" + re.escape(old) + rb"[\"']", data)
    own = [each for each in reader.names if _class_of(each) is home or _bound_in(reader, each) is home]
    if quoted or any(each.text == new for each in own):
        return []
    return [each for each in own if each.text == old]


def _home(reader: Reader, data: bytes, name: Name) -> Scope | None:
    """The class whose field a name binds; None for every other name."""
    if name.role.kind == "bind":
        return _bound_in(reader, name)
    assigned = _ASSIGNED.match(data, name.start + len(name.text))
    return _class_of(name) if assigned is not None else None


def _class_of(name: Name) -> Scope | None:
    """The class of which a name is an attribute of ``self`` or ``cls``."""
    if name.role.kind != "member" or name.owner not in _ITSELF:
        return None
    return next((each for each in name.scope.up() if each.kind == "class"), None)


def _bound_in(reader: Reader, name: Name) -> Scope | None:
    """The class in whose body a variable is bound."""
    variable = reader.variable(name) if name.role.kind != "member" else None
    scope = variable[0] if variable is not None else None
    return scope if scope is not None and scope.kind == "class" else None
