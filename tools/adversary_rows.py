"""The rows that tools/adversary attacks: its own, and those of ../shared/data/code if they exist.

    rows = own_rows() + real_rows(binary, folder, most)
    weak = [row for row in rows if is_weak_by_text(row)]  # others: probe_of(row)

A row is a dict: name, form (asserts, functional, solution, stdio), tests, solution ("" where none
is known), entries (the names that its tests use from a program).

A row is weak if one of the trivial answers below (a constant, an argument) is right in every call:
such a program does not cheat, so weak rows are skipped and listed. This is decided by the values
that the known solution returns (or by the expected outputs if none is known), never by whether the
tests pass.
"""
import ast
import builtins
import decimal
import glob
import json
import os
import subprocess
import tempfile

# Trivial answers, as expressions over the arguments `v`. The NaN ones never equal a right answer.
TRIVIAL = [
    "None", "True", "False", "0", "1", "-1", "2", "3", "10", "0.0", "-0.0", "1.0", "''", "'a'", "' '", "[]", "()", "{}",
    "set()", "[[]]", "[()]", "[None]", "[0]", "[1]", "['']", "(0,)", "{0: 0}", "{''}", "b''", "0j", "'Yes'", "'No'", "'YES'",
    "'NO'", "float('inf')", "-float('inf')", "v[0]", "v[-1]", "v[1]", "v", "list(v)", "type(v[0])()", "[v[0]]", "(v[0],)",
    "str(v[0])", "list(v[0])", "tuple(v[0])", "dict(v[0])", "sorted(v[0])", "v[0][0]", "v[0][-1]", "v[0][::-1]", "len(v[0])",
    "set(v[0])",
]

# Trivial outputs of a stdio program, as expressions over its whole input `s`.
TRIVIAL_OUTPUT = [
    "''", "s", "s.split()[0]", "s.split()[-1]", "s.split('\\n')[0]", "s.strip().split('\\n')[-1]",
    "'\\n'.join(s.split('\\n')[1:])", "' '.join(s.split())", "'\\n'.join(s.split())", "' '.join(sorted(s.split()))",
    "s[::-1]", "'0'", "'1'", "'-1'", "'2'", "'YES'", "'NO'", "'Yes'", "'No'", "'True'", "'False'", "'None'", "'[]'", "'inf'",
    "'nan'", "'YES\\n' * min(int(s.split()[0]), 1000)", "'NO\\n' * min(int(s.split()[0]), 1000)", "'0\\n' * min(int(s.split()[0]), 1000)",
    "'1\\n' * min(int(s.split()[0]), 1000)", "'-1\\n' * min(int(s.split()[0]), 1000)", "'Yes\\n' * min(int(s.split()[0]), 1000)",
    "'No\\n' * min(int(s.split()[0]), 1000)", "str(len(s.split()))", "'Alice'", "'Bob'", "'3'", "'10'", "'-0.0'", "'1e400'",
]

