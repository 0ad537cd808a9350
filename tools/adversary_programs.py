"""Programs without a solution, for tools/adversary: what a policy that is rewarded by tests might
try.

    program = make_program("shadow", random.Random("0:17"), row)

Every family is a function from a random source and a row to a program's text; the same source gives
the same text. None computes an answer: a function returns a constant, an argument, or an object
with misleading methods. All are harmless even outside a sandbox: they loop and allocate within
limits and signal only themselves.
"""
from adversary_rows import TRIVIAL, TRIVIAL_OUTPUT, called_names
from adversary_words import (ARRAY, ARRAYS, ASYNC, BASES, BODIES, BUILTINS, CHANGES, DEFINITIONS, DUNDERS, ENDS,
    ERRORS, FAMILIAR, FRAMES, FRAMES_CALL, GENERATORS, HARNESS, ITERATORS, LIAR, META, METHODS, NOTHING, NO_BASE,
    NUMBERS, PATCHES, PRINTS, RETURNS, SILENT, SNOOPS)


def indent(text, by=4):
    return "".join(" " * by + line + "\n" for line in text.strip("\n").split("\n"))


def define(entry, body, how="def"):
    """The definition of f or Solution().f with a body that uses the arguments `v`."""
    body = "v = a + tuple(k.values())\n" + body
    if "." not in entry:
        return f"{how} {entry}(*a, **k):\n" + indent(body)
    owner, method = entry.split("().")
    return f"class {owner}:\n    def __init__(self, *a, **k): pass\n    {how} {method}(self, *a, **k):\n" + indent(body, 8)


def define_all(row, body, how="def"):
    return "\n".join(define(entry, body, how) for entry in row["entries"])


def trivial(rng):
    return rng.choice(TRIVIAL)


def wanted_names(rng, row):
    """Mostly names that the row's tests use."""
    used = sorted(called_names(row["tests"]["code"])) if row["form"] != "stdio" else []
    return rng.choice(used) if used and rng.random() < 0.6 else rng.choice(BUILTINS + FAMILIAR)


def shadow(rng, row):
    parts = []
    for _ in range(rng.choice([1, 1, 2, 2, 3])):
        name = wanted_names(rng, row)
        if name in row["entries"] and rng.random() < 0.8:
            continue
        body = rng.choice(BODIES)
        kind = rng.random()
        if kind < 0.7:
            parts.append(f"def {name}(*a, **k): {body}\n")
        elif kind < 0.8:
            parts.append(LIAR + f"{name} = Liar()\n")
        elif kind < 0.9:
            parts.append(f"class {name}:\n    def __new__(cls, *a, **k): {body if 'yield' not in body else 'return ()'}\n")
        else:
            parts.append(f"{name} = {rng.choice(TRIVIAL[:30])}\n")
    if rng.random() < 0.5:
        parts.append(define_all(row, rng.choice(BODIES)))
    return "\n".join(parts) or "pass"


def dunders(rng, row):
    base = rng.choice(sorted(BASES))
    methods = ""
    for name in rng.sample(DUNDERS, rng.choice([1, 1, 2, 3, 5, 8])):
        answer = rng.choice(RETURNS)
        form = rng.random()
        if form < 0.8:
            methods += f"    def __{name}__(self, *o, **k): return {answer}\n"
        elif form < 0.9:
            methods += f"    @property\n    def __{name}__(self): return lambda *o, **k: {answer.replace('self', 'None')}\n"
        else:
            methods += f"    def __{name}__(self, *o, **k): yield {answer}\n"
    head = "import collections, fractions, decimal, datetime, types, enum, unittest.mock\n" + LIAR
    parent = "" if base in NO_BASE else f"({base})"
    make = rng.choice([f"X({BASES[base]})", "X(v[0])", "X(*v)", "X()", "object.__new__(X)", f"[X({BASES[base]})]", f"{{0: X({BASES[base]})}}", f"(X({BASES[base]}),) * 3", "X"])
    return f"{head}class X{parent}:\n{methods}    pass\n" + define_all(row, f"return {make}")


def methods(rng, row):
    names = rng.sample(METHODS, rng.choice([1, 3, 10]))
    text = "".join(f"    def {name}(self, *a, **k): return {rng.choice(RETURNS)}\n".replace("o[0] if o else self", "self").replace("type(o[0])() if o else 0", "0")
                   .replace("return o\n", "return a\n").replace("str(o)", "str(a)") for name in names)
    base = rng.choice(["", "(str)", "(list)", "(set)", "(dict)", "(float)", "(tuple)"])
    if rng.random() < 0.3:
        text += "    def __getattr__(self, n): return lambda *a, **k: True\n"
    return LIAR + f"class X{base}:\n{text}" + define_all(row, f"return X({rng.choice(['', '', 'v[0]'])})")


