# What counts as a check in the tests' process, and comparisons that an empty or undefined value
# cannot pass.
#
# One line per check goes to the grader:
#
#   p            it passed
#   f "reason"   it failed
#   x "reason"   the test code itself is broken: no verdict
#   end          all checks were reached
#
# A check is one statement of the test code that reaches an assert: the assert itself, or a call of
# a helper of the tests, however many asserts the helper has, so that a partial comparison gets no
# credit.
import math
import os
import sys

NUMPY_CHECKS = ("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_array_almost_equal",
                "assert_array_almost_equal_nulp", "assert_array_equal", "assert_array_less", "assert_array_max_ulp",
                "assert_equal")


class Results:
    """`depth`: the number of enclosing checks; `reached`: the innermost one has reached an assert.
    """

    def __init__(self, out):
        self.out, self.count, self.depth, self.reached, self.peer = out, 0, 0, False, None

    def line(self, text):
        data = (text + "\n").encode()
        while data:
            data = data[os.write(self.out, data):]

    def passed(self):
        self.count += 1
        self.line("p")

    def failed(self, error):
        self.count += 1
        try:
            text = str(error) if not isinstance(error, AssertionError) else "failed: " + str(error)
            if not isinstance(error, (AssertionError, Gone, RemoteError, Unsupported)):
                text = type(error).__name__ + ": " + text
        except Exception:
            text = type(error).__name__
        self.line("f " + json.dumps(text[:300]))

    def take_failed_check(self):
        """An assert that failed in a function of the tests that the program called."""
        error, self.peer.failed_check = self.peer.failed_check, None
        return error


class Check:
    """with Check(results): assert ...   The outermost one is counted and catches what is raised
    inside."""

    __slots__ = ("results",)
    counted_alone = True

    def __init__(self, results):
        self.results = results

    def __enter__(self):
        results = self.results
        if not results.depth:
            results.reached = False
        results.depth += 1

    def __exit__(self, kind, error, trace):
        results = self.results
        results.depth -= 1
        if error is not None and not isinstance(error, Exception):
            return False
        if results.depth:
            results.reached = results.reached or self.counted_alone and error is None
            return False
        return self.finish(results.take_failed_check() or error)

    def finish(self, error):
        if error is not None:
            self.results.failed(error)
        elif self.counted_alone or self.results.reached:
            self.results.passed()
        return True


class Step(Check):
    """A statement that is a check if it reaches an assert, and a failed check if it raises."""

    __slots__ = ()
    counted_alone = False


class Assignment(Step):
    """The same for `x = f(a)`; an exception is passed to the enclosing handler, which makes x
    unusable."""

    __slots__ = ()

    def finish(self, error):
        if error is not None:
            raise error
        return super().finish(None)


class Block:
    """A loop or condition whose parts are separate checks; an exception in its head is a failed
    check."""

    __slots__ = ("results",)

    def __init__(self, results):
        self.results = results

    def __enter__(self):
        pass

    def __exit__(self, kind, error, trace):
        if error is None or not isinstance(error, Exception) or self.results.depth:
            return False
        self.results.failed(error)
        return True


class Broken:
    """The value of a variable whose assignment failed."""


# -- comparisons --
def is_array(value):
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def has_nan(value):
    kind = type(value)
    if kind in (float, complex):
        return value != value
    if kind in (list, tuple):
        return any(map(has_nan, value))
    if kind is decimal.Decimal:
        return value.is_nan()
    if not is_array(value):
        return False
    if value.dtype.kind == "O":
        return any(map(has_nan, value.ravel().tolist()))
    return value.dtype.kind in "fc" and bool((value != value).any())


def same_shape(left, right, scalar_right=False):
    """Whether comparing these element by element compares all of both. numpy broadcasts one to the
    other's shape, so that an empty array would equal everything."""
    import numpy
    try:
        left, right = numpy.shape(left), numpy.shape(right)
    except ValueError:  # ragged: numpy itself fails
        return True
    if left == right:
        return True
    empty = 0 in left or 0 in right
    return not empty and (not right or not left and not scalar_right)


def check_shapes(left, right):
    if (is_array(left) or is_array(right)) and not same_shape(left, right):
        raise AssertionError("arrays of unequal shape")


def checked(op, ordering):
    def compare_checked(left, right):
        if type(left) in SCALARS and type(right) in SCALARS:
            if ordering and (left != left or right != right):
                raise AssertionError("a comparison with NaN")
            return op(left, right)
        if ordering and (has_nan(left) or has_nan(right)):
            raise AssertionError("a comparison with NaN")
        check_shapes(left, right)
        return op(left, right)
    return compare_checked


