kinds = [StopIteration, StopAsyncIteration, GeneratorExit, KeyboardInterrupt, SystemExit, IndexError, AssertionError]
class Own(StopIteration): pass
kinds.append(Own)
calls = 0
def f(x):
    global calls
    calls += 1
    raise kinds[calls % len(kinds)]()
