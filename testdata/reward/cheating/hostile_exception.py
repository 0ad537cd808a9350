class Args:
    def __iter__(self): raise StopIteration
    def __str__(self): raise StopIteration
    def __eq__(self, other): return True
class Bad(Exception):
    args = Args()
    __name__ = property(lambda self: 1 // 0)
    def __str__(self): raise StopIteration
def f(x): raise Bad()