def size_of(value):
    import numpy
    try:
        return numpy.size(value)
    except ValueError:  # ragged
        return 1


def elementwise(op, of_lists=False):
    """left - right and the like: the norm or sum of an empty difference would be zero."""
    def compute(left, right, *arguments, **options):
        if type(left) in SCALARS and type(right) in SCALARS:  # the common case
            return op(left, right, *arguments, **options)
        arrays = of_lists or is_array(left) or is_array(right)
        if arrays and (size_of(left) == 0) != (size_of(right) == 0):
            raise AssertionError("arrays of unequal shape")
        return op(left, right, *arguments, **options)
    return compute


def distance(left, right):
    """The difference in abs(left - right): every value is within a relative tolerance of infinity.
    """
    try:
        if math.isinf(left) != math.isinf(right):
            raise AssertionError("a distance from infinity")
    except (TypeError, ValueError, OverflowError):
        pass  # not real numbers
    return elementwise(operator.sub)(left, right)


def zip_of(function):
    """zip, unless the tests define their own: with an empty argument no pair would be compared."""
    def pairs(*items, **options):
        # An iterable that the program returned is short; an iterator of the tests may be endless.
        items = [list(item) if type(item) is Remote else item for item in items]
        lengths = {len(item) for item in items if isinstance(item, collections.abc.Sized) and getattr(item, "ndim", 1)}
        if 0 in lengths and len(lengths) > 1:
            raise AssertionError("nothing to compare with: one side is empty")
        return zip(*items, **options)
    return pairs if function is zip else function


def chain_of(left, *steps):
    """a < b <= c: evaluates each operand once, and none after the first comparison that fails."""
    for comparison, operand in steps:
        right = operand()
        result = comparison(left, right)
        if not result:
            return result
        left = right
    return result


def extreme(function):
    """max or min: the maximum of 0.0 and NaN, in this order, would be 0.0."""
    def without_nan(*values, **options):
        if len(values) == 1:
            values = list(values[0])
            if "key" not in options and any(map(has_nan, values)):
                raise AssertionError("a comparison with NaN")
            return function(values, **options)
        if any(map(has_nan, values)):
            raise AssertionError("a comparison with NaN")
        return function(*values, **options)
    return without_nan


EQUALITIES = ("isclose", "equal", "not_equal")
ORDERINGS = ("less", "less_equal", "greater", "greater_equal")
COMPUTED = ("subtract", "add", "multiply", "divide", "true_divide")
OPERATORS = ("lt", "le", "gt", "ge")
COMPARING = {"allclose", "array_equiv", *EQUALITIES, *ORDERINGS, *COMPUTED, *NUMPY_CHECKS, *OPERATORS}


def numpy_functions(results):
    """numpy's comparisons with the shapes compared first. numpy's own functions are not changed."""
    import numpy
    testing = sys.modules.get("numpy.testing")  # slow to load, and many tests do not use it

    def unequal():
        raise AssertionError("arrays of unequal shape")

    def same(function, differs=unequal, ordering=False):
        def compared(*arguments, **options):
            left, right = [*arguments, *options.values()][:2]
            if ordering and (has_nan(left) or has_nan(right)):
                raise AssertionError("a comparison with NaN")
            return function(*arguments, **options) if same_shape(left, right, scalar_right=True) else differs()
        return compared

    def counted(function):
        def check(*arguments, **options):
            with Check(results):
                left, right = [*arguments, *options.values()][:2]
                arrays = is_array(left) or is_array(right) or function.__name__ != "assert_equal"
                if arrays and not same_shape(left, right, scalar_right=True):
                    unequal()
                function(*arguments, **options)
        return check

    found = {numpy.allclose: same(numpy.allclose, lambda: False), numpy.array_equiv: numpy.array_equal}
    found.update({getattr(numpy, name): same(getattr(numpy, name)) for name in EQUALITIES})
    found.update({getattr(numpy, name): same(getattr(numpy, name), ordering=True) for name in ORDERINGS})
    found.update({getattr(numpy, name): elementwise(getattr(numpy, name), of_lists=True) for name in COMPUTED})
    checks = [getattr(testing, name) for name in NUMPY_CHECKS if hasattr(testing, name)]
    found.update({check: counted(check) for check in checks})
    return found


def checked_function(results):
    """The replacement for a call in the test code of a function named like a comparison of numpy or
    `operator`."""
    functions = {}

    def choose(function):
        if not functions:
            functions.update({op: checked(op, ordering=True) for op in map(vars(operator).get, OPERATORS)})
            functions.update(numpy_functions(results) if "numpy" in sys.modules else {})
        try:
            return functions.get(function, function)
        except TypeError:  # not hashable
            return function
    return choose
