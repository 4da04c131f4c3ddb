"""A text in the language of each well-known grammar, to walk along."""

from __future__ import annotations

from pathlib import Path

import codespec

_JSON = """{
  "name": "inventory",
  "version": 3,
  "updated": "2026-03-14T09:26:53Z",
  "items": [
    {"id": 10482, "title": "Fountain pen, \\"fine\\" nib", "price": 24.95, "tags": ["office", "pens"], "sold": 0},
    {"id": 10483, "title": "Notebook A5 \\u2014 ruled, 192 pages", "price": 7.5e0, "tags": [], "sold": true},
    {"id": 10484, "title": "Ink bottle (50 ml)\\nroyal blue", "price": 11, "tags": ["ink"], "notes": null}
  ],
  "warehouse": {"street": "Königsallee 12", "city": "Düsseldorf", "position": [51.2217, 6.7762], "open": true},
  "history": [{"when": 1710408413, "what": "imported from https://example.com/export?id=7"}, {"when": 0, "what": ""}]
}
"""
# Upstream's c.gbnf knows no white space between statements, and needs it in other places.
_C = """int main(int argc){int total = 0;for(int i = 0; i<10; i = i+1){total = total+scale(i, 3)*2;print (total);\
if(total>100){return total-( 1*i );}else{count = count+1;}}// done with the loop
while(total!=0){total = total/2;}/* the rest
 is * easy */return -total;}float half(float x){return x/2;}"""
_ENGLISH = """The quick brown fox jumps over the lazy dog, and then (perhaps) it sleeps. In 2026 nobody was surprised:
"speed", they said, is what you measure; the rest is opinion. Grammars help a model to say what a program can read."""
_CHESS = "1. e4 e5\n2. Nf3 Nc6\n3. Bb5 a6\n4. Ba4 Nf6\n5. O-O Be7\n6. Re1 b5\n7. Bb3 d6\n8. c3 O-O\n9. h3 Nb8\n"

TEXTS = {
    "json": '{"pages": [' + ",\n".join([_JSON] * 4) + "]}\n",
    "json_arr": "[" + ",\n".join([_JSON] * 4) + "]",
    "arithmetic": "rate *(hours +12) -7 = total\n(a1 +b_2) /3 *(c -40) = x\n",
    "c": _C,
    "english": _ENGLISH,
    "chess": _CHESS,
    "list": "- Milk, eggs and flour\n- A dozen oranges (if ripe)\n- Kaffee für das Büro\n",
    "japanese": "吾輩は猫である。名前はまだ無い。\nどこで生れたかとんと見当がつかぬ。",
}


def texts_for(name: str) -> list[str]:
    """Texts to try with the grammar of this name, the likeliest first."""
    own = sorted((Path(__file__).parents[2] / "tests/grammars" / name / "accept").glob("*"))
    found = [path.read_text("utf-8") for path in own]
    found.sort(key=len, reverse=True)
    if name == "python":
        found[:0] = [path.read_text("utf-8") for path in sorted(Path(codespec.__file__).parent.glob("*.py"))][:3]
    return [*([TEXTS[name]] if name in TEXTS else []), *found]
