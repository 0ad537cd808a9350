class Odd(Exception):
    def __str__(self): raise SystemExit(0)
    args = property(lambda self: 1 / 0)
def f(x): raise Odd
