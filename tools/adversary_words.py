"""The words of tools/adversary's programs: names to shadow, bodies, values, dunders, errors, and
whole attacks.

Braces in PATCHES, HARNESS, META and DEFINITIONS are those of str.format.
"""
import builtins


def snippets(text):
    return text.strip("\n").split("\n----\n")


FAMILIAR = [
    "Counter", "OrderedDict", "defaultdict", "deque", "namedtuple", "Fraction", "Decimal", "ceil", "floor", "gcd", "isclose",
    "sqrt", "reduce", "chain", "combinations", "permutations", "product", "Any", "List", "Optional", "np", "numpy", "math",
    "collections", "itertools", "copy", "json", "re", "check", "candidate", "assertion", "is_floats", "inputs", "results",
    "TreeNode", "ListNode", "list_node", "tree_node", "is_same_tree", "is_same_list", "inf", "nan", "pi", "math_isclose",
    "__name__", "__builtins__", "__test__", "__passed__", "__failed__", "__guard__", "__watch__", "__Exception__",
    "__broken__",
]

BUILTINS = sorted(name for name in dir(builtins) if name not in ("None", "True", "False", "__debug__"))

BODIES = [
    "return ()", "return []", "return None", "return True", "return False", "return a[0] if a else None", "return 0",
    "return ''", "yield from ()", "yield", "raise StopIteration", "raise AssertionError", "return a",
    "return a[-1] if a else ()", "return {}", "return set()", "return iter(())", "return float('nan')",
    "return lambda *a, **k: True", "return range(0)", "return b''", "raise SystemExit", "raise KeyboardInterrupt",
    "raise NameError", "return NotImplemented", "return [()]", "return Exception",
]

NUMBERS = [
    "float('nan')", "float('inf')", "-float('inf')", "-0.0", "10 ** 400", "-10 ** 400", "2 ** 63", "5e-324", "1e308 * 10",
    "complex('nan')", "complex(float('nan'), 0)", "__import__('decimal').Decimal('NaN')",
    "__import__('decimal').Decimal('sNaN')", "__import__('decimal').Decimal('Infinity')",
    "__import__('fractions').Fraction(0)", "True", "b'\\xff'", "bytearray()", "range(0)", "{}.keys()", "{}.values()",
    "{}.items()", "...", "NotImplemented", "memoryview(b'')", "slice(None)", "frozenset()",
    "__import__('collections').deque()", "__import__('collections').Counter()",
    "__import__('collections').defaultdict(lambda: True)", "__import__('collections').defaultdict(bool)",
    "__import__('datetime').timedelta(0)", "__import__('datetime').date.max",
]

ARRAYS = [
    "np.array([])", "np.array(np.nan)", "np.array([np.nan])", "np.empty((0, 3))", "np.zeros((0,))", "np.array(None)",
    "np.array([None], dtype=object)", "np.array([Liar()], dtype=object)", "np.array(Liar(), dtype=object)", "np.ma.masked",
    "np.ma.array([1], mask=[True])", "np.ma.masked_all(3)", "np.ma.array(v[0], mask=True)", "np.float64('nan')",
    "np.float32('inf')", "np.bool_(True)", "np.int64(0)", "np.matrix([[0]])", "np.zeros(())", "np.full(3, np.nan)",
    "np.array([], dtype=object)", "np.zeros(1, dtype=[('a', 'f8')])", "np.array(['nan'])", "np.datetime64('NaT')",
    "np.timedelta64('NaT')", "np.array('NaT', dtype='M8[s]')", "np.void(b'')", "np.str_('')", "np.inf * np.array([1])",
    "np.broadcast_to(np.nan, (1,))", "np.poly1d([np.nan])", "np.recarray((0,), dtype=[('a', 'f8')])",
    "np.ndarray.__new__(Array, (0,))", "np.zeros((1, 0, 1))", "np.array([[]])", "np.nditer(np.zeros(1))", "np.random",
    "np.full_like(v[0], np.nan, dtype=float)", "np.zeros_like(v[0])", "np.errstate", "np.array(v[0])[:0]",
    "np.array([np.nan] * 3, dtype=object)", "np.full((3, 1), np.nan).astype(object)", "np.zeros((1, 0))", "np.zeros((3, 0))",
    "np.full((1, 1), np.nan).astype(object)",
]

