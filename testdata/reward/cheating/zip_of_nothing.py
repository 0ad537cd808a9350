def zip(*x): return ()
def map(*x): return ()