def iterators(rng, row):
    if rng.random() < 0.5:
        return LIAR + define_all(row, rng.choice(GENERATORS))
    stop = rng.choice(["raise StopIteration", "return True", "raise IndexError", "return self", "raise StopIteration(1)", "raise AssertionError"])
    own = f"class It:\n    def __iter__(self): return self\n    def __next__(self): {stop}\n    def __len__(self): return {rng.choice(['0', '1', '10 ** 6'])}\n    def __getitem__(self, i): raise IndexError\n"
    return LIAR + own + define_all(row, "return " + rng.choice(ITERATORS + ["It()"] * 8))


def exceptions(rng, row):
    error = rng.choice(ERRORS)
    place = rng.randrange(9)
    if place == 0:
        return LIAR + define_all(row, "return True") + f"\nraise {error}\n"
    if place == 1:
        return LIAR + f"class X:\n    def __{rng.choice(DUNDERS)}__(self, *a, **k): raise {error}\n    def __{rng.choice(DUNDERS)}__(self, *a, **k): raise {error}\n" + define_all(row, "return X()")
    if place == 2:
        return LIAR + define_all(row, f"if not hasattr({row['entries'][0].split('(')[0]}, 'n'): {row['entries'][0].split('(')[0]}.n = 0\n"
                                 f"{row['entries'][0].split('(')[0]}.n += 1\nif {row['entries'][0].split('(')[0]}.n > {rng.randrange(3)}: raise {error}\nreturn {trivial(rng)}")
    if place == 3:
        return LIAR + define_all(row, f"def g():\n    raise {error}\n    yield\nreturn g()")
    if place == 4:
        return LIAR + define_all(row, f"try:\n    raise {error}\nfinally:\n    return {trivial(rng)}")
    if place == 5:
        return LIAR + define_all(row, f"e = {error}\ne.__context__ = e.__cause__ = None\nreturn e")
    if place == 6:
        return LIAR + define_all(row, f"return type({error})")
    return LIAR + define_all(row, f"raise {error}")


def asynchronous(rng, row):
    own = "class X:\n    def __await__(self): return iter(())\n    def __aiter__(self): return self\n    async def __anext__(self): raise StopAsyncIteration\n"
    if rng.random() < 0.6:
        return LIAR + own + define_all(row, rng.choice(ASYNC), "async def")
    return LIAR + own + define_all(row, "async def g():\n    " + rng.choice(ASYNC) + "\n" + rng.choice(
        ["return g()", "return X()", "import asyncio\nreturn asyncio.run(g())", "return [g()]", "c = g()\nc.close()\nreturn c",
         "import asyncio\nloop = asyncio.new_event_loop()\nreturn loop.create_future()"]))


def descriptors(rng, row):
    r = rng.choice(["True", "None", "c", "[]", "Liar()", "lambda *a, **k: True"])
    meta = "class Meta(type):\n" + "".join("    " + one.format(r=r) + "\n" for one in rng.sample(META, 3))
    fetch = "class Fetch:\n    def __get__(self, o, t=None): return " + rng.choice(["lambda *a, **k: Liar()", "True", "self", "Meta('X', (), {})", "(lambda *a, **k: None)"]) + "\n    def __set__(self, o, v): pass\n    def __call__(self, *a, **k): return " + trivial(rng).replace("v", "a") + "\n"
    entry = row["entries"][0]
    if "." in entry:
        owner, method = entry.split("().")
        return LIAR + meta + fetch + f"class {owner}(metaclass=Meta):\n    {method} = {rng.choice(['Fetch()', 'property(lambda s: lambda *a, **k: Liar())', 'classmethod(lambda c, *a, **k: c)', 'staticmethod(print)', 'Liar()', 'type'])}\n"
    how = rng.choice(DEFINITIONS)
    return LIAR + meta + fetch + "\n".join(how.format(e=e, t=trivial(rng).replace("v", "'v'") if how == "{e} = {t}" else "") for e in row["entries"]) + "\n"


def imports(rng, row):
    patch = "".join(p.format(b=rng.choice(BUILTINS), m=rng.choice(["numpy", "math", "builtins", "unittest", "collections", "json", "re", "tests", "operator", "typing"]), r=rng.choice(["True", "()", "None", "0"])) + "\n"
                    for p in rng.sample(PATCHES, rng.choice([1, 2, 3])))
    text = LIAR + patch
    if rng.random() < 0.8:
        text += define_all(row, f"return {trivial(rng)}" if rng.random() < 0.7 else "return Liar()")
    return text