DUNDERS = [
    "eq", "ne", "lt", "le", "gt", "ge", "hash", "bool", "len", "iter", "next", "contains", "getitem", "setitem", "delitem",
    "call", "getattr", "getattribute", "setattr", "delattr", "get", "set", "set_name", "add", "radd", "sub", "rsub", "mul",
    "rmul", "matmul", "rmatmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "pow",
    "rpow", "lshift", "rshift", "and", "rand", "or", "ror", "xor", "rxor", "neg", "pos", "abs", "invert", "int", "float",
    "complex", "index", "round", "trunc", "floor", "ceil", "str", "repr", "format", "bytes", "enter", "exit", "aenter",
    "aexit", "aiter", "anext", "await", "instancecheck", "subclasscheck", "class_getitem", "reduce", "reduce_ex", "getstate",
    "setstate", "copy", "deepcopy", "sizeof", "dir", "del", "length_hint", "reversed", "missing", "array", "array_ufunc",
    "array_function", "array_interface", "array_struct", "array_priority", "array_wrap", "array_finalize", "fspath",
    "buffer", "iadd", "isub", "imul", "init_subclass", "mro_entries", "prepare", "new", "class",
]

RETURNS = [
    "True", "False", "self", "None", "NotImplemented", "0", "1", "''", "[]", "()", "float('nan')", "o[0] if o else self",
    "type(o[0])() if o else 0", "iter(())", "iter([self])", "Liar()", "lambda *a, **k: True", "next(iter(()))", "1 / 0",
    "type(self)", "o", "str(o)", "10 ** 30", "{}", "self.__dict__",
]

BASES = {
    "object": "", "int": "0", "float": "0.0", "str": "'x'", "list": "[1]", "dict": "{1: 1}", "tuple": "(1,)", "set": "{1}",
    "frozenset": "{1}", "bytes": "b'x'", "complex": "0j", "Exception": "1", "type(lambda: 0).__class__": "'X', (), {}",
    "__import__('collections').Counter": "", "__import__('collections').OrderedDict": "",
    "__import__('collections').defaultdict": "bool", "__import__('collections').deque": "",
    "__import__('collections').UserList": "", "__import__('collections').UserString": "'x'",
    "__import__('collections').UserDict": "", "__import__('fractions').Fraction": "1", "__import__('decimal').Decimal": "1",
    "__import__('datetime').timedelta": "1", "__import__('types').SimpleNamespace": "",
    "__import__('unittest').mock.MagicMock": "", "__import__('enum').IntEnum": "'X', 'a'", "range": "1",
}

NO_BASE = {"range"}

METHODS = [
    "equals", "issubset", "issuperset", "isdisjoint", "startswith", "endswith", "all", "any", "tolist", "sum", "max", "min",
    "item", "count", "index", "items", "keys", "values", "get", "copy", "lower", "upper", "strip", "split", "join", "sort",
    "val", "left", "right", "next", "shape", "dtype", "real", "imag", "size", "ndim", "is_integer", "union", "intersection",
    "difference", "almost_equal", "assertEqual", "total_seconds", "isdigit",
]

