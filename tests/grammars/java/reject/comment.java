/* open
class A {}
