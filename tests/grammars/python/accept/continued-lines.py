x and \
  y
assert \
    a, \
    b
from a \
  import b