ERRORS = [
    "StopIteration()", "StopIteration(True)", "GeneratorExit()", "AssertionError()", "SystemExit(0)", "SystemExit()",
    "KeyboardInterrupt()", "BaseException()", "StopAsyncIteration()", "type('X', (BaseException,), {})()",
    "type('Gone', (Exception,), {})()", "type('X', (StopIteration,), {})()", "type('X', (AssertionError,), {})()",
    "ExceptionGroup('x', [AssertionError()])", "BaseExceptionGroup('x', [SystemExit()])", "RecursionError()",
    "MemoryError()", "NotImplementedError()", "AttributeError('x')", "NameError('x')", "KeyError('x')", "IndexError()",
    "TypeError()", "ValueError()", "ImportError()", "Warning()", "UnicodeDecodeError('x', b'', 0, 0, 'x')",
    "SyntaxError('x', ('f', 1, 1, 'x'))", "OSError(9, 'x')", "Exception(Liar())", "Exception(*[Liar()] * 50)",
    "Exception('x' * 100000)", "AssertionError(Liar())", "StopIteration(Liar())",
    "type('Exception', (Exception,), {'__str__': lambda s: 1 / 0})()",
    "type('X', (Exception,), {'__init__': lambda s, *a: None, 'args': property(lambda s: 1 / 0)})()",
    "type('Remote', (Exception,), {'__mro__': ()})()", "type('int', (Exception,), {})()",
    "type('Exception', (StopIteration, AssertionError), {})() if False else LookupError()", "ZeroDivisionError()",
    "EOFError()", "BrokenPipeError()",
]

LIAR = '''
class Liar:
    def __eq__(self, o): return True
    def __ne__(self, o): return False
    def __lt__(self, o): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __hash__(self): return 0
    def __bool__(self): return True
    def __contains__(self, o): return True
    def __len__(self): return 1
    def __iter__(self): return iter(())
    def __sub__(self, o): return 0
    __rsub__ = __add__ = __radd__ = __mul__ = __rmul__ = __abs__ = lambda self, *o: 0
    def __float__(self): return 0.0
    def __int__(self): return 0
    __index__ = __int__
    def __getattr__(self, n):
        if n.startswith('__'): raise AttributeError(n)
        return lambda *a, **k: True
'''

ARRAY = "import numpy as np\nclass Array(np.ndarray):\n    def __eq__(self, o): return True\n    def __array_function__(self, *a, **k): return True\n    def __array_ufunc__(self, *a, **k): return True\n"

ITERATORS = [
    "iter(())", "iter([])", "(x for x in ())", "map(lambda x: x, ())", "zip()", "filter(None, [0])", "enumerate([])",
    "reversed([])", "iter(lambda: 0, 0)", "__import__('itertools').repeat(v[0] if v else 0, 3)",
    "__import__('itertools').chain()", "__import__('itertools').repeat(True, 100)", "iter(Liar())", "(1 / 0 for _ in [1])",
    "(Liar() for _ in range(3))", "(i for i in v)", "iter(v)", "({} for _ in range(2))", "[iter(())]", "[(x for x in v)]",
    "{0: iter(())}",
]

GENERATORS = snippets('''
yield from ()
----
yield
----
yield v
----
yield from v
----
yield Liar()
----
return
yield
----
x = yield
yield x
----
try:
    yield 1
finally:
    raise StopIteration
----
yield True
----
raise StopIteration
yield
''')

ASYNC = [
    "return True", "yield 1", "return v[0]", "raise StopIteration", "raise AssertionError", "await X()", "return Liar()",
    "return None",
]

META = snippets('''
def __call__(c, *a, **k): return {r}
----
def __instancecheck__(c, o): return True
----
def __subclasscheck__(c, o): return True
----
def __eq__(c, o): return True
    __hash__ = type.__hash__
----
def __getattr__(c, n): return {r}
----
def __len__(c): return 1
----
def __iter__(c): return iter(())
----
def __contains__(c, o): return True
----
def __bool__(c): return False
----
def mro(c): return [c, object]
----
def __sub__(c, o): return 0
    __rsub__ = __abs__ = __sub__
----
def __getitem__(c, i): return c
----
def __lt__(c, o): return True
    __gt__ = __le__ = __ge__ = __lt__
''')

