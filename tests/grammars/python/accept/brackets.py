x = [
    1,  # one

  2
    ,
  # two
]
y = (a
     if b
     else c)
f(a,
  b)
