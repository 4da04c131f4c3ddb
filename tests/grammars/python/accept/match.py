match x, y:
    case 1 | -2 | 3 + 4j | "a" "b" | None: pass
    case [a, *_, {"k": v, **rest}] if a: pass

    # comment
    case Point(x=0, y=(1 as z)) | a.b.C(): pass
    case _:
        match (y):
            case a, b: pass
match -x:
    case (): pass
match = 1
match.a
match(x)
