# Remote calls between the tests' process and the program's process, the same at both ends.
#
# A message is a length and JSON text: ["?", op, ...] asks, ["=", value, ...] answers, ["!", ...]
# raises. While one end waits for an answer, it serves the other end's requests (a function passed
# as an argument). The tests' end (`trusted`) serves very little: calls of functions and steps of
# iterators that it passed on, and the fields and methods of objects whose class the test code
# itself defines.
import builtins
import collections.abc
import functools
import operator
import struct
import types

MAX_MESSAGE = 1 << 30
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)
CALLABLE = (*FUNCTIONS, types.MethodDescriptorType, functools.partial, operator.itemgetter)
TESTS = "tests"  # the module of the test code's own classes
# If a call raised these, they would end a `map`, `zip` or loop of the tests as if there were no
# more items.
ENDINGS = (StopIteration, StopAsyncIteration)


class Gone(Exception):
    """The program's process has ended."""


class RemoteError(Exception):
    """An exception of the other end that has no safe equivalent here."""


class Unsupported(Exception):
    """An object of the program would decide the test, and the row does not ask for its class."""

    def __init__(self, what):
        super().__init__("unsupported: " + what + " an object that the program returned")


class UnsupportedLength(Unsupported, TypeError):
    """`list(x)` asks for a length as a hint and ignores a TypeError."""


def exception_base(names):
    for name in names:
        found = getattr(builtins, name, None) if isinstance(name, str) else None
        if isinstance(found, type) and issubclass(found, ENDINGS):
            return RuntimeError
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return RemoteError


