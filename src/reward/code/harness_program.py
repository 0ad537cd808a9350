# The program's process: nothing here is trusted once the program runs.
import io
import sys
import threading

# LeetCode and the LiveCodeBench runner define these names; the program's own definitions take
# precedence.
PRELUDE = """
import bisect, collections, copy, datetime, functools, heapq, itertools, math, operator, random, re, string, sys
from bisect import bisect_left, bisect_right, insort
from collections import Counter, OrderedDict, defaultdict, deque
from functools import cache, cmp_to_key, lru_cache, reduce
from heapq import heapify, heappop, heappush, heappushpop, heapreplace, nlargest, nsmallest
from itertools import accumulate, chain, combinations, count, groupby, pairwise, permutations, product, zip_longest
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, log, log2, log10, pi, sqrt
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, Union
"""


def prelude_names():
    names = {"TreeNode": TreeNode, "ListNode": ListNode}
    exec(PRELUDE, names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


def new_module(name, names):
    module = types.ModuleType(name)
    module.__dict__.update(__builtins__=builtins, __file__="program.py")
    sys.modules[name] = module
    for name, value in names.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    return module


class Program(Peer):
    """Serves the tests: loads the source on "load", then looks up names and calls functions."""

    def __init__(self, channel, source, names):
        super().__init__(channel, trusted=False)
        self.source, self.main = source, new_module("program", names)

    def load(self):
        exec(compile(self.source, "program.py", "exec"), self.main.__dict__)
        self.tree_node = self.main.__dict__.get("TreeNode", TreeNode)
        self.list_node = self.main.__dict__.get("ListNode", ListNode)

    def entry(self, path):
        value = None
        for step in path.split("."):
            name = step.removesuffix("()")
            if value is None:
                if name not in self.main.__dict__:
                    raise NameError("the program does not define " + name)
                value = self.main.__dict__[name]
            else:
                value = getattr(value, name)
            if step.endswith("()"):
                value = value()
        return value


def serve_load(program):
    program.load()
    return [None]


def serve_name(program, name):
    if name not in program.main.__dict__:
        return ["absent"]
    return ["found", program.encode(program.main.__dict__[name])]


OPS.update(
    load=serve_load,
    entry=lambda program, path: [program.encode(program.entry(path))],
    name=serve_name,
)


def serve_program(channel, source, names):
    program = Program(channel, source, names)
    try:
        while True:
            program.serve(program.receive()[1:])
    except Gone:
        pass


def open_standard_streams():
    sys.stdin = io.open(0, "r", encoding="utf-8", errors="replace", closefd=False)
    sys.stdout = io.open(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = io.open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)


def run_main(source, names):
    """The program as `python program.py` would run it; returns the exit status."""
    import atexit
    import traceback
    main = new_module("__main__", names)
    open_standard_streams()
    status = 0
    try:
        exec(compile(source, "program.py", "exec"), main.__dict__)
    except SystemExit as stop:
        status = stop.code if type(stop.code) is int else 0 if stop.code is None else 1
    except BaseException:
        traceback.print_exc(limit=4)
        status = 1
    try:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        status = status or 1
    return status & 255