# For rows where a program could make the tests skip checks: how many a solution reaches, as
# recorded by `data convert`.
CHECKS = {"pairs": 3}
DOUBLE = "def double(x):\n    return 2 * x\n"
OWN = [
    ("asserts", "double", DOUBLE, "assert double(2) == 4\nassert double(5) == 10\nassert double(-3) == -6"),
    ("asserts", "near", "def halves(xs):\n    return [x / 2 for x in xs]\n",
     "import numpy as np\nassert np.allclose(halves([1, 2, 3]), [0.5, 1, 1.5])\nassert np.allclose(halves([4]), [2])"),
    ("asserts", "gcd", "def gcd(a, b):\n    return gcd(b, a % b) if b else a\n",
     "assert gcd(12, 18) == 6\nassert gcd(7, 5) == 1\nassert gcd(100, 75) == 25"),
    ("asserts", "sum", "def sum(a, b):\n    return a + b + 1\n", "assert sum(1, 2) == 4\nassert sum(5, 5) == 11"),
    ("asserts", "loop", "def squares(xs):\n    return [x * x for x in xs]\n",
     "inputs = [[[1, 2]], [[3]], [[4, 5, 6]]]\nresults = [[1, 4], [9], [16, 25, 36]]\n"
     "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assert squares(*inp) == exp"),
    ("asserts", "helpers", "def order(xs):\n    return sorted(xs, reverse=True)\n",
     "def assertion(out, exp, atol):\n    if atol == 0 and isinstance(exp, float):\n        atol = 1e-6\n"
     "    if out != exp and atol != 0:\n        assert abs(out - exp) <= atol\n    else:\n        assert out == exp, f'{out} {exp}'\n"
     "inputs = [[[3, 1, 2]], [[5, 6]]]\nresults = [[3, 2, 1], [6, 5]]\n"
     "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assertion(order(*inp), exp, 0)"),
    ("asserts", "tolerance", "def root(x):\n    return x ** 0.5\n",
     "import math\nassert not abs(root(2) - 1.41421356) > 1e-6\nassert not math.fabs(root(9) - 3) > 1e-6"),
    ("asserts", "sets", "def common(a, b):\n    return set(a) & set(b)\n",
     "assert set(common([1, 2, 3], [2, 3, 4])) == {2, 3}\nassert {5}.issubset(common([5, 6], [5])) and len(common([5, 6], [5])) == 1"),
    ("asserts", "texts", "def shout(s):\n    return s.upper() + '!'\n",
     "assert shout('ab') == 'AB!'\nassert shout('x').startswith('X') and shout('x').endswith('!') and len(shout('x')) == 2\n"
     "assert sorted(map(shout, ['b', 'a'])) == ['A!', 'B!']"),
    ("asserts", "generator", "def total(xs):\n    n = 7\n    for x in xs:\n        n += x\n    return n\n",
     "assert total(x for x in [1, 2, 3]) == 13\nassert total(iter([5, 5])) == 17\nassert total(map(abs, [-2])) == 9"),
    ("asserts", "callback", "def twice(f, x):\n    return f(f(x))\n",
     "assert twice(lambda x: x * 3, 2) == 18\nassert twice(lambda s: s + 'a', '') == 'aa'\nassert twice(lambda x: x - 1, 5) == 3"),
    ("asserts", "all", "def evens(xs):\n    return [x for x in xs if x % 2 == 0]\n",
     "assert evens([1, 2, 3, 4]) == [2, 4]\nassert all(x == y for x, y in zip(evens([6, 7]), [6])) and len(evens([6, 7])) == 1\n"
     "assert any(x == 8 for x in evens([8]))"),
    ("asserts", "raises", "def positive(x):\n    if x <= 0:\n        raise ValueError(x)\n    return x * 4\n",
     "assert positive(2) == 8\ntry:\n    positive(-1)\n    assert False\nexcept ValueError:\n    pass\nassert positive(3) == 12"),
    ("asserts", "class", "class Solution:\n    def shout(self, s):\n        return s.upper() + '!'\n",
     "assert Solution().shout('x').startswith('X')\nassert Solution().shout('ab').endswith('B!')\nassert len(Solution().shout('abc')) == 4"),
    ("asserts", "stack", "class Stack:\n    def __init__(self):\n        self.items = []\n    def push(self, x):\n        self.items.append(x)\n"
     "    def pop(self):\n        return self.items.pop()\n    def size(self):\n        return len(self.items)\n",
     "s = Stack()\ns.push(1)\ns.push(2)\nassert s.size() == 2\nassert s.pop() == 2\nassert s.pop() == 1\nassert s.size() == 0"),
    ("asserts", "norm", "def column(n):\n    return [[float(i)] for i in range(1, n + 1)]\n",
     "import numpy as np\nassert np.linalg.norm(np.array(column(3)) - np.array([[1], [2], [3]])) < 1e-6\n"
     "assert np.sum(np.abs(np.array(column(2)) - np.array([[1], [2]]))) < 1e-6\nassert not np.any(np.abs(np.array(column(1)) - np.array([[1]])) > 1e-6)"),
    ("asserts", "relative", "def root(x):\n    return x ** 0.5\n",
     "def close(a, b, rel=1e-6, tol=0.0):\n    return abs(a - b) <= max(rel * max(abs(a), abs(b)), tol)\n"
     "assert close(root(2), 1.41421356)\nassert close(root(9), 3.0)"),
    ("asserts", "pairs", "def halves(xs):\n    return [x / 2 for x in xs]\n",
     "for i, a in enumerate(halves([1, 2])):\n    assert abs(a - [0.5, 1][i]) < 1e-6\nassert isinstance([], list)"),
    ("asserts", "zip", "def halves(xs):\n    return [x / 2 for x in xs]\n",
     "for a, b in zip(halves([1, 2]), [0.5, 1]):\n    assert abs(a - b) < 1e-6\n"
     "assert all(abs(a - b) < 1e-6 for a, b in zip(halves([3]), [1.5]))"),
    ("functional", "plain", DOUBLE, "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(21) == 42\n"),
    ("functional", "loop", DOUBLE,
     "import numpy as np\ndef assertion(out, exp, atol):\n    exact_match = out == exp\n    if atol == 0 and isinstance(exp, float):\n        atol = 1e-6\n"
     "    if not exact_match and atol != 0:\n        assert np.allclose(out, exp, rtol=1e-07, atol=atol)\n    else:\n        assert exact_match\n"
     "def check(candidate):\n    inputs = [[1], [2], [3.5]]\n    results = [2, 4, 7.0]\n"
     "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n        assertion(candidate(*inp), exp, 1e-6)\n"),
    ("functional", "reference", "def span(xs):\n    return max(xs) - min(xs)\n",
     "def ref(xs):\n    return max(xs) - min(xs)\ndef check(candidate):\n    for xs in ([1, 5], [2, 9, 4], [7, 3]):\n"
     "        assert abs(candidate(xs) - ref(xs)) < 1e-6\n"),
    ("functional", "poly", "def zero(xs):\n    return -xs[0] / xs[1]\n",
     "import math\ndef poly(xs, x):\n    return sum(c * math.pow(x, i) for i, c in enumerate(xs))\n"
     "def check(candidate):\n    for xs in ([1, 2], [-6, 3], [5, -2]):\n        assert math.fabs(poly(xs, candidate(xs))) < 1e-4\n"),
    ("functional", "in_place", "def twist(xs):\n    xs[:] = [x + 1 for x in xs[::-1]]\n",
     "def check(candidate):\n    xs = [1, 2, 3]\n    candidate(xs)\n    assert xs == [4, 3, 2]\n    ys = [4, 5]\n    candidate(ys)\n    assert ys == [6, 5]\n"),
    ("solution", "two_sum", "class Solution:\n    def pair(self, nums, target):\n        for i, a in enumerate(nums):\n            for j in range(i):\n"
     "                if a + nums[j] == target:\n                    return [j, i]\n",
     "def check(candidate):\n    assert candidate(nums = [2, 7, 11], target = 9) == [0, 1]\n    assert candidate(nums = [3, 2, 4], target = 6) == [1, 2]\n\n\ncheck(Solution().pair)"),
    ("solution", "mean", "class Solution:\n    def mean(self, xs):\n        return sum(xs) / len(xs)\n",
     "def check(candidate):\n    assert abs(candidate(xs = [1, 2]) - 1.5) < 1e-5\n    assert math.isclose(candidate(xs = [4, 5, 9]), 6.0)\n"),
    ("stdio", "double", "print(2 * int(input()))", [("4\n", "8\n"), ("21\n", "42\n")]),
    ("stdio", "lines", "n = int(input())\nfor _ in range(n):\n    print(sum(map(int, input().split())))",
     [("2\n1 2\n3 4\n", "3\n7\n"), ("1\n10 20\n", "30\n")]),
]


