# The tests' process: runs the test code, rewritten, and calls the program by remote call.
COMPARISONS = {ast.Lt: ("lt", True), ast.LtE: ("le", True), ast.Gt: ("gt", True), ast.GtE: ("ge", True),
               ast.Eq: ("eq", False), ast.NotEq: ("ne", False)}
PLAIN_OPS = {ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda item, box: item in box,
             ast.NotIn: lambda item, box: item not in box}
ARITHMETIC_OPS = {ast.Sub: operator.sub, ast.Add: operator.add, ast.Mult: operator.mul, ast.Div: operator.truediv,
                  ast.Pow: operator.pow}
BINDING = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


def call_of(helper, *arguments):
    return ast.Call(ast.Name(helper, ast.Load()), list(arguments), [])


def wrap(helper, statement):
    return ast.copy_location(ast.With([ast.withitem(call_of(helper))], [statement]), statement)


def alternatives(test):
    """a < b of `a < b or ...`: with NaN it is false, and the other side may accept that NaN."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            if isinstance(test.op, ast.Or) and isinstance(value, ast.Compare) and isinstance(value.ops[0], (ast.Lt, ast.LtE)):
                yield value
            yield from alternatives(value)


class Rewriter(ast.NodeTransformer):
    """Turns asserts into checks that do not end the run, and comparisons into checked ones."""

    def __init__(self, lines, apart):
        self.lines, self.left_alone, self.apart = lines, set(), apart

    def visit_FunctionDef(self, node):
        if node.name in self.apart:
            return node
        return self.generic_visit(node)

    def visit_Assert(self, node):
        self.left_alone.update(alternatives(node.test))
        self.generic_visit(node)
        if not isinstance(node.msg, ast.Constant):    # formatting a huge result is slow
            node.msg = ast.Constant(self.lines[node.lineno - 1].strip()[:200])
        return wrap("__check__", node)

    def visit_Return(self, node):
        self.left_alone.update(alternatives(node.value))
        self.generic_visit(node)
        return node

    def visit_Compare(self, node):
        self.generic_visit(node)
        if node in self.left_alone:
            return node
        if len(node.ops) == 1:
            if type(node.ops[0]) not in COMPARISONS:
                return node
            return ast.copy_location(call_of(helper_of(node.ops[0]), node.left, node.comparators[0]), node)
        if any(isinstance(part, BINDING) for part in ast.walk(node)):
            return node
        no_arguments = ast.arguments([], [], None, [], [], None, [])
        steps = [ast.Tuple([ast.Name(helper_of(op), ast.Load()), ast.Lambda(no_arguments, operand)], ast.Load())
                 for op, operand in zip(node.ops, node.comparators)]
        return ast.copy_location(call_of("__chain__", node.left, *steps), node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if type(node.op) in ARITHMETIC_OPS:
            return ast.copy_location(call_of(helper_of(node.op), node.left, node.right), node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        inner = node.args[0] if len(node.args) == 1 else None
        if name in ("abs", "fabs") and isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == helper_of(ast.Sub()):
            inner.func.id = "__distance__"
        elif name in COMPARING:
            node.func = call_of("__checked__", node.func)
        elif name == "zip" and isinstance(node.func, ast.Name) and not any(map(takes_part, node.args)):
            node.func = call_of("__zip__", node.func)
        return node

    def visit_Expr(self, node):
        self.generic_visit(node)
        return watch_arguments(node)


def takes_part(argument):
    """xs[1:] of zip(xs, xs[1:]), which is empty if xs has one item."""
    return isinstance(argument, ast.Subscript) and isinstance(argument.slice, ast.Slice)


def helper_of(op):
    return "__%s__" % type(op).__name__


def watch_arguments(statement):
    """f(a) as a statement: the task is to change `a` in place, so the tests must see the change.
    Nowhere else: with `x = f(a)` followed by `expected = sorted(a)` the program could choose the
    expected value."""
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)):
        return statement
    keys = []
    for index, argument in enumerate(call.args):
        if isinstance(argument, ast.Starred):
            break
        if isinstance(argument, ast.Name):
            keys.append(ast.Constant(index))
    keys += [ast.Constant(k.arg) for k in call.keywords if k.arg and isinstance(k.value, ast.Name)]
    if keys:
        call.func = call_of("__watch__", call.func, ast.Tuple(keys, ast.Load()))
    return statement


def watch(function, keys):
    if type(function) is Remote:
        object.__setattr__(function, "_watched", keys)
    return function


def guard_assignment(statement):
    """A variable whose assignment fails must not keep the value of an earlier test."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    stored = [n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    handler = [ast.Expr(call_of("__failed__", ast.Name("__error__", ast.Load())))]
    handler += [ast.Assign([ast.Name(name, ast.Store())], call_of("__broken__")) for name in stored]
    handlers = [ast.ExceptHandler(ast.Name("__Exception__", ast.Load()), "__error__", handler)]
    return ast.copy_location(ast.Try([wrap("__assignment__", statement)], handlers, [], []), statement)


