ls
# last