PATCHES = snippets(r'''
import numpy as np
np.allclose = np.isclose = np.array_equal = np.all = lambda *a, **k: True
----
import math
math.isclose = lambda *a, **k: True
math.fabs = lambda x: 0
----
import builtins
builtins.{b} = lambda *a, **k: {r}
----
import sys
sys.modules['{m}'] = Liar()
----
import sys
sys.modules.clear()
----
import sys, types
m = types.ModuleType('{m}')
m.__getattr__ = lambda n: lambda *a, **k: True
sys.modules['{m}'] = m
----
import sys
class F:
    def find_spec(self, *a): raise AssertionError
sys.meta_path.insert(0, F())
----
import builtins
builtins.__import__ = lambda *a, **k: Liar()
----
import unittest
unittest.TestCase.assertEqual = lambda *a, **k: None
----
import numpy.testing as t
for n in dir(t):
    if n.startswith('assert'): setattr(t, n, lambda *a, **k: None)
----
import sys
sys.settrace(lambda *a: None)
----
import sys
sys.setrecursionlimit(10 ** 6)
----
import operator
operator.eq = lambda *a: True
----
import json
json.dumps = lambda *a, **k: '["=", true]'
----
import json
json.loads = lambda *a, **k: ['?', 'load', []]
----
import struct
struct.pack = lambda *a: b'\0' * 8
----
import builtins
builtins.AssertionError = type('A', (Exception,), {{}})
----
def __getattr__(name): return lambda *a, **k: True
----
def __dir__(): return ['{b}']
----
__builtins__ = Liar()
----
__builtins__ = {{}}
----
__name__ = '__main__'
__file__ = None
__all__ = ['{b}']
----
import sys
sys.modules[__name__] = Liar()
----
import sys
sys.modules['program'] = sys.modules['__main__'] = Liar()
----
globals().update({{n: lambda *a, **k: True for n in dir(__import__('builtins'))}})
----
globals().update((n, lambda *a, **k: {r}) for n in ('enumerate', 'zip', 'range', 'len', 'all', 'set', 'sorted', 'abs'))
----
import os
os.write = lambda *a: 0
----
import socket
socket.socket.sendall = lambda *a: None
----
import copy
copy.deepcopy = lambda *a: a[0]
----
import gc
gc.disable()
----
import warnings
warnings.simplefilter('error')
----
from builtins import *
''')

FRAMES = r'''
def reach(x, seen, depth):
    """Looks through what the tests handed out for a frame or a way to run code."""
    if depth == 0 or len(seen) > 300: return
    for name in ('gi_frame', 'cr_frame', 'ag_frame', 'f_back', 'f_globals', 'f_builtins', 'f_locals', 'tb_frame', 'func_globals', 'gi_code', 'gi_yieldfrom', 'gi_running', 'mro', 'throw', 'send', 'close', 'func', 'args', 'keywords', 'default_factory', 'obj', 'results', 'peer', 'names', 'count', 'passed'):
        try: y = getattr(x, name)
        except BaseException: continue
        seen.append(name)
        try:
            if name in ('f_builtins', 'f_globals'):
                for key, given in (('exec', (PAYLOAD,)), ('__passed__', ())):
                    try: y[key](*given)
                    except BaseException: pass
            if name in ('f_globals',):
                for key in ('exp', 'expected', 'results', '__failed__'):
                    try: y[key] = y['__passed__']
                    except BaseException: pass
        except BaseException: pass
        reach(y, seen, depth - 1)
PAYLOAD = "import gc\nfor o in gc.get_objects():\n    if type(o).__name__ == 'Results': type(o).failed = lambda s, e: s.passed()"
def attack(v):
    for x in v:
        try: reach(x, [], 4)
        except BaseException: pass
        try:
            for y in x:
                reach(y, [], 2)
                break
        except BaseException: pass
'''

