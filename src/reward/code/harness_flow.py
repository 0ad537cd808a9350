# Finds the functions of the test code that never get a value of the program. They run without
# guards: a comparison of the tests' own numbers needs no guard, and reference solutions compute
# millions of them.
#
# In doubt, a function is guarded. A name is marked if it may hold a value of the program: through
# an assignment or a loop, as an argument, through a method that changes an object, or from an
# exception. Names are distinguished by the top-level function they are local to. A function that is
# used in any way other than a call is always guarded.
LOOK_AROUND = {"eval", "exec", "globals", "locals", "vars", "getattr", "setattr", "delattr", "__import__"}


def names_in(node):
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def parameters_of(function):
    a = function.args
    return {p.arg for p in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg] if p is not None}


class Flow:
    def __init__(self, tree, foreign):
        self.functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.marked = {("", name) for name in foreign}
        self.parts = [("", n) for n in tree.body if not isinstance(n, ast.FunctionDef)]
        self.parts += [(name, n) for name, n in self.functions.items()]
        self.local = {"": set()}
        for name, function in self.functions.items():
            inner = [n for n in ast.walk(function) if isinstance(n, (ast.FunctionDef, ast.Lambda))]
            stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
            shared = {name for n in ast.walk(function) if isinstance(n, ast.Global) for name in n.names}
            caught = {n.name for n in ast.walk(function) if isinstance(n, ast.ExceptHandler) and n.name}
            self.local[name] = stored.union(caught, *map(parameters_of, inner)) - shared

    def key(self, scope, name):
        return (scope if name in self.local[scope] else "", name)

    def mark(self, scope, names):
        self.marked |= {self.key(scope, name) for name in names}

    def is_marked(self, scope, node):
        return any(self.key(scope, n.id) in self.marked for n in ast.walk(node) if isinstance(n, ast.Name))

    def spread(self):
        before = -1
        while before != len(self.marked):
            before = len(self.marked)
            for scope, part in self.parts:
                for node in ast.walk(part):
                    self.follow(scope, node)
                if self.is_marked(scope, part):
                    self.spread_within(scope, part)

    def spread_within(self, scope, part):
        """Values without a name to track: inner functions, their parameters, exceptions."""
        if scope:
            self.marked.add(("", scope))
        for node in ast.walk(part):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)) and node is not part:
                self.mark(scope, parameters_of(node))
                self.mark(scope, {getattr(node, "name", "")})
            elif isinstance(node, ast.ExceptHandler) and node.name:
                self.mark(scope, {node.name})

    def follow(self, scope, node):
        if isinstance(node, ast.Assign):
            self.bind(scope, node.targets, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign, ast.NamedExpr)) and node.value is not None:
            self.bind(scope, [node.target], node.value)
        elif isinstance(node, (ast.For, ast.comprehension)):
            self.bind(scope, [node.target], node.iter)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self.bind(scope, [node.optional_vars], node.context_expr)
        elif isinstance(node, ast.Match):
            names = {n.name for n in ast.walk(node) if isinstance(n, (ast.MatchAs, ast.MatchStar)) and n.name}
            if names and self.is_marked(scope, node.subject):
                self.mark(scope, names)
        elif isinstance(node, ast.Call):
            self.follow_call(scope, node)

    def bind(self, scope, targets, value):
        if self.is_marked(scope, value):
            self.mark(scope, set().union(*map(names_in, targets)))

    def follow_call(self, scope, call):
        arguments = [*call.args, *(k.value for k in call.keywords)]
        calls_program = self.is_marked(scope, call.func)
        if not calls_program and not any(self.is_marked(scope, a) for a in arguments):
            return
        own = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if own is not None:
            self.marked |= {(own.name, name) for name in parameters_of(own)}
        elif isinstance(call.func, ast.Attribute):
            self.mark(scope, names_in(call.func.value))
        for argument in arguments:  # the callee may change a list
            if own is None and not calls_program and isinstance(argument, (ast.Name, ast.Starred)):
                self.mark(scope, names_in(argument))


def functions_apart(tree, job, asked):
    """The names of the top-level functions that need no guard."""
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name)]
    if LOOK_AROUND.intersection(names):
        return set()
    flow = Flow(tree, asked)
    if job["kind"] == "functional" and "check" in flow.functions:
        flow.marked |= {("check", name) for name in parameters_of(flow.functions["check"])}
    for part in tree.body:    # the program may call methods of their objects
        if isinstance(part, ast.ClassDef):
            flow.marked |= {("", p) for n in ast.walk(part) if isinstance(n, ast.FunctionDef) for p in parameters_of(n)}
    # `f(a)` as a statement returns the program's changes of `a`.
    for scope, part in flow.parts:
        for node in ast.walk(part):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                flow.mark(scope, {a.id for a in node.value.args if isinstance(a, ast.Name)})
                flow.mark(scope, {k.value.id for k in node.value.keywords if isinstance(k.value, ast.Name)})
    flow.spread()
    called = [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    defined = [n.name for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    defined += [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    apart = set()
    for name, function in flow.functions.items():
        special = any(isinstance(n, (ast.Assert, ast.Global, ast.Nonlocal, ast.Raise)) for n in ast.walk(function))
        own = {(name, p) for p in flow.local[name]} | {("", name)}
        only_called = defined.count(name) == 1 and names.count(name) == called.count(name) and not function.decorator_list
        if only_called and not special and not own & flow.marked and not flow.is_marked(name, function):
            apart.add(name)
    return apart
