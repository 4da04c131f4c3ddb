x = 1

class A: pass

def f():
  return \
   1

