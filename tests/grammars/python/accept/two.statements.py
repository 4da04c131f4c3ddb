x = 1

for a in b: c
# end