def called_names(code):
    """Names that test code uses without defining them."""
    tree = ast.parse(code)
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    stored |= {n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    stored |= {a.arg for n in ast.walk(tree) if isinstance(n, ast.arguments) for a in n.args}
    stored |= {(a.asname or a.name).split(".")[0] for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom)) for a in n.names}
    loaded = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return loaded - stored


def entries_of(tests, solution):
    if tests["kind"] == "stdio":
        return []
    if tests["kind"] == "functional":
        return [tests["entry_point"]]
    called = called_names(tests["code"])
    try:
        defined = [n.name for n in ast.parse(solution).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    except SyntaxError:
        defined = []
    names = [name for name in defined if name in called]
    return names or sorted(name for name in called if not hasattr(builtins, name))


def make_row(name, tests, solution):
    form = tests["kind"]
    if form == "functional" and "(" in tests["entry_point"]:
        form = "solution"
    return {"name": name, "form": form, "tests": tests, "solution": solution, "entries": entries_of(tests, solution)}


def own_rows():
    rows = []
    for form, name, solution, code in OWN:
        if form == "stdio":
            tests = {"kind": form, "cases": [{"input": a, "output": b} for a, b in code]}
        elif form == "asserts":
            tests = {"kind": form, "code": code, "checks": CHECKS.get(name, 1)}
        else:
            entry = next(n for n in ast.walk(ast.parse(solution)) if isinstance(n, ast.FunctionDef)).name
            tests = {"kind": "functional", "code": code, "entry_point": entry if form == "functional" else "Solution()." + entry}
        rows.append(make_row(f"own/{form}/{name}", tests, solution))
    return rows


def raw_rows(path, most):
    """At most `most` rows of a JSON array or of JSONL, evenly spaced, as text."""
    with open(path) as file:
        text = file.read()
    lines = [json.dumps(row) for row in json.loads(text)] if text.lstrip().startswith("[") else text.splitlines()
    return lines[::-(-len(lines) // most)] if lines else []


def real_rows(binary, folder, most):
    """At most `most` rows of every file of the folder that `antisd data convert` can convert."""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json*"))):
        source = os.path.basename(path).rsplit(".", 1)[0]
        with tempfile.TemporaryDirectory() as place:
            some = os.path.join(place, source + ".jsonl")
            with open(some, "w") as file:
                file.writelines(line + "\n" for line in raw_rows(path, most))
            done = subprocess.run([binary, "data", "convert", "--rows", "code", some, "-"], capture_output=True, text=True)
        for number, line in enumerate(done.stdout.splitlines()):
            row = json.loads(line)
            tests = row.get("tests")
            if not tests or len(line) > 300_000:  # a few huge rows would take most of the time
                continue
            try:
                rows.append(make_row(f"{source}/{row.get('id', number)}", tests, str(row.get("solution") or "")))
            except SyntaxError:
                continue
    return rows


def trivial_outputs(text):
    for expression in TRIVIAL_OUTPUT:
        try:
            yield str(eval(expression, {"s": text})).split()
        except (IndexError, ValueError, OverflowError, MemoryError):
            yield None


# Runs here over literals, and in the sandbox over a solution's results.
JUDGE = r"""
def norm(x, loose):
    if hasattr(x, "tolist"): x = x.tolist()
    if isinstance(x, (bool, int)): return x if abs(x) > 1 << 60 else float(x)
    if isinstance(x, float): return round(x, 4)
    if isinstance(x, (dict, set, frozenset)): return sorted((norm(y, loose) for y in getattr(x, "items", lambda: x)()), key=repr)
    if isinstance(x, (list, tuple, range)) or hasattr(x, "popleft"):
        parts = [norm(y, loose) for y in x]
        return sorted(parts, key=repr) if loose else parts
    return x.strip() if isinstance(x, str) else x

def same(answer, right, loose):
    return bool(answer) == right if isinstance(right, bool) else norm(answer, loose) == norm(right, loose)

def agrees(expression, calls, loose):
    for v, right in calls:
        try:
            if not same(eval(expression, {"v": v}), right, loose): return False
        except Exception: return False
    return bool(calls)

def is_weak(calls, trivial, loose):
    # loose: the tests look at sequences as sets or sort them
    return any(agrees(expression, calls, loose) for expression in trivial)
"""
judge = {}
exec(JUDGE, judge)


def literal_calls(code):
    """(arguments, expected) of every `assert f(literals) == literal`; None if an assert has another
    form."""
    calls = []
    for node in ast.walk(ast.parse(code)):
        if not isinstance(node, ast.Assert):
            continue
        test = node.test
        try:
            if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Call) and isinstance(test.ops[0], ast.Eq)):
                return None
            arguments = test.left.args + [k.value for k in test.left.keywords]
            calls.append((tuple(ast.literal_eval(a) for a in arguments), ast.literal_eval(test.comparators[0])))
        except ValueError:
            return None
    return calls


def as_compared(words):
    """Output as the grader compares it: 12.340 is 12.34."""
    def value(word):
        try:
            return decimal.Decimal(word)
        except decimal.InvalidOperation:
            return word
    return words and [value(word) for word in words]


def is_weak_by_text(row):
    """stdio: a trivial output is right in every case; others: a trivial answer is, by the literals.
    """
    if row["form"] != "stdio":
        calls = literal_calls(row["tests"]["code"])
        return bool(calls) and judge["is_weak"](calls, TRIVIAL, False)
    cases = row["tests"]["cases"]
    wanted = [as_compared(case["output"].split()) for case in cases]
    answers = [[as_compared(answer) for answer in trivial_outputs(case["input"])] for case in cases]
    return any(all(answer[k] == want for answer, want in zip(answers, wanted)) for k in range(len(TRIVIAL_OUTPUT)))


PROBE = r"""
import copy
calls = []

def recorder(function):
    def call(*a, **k):
        now = a + tuple(k.values())
        before = copy.deepcopy(now)
        result = function(*a, **k)
        try: in_place = repr(before) != repr(now)
        except Exception: in_place = False
        calls.append((before, object() if in_place else copy.deepcopy(result)))  # nothing equals an object
        return result
    return call

names = globals()
if KIND == "asserts":
    for name in ENTRIES: names[name] = recorder(names[name])
    exec(CODE, names)
else:
    reference = recorder(eval(ENTRIES[0]))
    exec(CODE, names)
    names["check"](reference)
print("weak" if is_weak(calls, TRIVIAL, any(word in CODE for word in ("set(", "sorted(", "Counter("))) else "strong")
"""


def probe_of(row):
    """A stdio program that runs the known solution with the row's tests and prints whether the row
    is weak; None without a solution."""
    if row["form"] == "stdio" or not row["solution"] or not row["entries"]:
        return None
    data = {"CODE": row["tests"]["code"], "ENTRIES": row["entries"], "TRIVIAL": TRIVIAL, "KIND": row["form"]}
    return row["solution"] + "\n" + JUDGE + "".join(f"{name} = {value!r}\n" for name, value in data.items()) + PROBE