def is_check(statement):
    helper = isinstance(statement, ast.With) and statement.items[0].context_expr
    return isinstance(helper, ast.Call) and isinstance(helper.func, ast.Name) and helper.func.id == "__check__"


STEPS = (ast.Expr, ast.AugAssign, ast.With, ast.Try, ast.Return, ast.Match)
BLOCKS = (ast.For, ast.While, ast.If)


def guard(body):
    """Statements -> statements that may fail separately."""
    guarded = []
    for statement in body:
        if isinstance(statement, BLOCKS):
            statement.body = guard(statement.body)
            statement.orelse = guard(statement.orelse)
            statement = wrap("__block__", statement)
        elif isinstance(statement, ast.Assign) or isinstance(statement, ast.AnnAssign) and statement.value:
            statement = guard_assignment(statement)
        elif isinstance(statement, STEPS) and not is_check(statement):
            statement = wrap("__step__", statement)
        guarded.append(statement)
    return guarded


def find_check(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            return node
    raise NoVerdict("the tests have no function check")


def calls_check(node):
    return (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name) and node.value.func.id == "check")


def checks_something(tree):
    names = (n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(tree))
    return any(isinstance(node, ast.Assert) for node in ast.walk(tree)) or any(name in NUMPY_CHECKS for name in names)


def rewrite(tree, job, asked):
    """The code object of the tests. `check`, or without one the module, is guarded statement by
    statement."""
    check = find_check(tree) if job["kind"] == "functional" else None
    Rewriter(job["code"].split("\n"), functions_apart(tree, job, asked)).visit(tree)
    if check is not None:
        check.body = guard(check.body)
    else:
        tree.body = guard(tree.body)
    return compile(ast.fix_missing_locations(tree), "tests", "exec")


def helpers(results):
    found = {"__%s__" % kind.__name__: checked(getattr(operator, name), ordering)
             for kind, (name, ordering) in COMPARISONS.items()}
    found.update({"__%s__" % kind.__name__: function for kind, function in PLAIN_OPS.items()})
    found.update({"__%s__" % kind.__name__: elementwise(function) for kind, function in ARITHMETIC_OPS.items()})
    found.update(__name__=TESTS, __check__=lambda: Check(results), __step__=lambda: Step(results),
                 __assignment__=lambda: Assignment(results), __block__=lambda: Block(results),
                 __failed__=results.failed, __broken__=Broken, __watch__=watch, __Exception__=Exception,
                 __chain__=chain_of, __distance__=distance, __zip__=zip_of,
                 __checked__=checked_function(results))
    return found


def run_tests(job, peer, results):
    """job: {"kind", "code", "entry_point"?, "names"?}"""
    results.peer = peer
    try:
        tree = ast.parse(job["code"])
        if job["kind"] == "functional":
            tree.body = [node for node in tree.body if not calls_check(node)]
        if not checks_something(tree):
            raise NoVerdict("the tests check nothing: they have no assert")
        asked = asked_names(job, tree)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        code = rewrite(tree, job, asked)
    except NoVerdict as error:
        return results.line("x " + json.dumps(str(error)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return results.line("x " + json.dumps("the tests do not parse: " + str(error)[:200]))
    peer.closed = not asks_for_class(job, asked)
    try:
        peer.ask("load")
    except Exception as error:
        peer.ask = failing(error)
    names = Names(peer, asked)
    names.update(known_names(used, asked))
    names.update(helpers(results))
    try:
        exec(code, names)
        if job["kind"] == "functional":
            names["check"](candidate_of(peer, job["entry_point"]))
        if not results.count:
            results.failed(AssertionError("no check was reached"))
    except Exception as error:
        results.failed(error)
    results.line("end")


def failing(error):
    def ask(*request, **ignored):
        raise error
    return ask


def candidate_of(peer, entry_point):
    try:
        candidate = peer.ask_value("entry", entry_point)
    except Exception as error:
        return failing(error)
    if type(candidate) is Remote:
        object.__setattr__(candidate, "_asked", True)
    return candidate
