# Which names of the test code are the program's: only the row decides (`asked_names`), not what the
# program defines. All other names are the tests': their own, built-in ones, and well-known modules.
import ast
import symtable

# Names that test code may use without an import: only modules that the program cannot replace.
MODULES = ("math", "cmath", "collections", "itertools", "functools", "operator", "re", "string", "random", "heapq", "sys",
           "bisect", "copy", "json", "datetime", "fractions", "decimal", "statistics", "typing", "numpy")

FAMILIAR = {"collections": ("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"), "fractions": ("Fraction",),
            "decimal": ("Decimal",), "math": ("ceil", "floor", "gcd", "inf", "isclose", "nan", "pi", "sqrt"),
            "functools": ("reduce",), "itertools": ("chain", "combinations", "permutations", "product"),
            "typing": ("Any", "Dict", "List", "Optional", "Set", "Tuple", "Union")}
FAMILIAR = {name: module for module, names in FAMILIAR.items() for name in names}


def is_same_tree(left, right):
    return tree_values(left) == tree_values(right) if left and right else left is right


def is_same_list(left, right):
    return chain_values(left) == chain_values(right)


NODE_HELPERS = {"TreeNode": TreeNode, "ListNode": ListNode, "tree_node": tree_node, "list_node": list_node,
                "is_same_tree": is_same_tree, "is_same_list": is_same_list}


class NoVerdict(Exception):
    """The test code cannot test any program."""


def free_names(table):
    """The names that a module uses and does not define."""
    used, scopes = set(), [table]
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        used |= {s.get_name() for s in scope.get_symbols() if s.is_referenced() and (scope is table or s.is_global())}
    return used - {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}


def is_known(name):
    """A built-in or well-known name: with its own `set`, `all` or `len` a program would judge
    itself."""
    return hasattr(builtins, name) or name in FAMILIAR or name in MODULES or name == "np" or name in NODE_HELPERS


def asked_names(job, tree):
    """The names that the test code takes from the program."""
    free = free_names(symtable.symtable(job["code"], "tests", "exec"))
    unknown = {name for name in free if not is_known(name)}
    named = free & set(job.get("names") or ())
    if job["kind"] == "functional":
        foreign = unknown - named - {job["entry_point"].split(".")[0].removesuffix("()")}
        if foreign:
            raise NoVerdict("the tests use %s and do not define it" % ", ".join(sorted(foreign)))
        return unknown
    if unknown or named:
        return unknown or named
    # A row may ask for a function `sum` or `gcd` without saying so: then it is the one known name
    # that it calls.
    called = {n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)} & free
    for names in (called - vars(builtins).keys(), called):
        if len(names) == 1:
            return names
    raise NoVerdict('the tests do not say which name is the program\'s; add "names" to them')


def asks_for_class(job, asked):
    """Whether the methods of the program's objects may decide a test: the tests name their class.
    """
    kinds = job.get("names") or {}
    path = job.get("entry_point", "").removesuffix("()")
    names = asked | ({path} if path.isidentifier() else set())
    # If the row does not say, a name with a capital letter is a class, as is usual in Python.
    return any(kinds[name] == "class" if name in kinds else name.lstrip("_")[:1].isupper() for name in names)


class Names(dict):
    """The test code's globals: its own names, and the program's where the tests may use them."""

    def __init__(self, peer, asked):
        super().__init__()
        self.peer, self.asked = peer, asked

    def __missing__(self, name):
        if name not in self.asked:
            raise KeyError(name)  # a NameError of the tests; built-in names are in here already
        try:
            answer = self.peer.ask("name", name)
            value = self.peer.decode(answer[1]) if answer[0] == "found" else None
        except (KeyError, IndexError) as error:
            raise RemoteError("no answer for " + name) from error
        if answer[0] != "found":
            raise NameError("the program does not define " + name)
        if type(value) is Remote:
            object.__setattr__(value, "_asked", True)
        if type(value) is Remote or isinstance(value, type):
            self[name] = value
        return value


def known_names(used, asked):
    """What test code may use without importing it, unless the program has to define it."""
    found = {}
    for name in used - asked:
        if name in NODE_HELPERS:
            found[name] = NODE_HELPERS[name]
        elif name in MODULES or name == "np":
            found[name] = __import__("numpy" if name == "np" else name)
        elif name in FAMILIAR:
            found[name] = getattr(__import__(FAMILIAR[name]), name)
        elif name in ("max", "min"):
            found[name] = extreme(getattr(builtins, name))
        elif hasattr(builtins, name):
            found[name] = getattr(builtins, name)
    return found