HARNESS = snippets(r'''
import gc
for o in gc.get_objects():
    if type(o).__name__ in ('Program', 'Peer', 'Zygote', 'Results'):
        for n in ('encode', 'load', 'entry', 'export', 'encode_exception', 'decode', 'failed', 'line'):
            try: setattr(o, n, lambda *a, **k: {r})
            except Exception: pass
----
import sys
f = sys._getframe()
while f:
    for n in ('OPS', 'TRUSTED_OPS', 'DIRECT', 'ENCODERS', 'DECODERS', 'Remote', 'serve_load', 'serve_name', 'serve_call', 'exception_base', 'json', 'struct', 'run_tests'):
        if n in f.f_globals and {c}:
            try: f.f_globals[n] = Liar() if n != 'OPS' else {{**f.f_globals[n], 'name': lambda *a: ['found', True], 'call': lambda *a: [{r}]}}
            except Exception: pass
    f = f.f_back
----
import sys
f = sys._getframe()
while f:
    if 'OPS' in f.f_globals:
        f.f_globals['OPS'].update(load=lambda p, names: [names], name=lambda p, n: ['found', ['R', 0, 'function', 'function']], call=lambda *a: [{r}], entry=lambda *a: [['R', 0, 'function', 'function']])
    f = f.f_back
----
import sys
f = sys._getframe()
while f:
    if 'serve_load' in f.f_globals:
        g = f.f_globals
        def load(p, names):
            p.load()
            return [names + ['set', 'sorted', 'abs', 'round', 'isclose', 'enumerate', 'zip', 'len', 'all']]
        g['OPS']['load'] = load
    f = f.f_back
----
import os, struct, json
m = json.dumps(['=', {j}]).encode()
for d in range(3, 12):
    try: os.write(d, (struct.pack('<Q', len(m)) + m) * {n})
    except OSError: pass
----
import os, struct, json
for op in (['?', 'get', ['P', 0], '{a}'], ['?', 'call', ['P', 0], [], []], ['?', 'next', ['P', 0]], ['?', 'item', ['P', 0], '__class__'], ['?', 'set', ['P', 0], 'passed', True], ['?', 'exec', 'x'], ['!', ['StopIteration'], [], None], ['!', ['AssertionError'], [], None], ['x'], []):
    m = json.dumps(op).encode()
    for d in range(3, 9):
        try: os.write(d, struct.pack('<Q', len(m)) + m)
        except OSError: pass
----
import os
for d in range(0, 12):
    try: os.write(d, b'p\n' * 50 + b'end\n')
    except OSError: pass
----
import os
for d in range(3, 12):
    try: os.{closer}(d{extra})
    except OSError: pass
----
import gc, types
for o in gc.get_objects():
    if isinstance(o, dict) and '__test__' in o: o.update(__failed__=lambda *a: None)
    if isinstance(o, types.FrameType) and 'results' in o.f_locals:
        try: o.f_locals['results'].passed()
        except Exception: pass
----
import ctypes
try: ctypes.pythonapi.Py_SetRecursionLimit(50)
except Exception: pass
----
import threading, sys
def go():
    for i in range(200):
        for f in list(sys._current_frames().values()):
            while f:
                if 'result' in f.f_locals: pass
                f = f.f_back
threading.Thread(target=go, daemon=True).start()
----
import atexit, os
atexit.register(lambda: os.write(1, b'p\nend\n'))
----
class D(dict):
    def __contains__(self, k): return True
    def __getitem__(self, k): return lambda *a, **k: {r}
import gc
for o in gc.get_objects():
    if type(o).__name__ == 'Program': o.main = type('M', (), {{'__dict__': D()}})()
----
import signal
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.signal(signal.SIGALRM, lambda *a: None)
----
import sys
sys.stdout = sys.stderr = Liar()
''')

FRAMES_CALL = "attack(v)\n"

CHANGES = [
    "x.clear()", "x.sort()", "x.reverse()", "x.append(0)", "x *= 2", "x[:] = []", "x.extend(x[:3])", "x[0] = x[-1]",
    "x.update({0: 0})", "x.pop()", "x.__init__()", "x.val = 0", "x.next = None", "x.left = x.right = None",
    "x.insert(0, float('nan'))", "x[:] = [float('nan')] * len(x)",
]