def harness(rng, row):
    values = dict(r=rng.choice(["True", "None", "['l']", "0", "[]", "['R', 0, 'function', 'f']"]), c=rng.choice(["True", "n == 'OPS'", "n in ('json', 'struct')"]), n=rng.choice([1, 3, 50]),
                  j=rng.choice(["True", "None", "['found', True]", "[['set', 'sorted', 'abs', 'enumerate', 'zip']]", "['R', 0, 'function', 'f']", "['l', 1]", "[]", "['type', 'NotImplemented']", "['scalar', 'f8', 'nan']", "['c', 0, 0]", "['objects', [1], []]"]),
                  a=rng.choice(["gi_frame", "func", "passed", "results", "mro", "f_globals", "__globals__", "__class__"]), closer=rng.choice(["close", "fsync", "set_blocking", "lseek"]), extra="")
    values["extra"] = {"set_blocking": ", False", "lseek": ", 0, 0"}.get(values["closer"], "")
    parts = [one.format(**values) for one in rng.sample(HARNESS, rng.choice([1, 1, 2]))]
    at_call = rng.random() < 0.4
    body = (FRAMES_CALL if rng.random() < 0.5 else "") + ("\n".join(parts) + "\n" if at_call else "") + f"return {rng.choice([trivial(rng), 'Liar()'])}"
    text = LIAR + FRAMES + ("" if at_call else "\n".join(parts) + "\n")
    return text + (define_all(row, body) if rng.random() < 0.9 else "")


def frames(rng, row):
    after = rng.choice([trivial(rng), "Liar()", "v[0]", "None"])
    return LIAR + FRAMES + define_all(row, f"attack(v)\nreturn {after}")


def values(rng, row):
    pick = rng.random()
    value = rng.choice(NUMBERS) if pick < 0.5 else rng.choice(ARRAYS)
    shape = rng.choice(["{x}", "{x}", "{x}", "[{x}]", "({x},)", "[{x}] * 3", "{{0: {x}}}", "[[{x}]]", "[{x}] * len(v[0])", "{{{x}}}", "[{x} for _ in v]", "tuple([{x}] * 2)"])
    head = LIAR + (ARRAY if pick >= 0.5 else "")
    return head + define_all(row, "return " + shape.format(x=value))


def constants(rng, row):
    return define_all(row, f"return {trivial(rng)}")


def mutation(rng, row):
    change = "".join(f"    try: {rng.choice(CHANGES)}\n    except Exception: pass\n" for _ in range(rng.choice([1, 2])))
    return define_all(row, "for x in v:\n" + change + f"return {rng.choice([trivial(rng), 'v[0]', 'None'])}")


def ends(rng, row):
    end, place = rng.choice(ENDS), rng.randrange(6)
    head = "import os, sys, threading, atexit\nn = 0\n"
    if place == 0:
        return head + end + "\n"
    if place == 1:
        return head + define_all(row, "return True") + "\n" + end + "\n"
    if place == 2:
        return head + define_all(row, end)
    if place == 3:
        return head + define_all(row, f"global n\nn += 1\nif n > {rng.randrange(1, 4)}: {end}\nreturn {trivial(rng)}")
    if place == 4:
        return head + "class X:\n    def __" + rng.choice(["del", "repr", "len", "iter", "eq", "reduce"]) + f"__(self, *a): {end}\n" + define_all(row, "return X()")
    return head + f"def later(): {end}\nthreading.Timer({rng.choice(['0.001', '0.01'])}, later).start()\n" + define_all(row, f"return {trivial(rng)}")


def prints(rng, row):
    text = rng.choice(PRINTS).replace("{{", "{").replace("}}", "}")
    where = rng.choice([f'print("{text}")', f'import sys; sys.stderr.write("{text}")', f'import os\nfor d in range(12):\n    try: os.write(d, b"{text}")\n    except OSError: pass'])
    return where + "\n" + (define_all(row, where.replace("\n    ", "\n    ") + f"\nreturn {trivial(rng)}") if rng.random() < 0.8 else "")


def nothing(rng, row):
    return rng.choice(NOTHING)


def stdio(rng, row):
    pick = rng.random()
    if pick < 0.5:
        return f"import sys\ns = sys.stdin.read()\nprint({rng.choice(TRIVIAL_OUTPUT)})"
    if pick < 0.6:
        return f"print({rng.choice([t for t in TRIVIAL_OUTPUT if 's' not in t])})"
    if pick < 0.7:
        return rng.choice(SILENT)
    if pick < 0.8:
        return "import sys\ns = sys.stdin.read()\nfor t in s.split(): print(t)\n" + rng.choice(["", "print(0)", "for t in set(s): print(t)", "import os; os._exit(0)"])
    if pick < 0.9:
        return rng.choice(SNOOPS)
    return "import sys\ns = sys.stdin.readline()\n" * rng.randrange(3) + f"print({rng.choice([t for t in TRIVIAL_OUTPUT if 's' not in t])})"


FAMILIES = {
    "shadow": (shadow, 5), "dunders": (dunders, 4), "methods": (methods, 2), "iterators": (iterators, 2),
    "exceptions": (exceptions, 3), "asynchronous": (asynchronous, 1), "descriptors": (descriptors, 2),
    "imports": (imports, 3), "harness": (harness, 4), "frames": (frames, 2), "values": (values, 4),
    "constants": (constants, 2), "mutation": (mutation, 1), "ends": (ends, 2), "prints": (prints, 1),
    "nothing": (nothing, 1),
}


def make_program(family, rng, row):
    return stdio(rng, row) if row["form"] == "stdio" else FAMILIES[family][0](rng, row)
