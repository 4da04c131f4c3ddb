HANDLERS = {}
def check(walk, root, path): pass
