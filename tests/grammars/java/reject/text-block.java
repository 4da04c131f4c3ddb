class A { String s = """x"""; }