class Peer(Codec):
    """`closed`: the other end's objects can only be compared by identity, called, and iterated
    once."""

    def __init__(self, channel, trusted):
        self.channel, self.trusted, self.gone = channel, trusted, False
        self.closed, self.failed_check = trusted, None
        self.exported, self.numbers, self.remotes, self.exceptions = [], {}, {}, {}

    # -- messages --
    def send(self, message):
        data = json.dumps(message).encode()
        try:
            self.channel.sendall(struct.pack("<Q", len(data)) + data)
        except OSError:
            self.gone = True
            raise Gone("the program has ended") from None

    def read(self, size):
        parts = []
        while size:
            try:
                part = self.channel.recv(min(size, 1 << 20))
            except OSError:
                part = b""
            if not part:
                self.gone = True
                raise Gone("the program has ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def receive(self):
        size = struct.unpack("<Q", self.read(8))[0]
        if size > MAX_MESSAGE:
            self.gone = True
            raise Gone("the program returned more than can be passed")
        return json.loads(self.read(size))

    def ask(self, *request):
        if self.gone:
            raise Gone("the program has ended")
        self.send(["?", *request])
        while True:
            message = self.receive()
            if message[0] == "=":
                return message[1:]
            if message[0] == "!":
                raise self.decode_exception(message[1:])
            self.serve(message[1:])

    def ask_value(self, *request):
        return self.decode(self.ask(*request)[0])

    # -- references --
    def export(self, value):
        if type(value) is Remote:
            return ["P", value._number]
        if isinstance(value, types.ModuleType):
            return ["R", -1, "module", value.__name__]
        if self.trusted and isinstance(value, types.BuiltinFunctionType) and type(value.__self__) is types.ModuleType:
            return ["own", value.__self__.__name__, value.__name__]    # e.g. `len`
        number = self.numbers.get(id(value))
        if number is None:
            number = self.numbers[id(value)] = len(self.exported)
            self.exported.append(value)
        if isinstance(value, type):
            if issubclass(value, Exception):
                return ["R", number, "exception", value.__name__, [base.__name__ for base in value.__mro__]]
            return ["R", number, "class", value.__name__]
        return ["R", number, "function" if isinstance(value, FUNCTIONS) else "instance", type(value).__name__]

    def resolve(self, tag, fields):
        if tag == "P":
            return self.exported[self.exported_number(fields[0])]
        if tag == "own" and not self.trusted:
            return getattr(__import__(fields[0]), fields[1])
        if tag != "R":
            raise ValueError("unknown tag")
        number, kind = fields[0], fields[1]
        if kind == "module":
            raise ValueError("a module cannot be passed")
        if kind == "exception":
            if number not in self.exceptions:
                self.exceptions[number] = type(str(fields[2]), (exception_base(fields[3]),), {})
            return self.exceptions[number]
        if number not in self.remotes:
            self.remotes[number] = Remote(self, int(number), str(kind), str(fields[2]))
        return self.remotes[number]

    def exported_number(self, number):
        if type(number) is not int or not 0 <= number < len(self.exported):
            raise ValueError("no such object")
        return number

    def encode_exception(self, error):
        names = [base.__name__ for base in type(error).__mro__]
        custom = type(error) if isinstance(error, Exception) and not hasattr(builtins, names[0]) else None
        arguments = [a if type(a) in DIRECT or type(a) is int and -BIG < a < BIG else str(a) for a in error.args[:4]]
        if isinstance(error, SyntaxError):
            arguments = ["%s (line %s)" % (error.msg, error.lineno)]
        return ["!", names, arguments, self.encode(custom)]

    def decode_exception(self, fields):
        names, arguments, custom = fields
        kind = self.decode(custom) if custom is not None else exception_base(names)
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            kind = RemoteError
        arguments = [argument for argument in arguments if type(argument) in SCALARS]
        if kind is RemoteError or kind is RuntimeError and names[0] != "RuntimeError":
            arguments = [str(names[0])] + arguments
        try:
            return kind(*arguments)
        except Exception:
            return RemoteError(*[str(argument) for argument in arguments])

    # -- serving --
    def serve(self, request):
        try:
            op = request[0]
            if self.trusted and op not in TRUSTED_OPS:
                raise ValueError("refused")
            answer = ["=", *OPS[op](self, *request[1:])]
        except Gone:
            raise
        except BaseException as error:  # any exception of the program is an answer, even SystemExit
            if self.trusted and not isinstance(error, Exception):
                raise
            if self.trusted and isinstance(error, AssertionError):
                self.failed_check = error    # the program must not swallow it
            answer = self.encode_exception(error)
        self.send(answer)

    def handed_out(self, target, kinds):
        """What the program may use of the tests' end; an error otherwise."""
        target = self.decode(target)
        if self.trusted and (type(target) is Remote or not isinstance(target, kinds)):
            raise TypeError("the tests do not serve this")
        return target


def attribute_of_tests(target, name):
    """A field of an object whose class the test code defines, or a method: never of a frame,
    function or module."""
    kind = type(target)
    if kind.__module__ == TESTS and not name.startswith("_"):
        if name in getattr(target, "__dict__", ()):
            return target.__dict__[name]
        for base in kind.__mro__:
            found = vars(base).get(name)
            if base.__module__ == TESTS and type(found) is types.FunctionType:
                return types.MethodType(found, target)
    raise AttributeError(name)


def serve_call(peer, target, arguments, keywords, watched=()):
    function = peer.handed_out(target, CALLABLE)
    arguments, keywords = peer.decode_items(arguments), decode_pairs(peer, keywords)
    slots = {**dict(enumerate(arguments)), **keywords}
    before = {key: peer.encode(slots[key]) for key in watched if key in slots}
    result = peer.encode(function(*arguments, **keywords))
    changed = []
    for key, old in before.items():
        new = peer.encode(slots[key])
        if new != old:
            changed.append([key, new])
    return [result, changed] if changed else [result]


def serve_get(peer, target, name):
    target = peer.decode(target)
    return [peer.encode(attribute_of_tests(target, name) if peer.trusted else getattr(target, name))]


def serve_set(peer, target, name, value):
    setattr(peer.decode(target), name, peer.decode(value))
    return [None]


def serve_iter(peer, target):
    return [peer.encode(iter(peer.handed_out(target, collections.abc.Iterable)))]


def serve_next(peer, target):
    target = peer.handed_out(target, collections.abc.Iterator)
    try:
        return [peer.encode(next(target))]
    except StopIteration:
        return [None, "done"]


def serve_set_item(peer, target, key, value):
    peer.decode(target)[peer.decode(key)] = peer.decode(value)
    return [None]


def serve_isinstance(peer, value, kind):
    return [isinstance(peer.decode(value), peer.decode(kind)) is True]


def unary(function):
    return lambda peer, target: [peer.encode(function(peer.decode(target)))]


def binary(function):
    return lambda peer, left, right: [peer.encode(function(peer.decode(left), peer.decode(right)))]


def decided(function):
    return lambda peer, left, right: [bool(function(peer.decode(left), peer.decode(right)))]


ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or")
ORDERING = ("eq", "ne", "lt", "le", "gt", "ge")
NUMERIC = ("abs", "neg", "pos", "invert", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil")
OPS = {
    "call": serve_call, "get": serve_get, "set": serve_set, "next": serve_next, "iter": serve_iter, "len": unary(len),
    "item": binary(lambda container, key: container[key]), "set_item": serve_set_item, "bool": unary(bool),
    "del_item": binary(operator.delitem), "str": unary(str), "repr": unary(repr), "isinstance": serve_isinstance,
    **{name: binary(getattr(operator, "__" + name + "__")) for name in ARITHMETIC},
    **{name: decided(getattr(operator, name)) for name in ORDERING},
    **{name: unary(lambda value, method="__" + name + "__": getattr(value, method)()) for name in NUMERIC},
}
TRUSTED_OPS = frozenset(("call", "get", "next", "iter"))
FUNCTION_FIELDS = ("__name__", "__doc__", "__annotations__")
