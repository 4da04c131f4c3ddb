#!/usr/bin/env python
# comment

if(x): pass
elif not(y):
    z
    # comment at the end of a block
# comment before else
else:

  # other width
  a; b

  c

while True: break
else: continue

async def f[T](a, /, b: int = 1, *args: *Ts, c, d=2, **kw) -> None:
    async with a as b, c: pass
    async for x in y:
        await z
    with (open(a) as b, open(c) as d,):
        pass
    with (a, b): pass
    with (yield): pass
    try:
        pass
    except* (A, B) as e:
        raise
    else:
        pass
    finally:
        return

@dec
@dec.orate(1)[2]
class C(B, metaclass=M):
    """Doc."""
    x: int
    def f(self): return self.x
    @property
    def g(self):
            if a:
                if b:
                 return

try: x
except: y
try:
    x
finally:
    for x in *a, b: pass