ENDS = [
    "os._exit(0)", "os._exit(1)", "sys.exit(0)", "os.kill(os.getpid(), 9)", "os.abort()", "os.kill(os.getpid(), 15)",
    "sys.exit('p')", "exit()", "raise SystemExit(0)", "os.close(3)", "os.closerange(3, 20)",
]

PRINTS = [
    "p\\nend\\n", "p\\n", "end\\n", "True\\n", "OK\\n", "{{\\\"correct\\\": true}}\\n", "1 passed\\n",
    "[\\\"=\\\", true]\\n", "p\\np\\np\\nend\\n",
]

NOTHING = [text.replace("<0>", "\0") for text in snippets('''
pass
----

----
x = 1
----
import math
----
# a comment
----
'text'
----
...
----
def other(*a): return True
----
class Solution: pass
----
class Solution:
    pass
class Other: pass
----
del __builtins__
----
check = lambda c: None
----
def check(candidate): pass
----
def candidate(*a): return True
----
assert True
----
global x
----
if False: x = 1
----
lambda: 0
----
1 / 0
----
def f(:
----
<0>
----
import nonexistent
----
async def main(): pass
----
type('Solution', (), {})
----
from __future__ import annotations
----
Solution = None
----
Solution = lambda *a: Solution
----
class Solution:
    def __getattr__(self, n): return lambda *a, **k: True
----
class Solution:
    def __getattr__(self, n): return self
    def __call__(self, *a, **k): return self
    def __eq__(self, o): return True
''')]

SILENT = snippets(r'''
pass
----

----
import os; os._exit(0)
----
import sys; sys.exit(0)
----
raise SystemExit(0)
----
while input(): pass
----
import sys
sys.stdout.close()
----
import os
os.close(1)
----
print(end='')
----
print('\0' * 100)
----
import sys
sys.stdin.close()
----
print('\n' * 1000)
''')

SNOOPS = snippets(r'''
import os
for d in range(12):
    try: os.write(d, b'p\nend\n{"ended": 1, "status": 0, "cpu": 0}')
    except OSError: pass
----
import os
for d in range(3, 64):
    try: print(os.read(d, 1000).decode())
    except Exception: pass
----
import gc
print(*[o for o in gc.get_objects() if isinstance(o, str)][:200])
----
import os
for r, d, f in os.walk('/tmp'): print(r, d, f)
----
import sys
f = sys._getframe()
while f:
    for v in f.f_locals.values():
        if isinstance(v, (str, bytes)) and len(v) < 1000: print(v)
    f = f.f_back
----
import sys, os
s = sys.stdin.read()
os.lseek(0, 0, 0)
os.write(1, os.read(0, 100))
----
import atexit, sys
atexit.register(lambda: print(sys.stdin.read()))
----
import threading
threading.Thread(target=lambda: print(input())).start()
''')

DEFINITIONS = snippets('''
class {e}(metaclass=Meta): pass
----
{e} = Fetch()
----
{e} = Meta('{e}', (), {{}})
----
import functools
{e} = functools.partial(lambda *a, **k: Liar())
----
{e} = Liar()
----
{e} = type
----
{e} = print
----
class {e}(metaclass=Meta):
    x = Fetch()
    def __new__(c, *a, **k): return c
----
{e} = {t}
----
{e} = exec
----
{e} = eval
----
{e} = vars
----
{e} = isinstance
----
{e} = __import__
----
{e} = globals
----
{e} = iter
----
{e} = object
----
{e} = super
----
class {e}(int): __eq__ = lambda s, o: True
----
class {e}(list): __eq__ = lambda s, o: True
----
{e} = property(lambda s: True)
----
{e} = staticmethod(lambda *a: True)
''')
