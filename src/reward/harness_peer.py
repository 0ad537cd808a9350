# Remote calls between the tests' process and the program's process, the same at both ends.
#
# A message is a length and JSON text: ["?", op, ...] asks, ["=", value, ...] answers, ["!", ...] raises.
# While one end waits for an answer it serves what the other end asks (a function passed as an argument).
# The tests' end (`trusted`) serves little: calls of what it handed out, and public attributes.
import builtins
import struct
import types

MAX_MESSAGE = 1 << 30
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType)


class Gone(Exception):
    """The program's process has ended."""


class RemoteError(Exception):
    """Something raised at the other end that has no safe counterpart here."""


def exception_base(names):
    for name in names:
        found = getattr(builtins, name, None) if isinstance(name, str) else None
        if isinstance(found, type) and issubclass(found, Exception):
            return found
    return RemoteError


class Peer(Codec):
    def __init__(self, channel, trusted):
        self.channel, self.trusted, self.gone = channel, trusted, False
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
        return ["!", names, arguments, self.encode(custom)]

    def decode_exception(self, fields):
        names, arguments, custom = fields
        kind = self.decode(custom) if custom is not None else exception_base(names)
        if kind is RemoteError:
            arguments = [names[0]] + arguments
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
        except BaseException as error:  # whatever the program raises is an answer, also SystemExit
            if self.trusted and not isinstance(error, Exception):
                raise
            answer = self.encode_exception(error)
        self.send(answer)

    def check_attribute(self, target, name):
        if self.trusted and (name.startswith("_") or isinstance(target, (type, *FUNCTIONS))):
            raise AttributeError(name)


def serve_call(peer, target, arguments, keywords, watched=()):
    function = peer.decode(target)
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
    peer.check_attribute(target, name)
    return [peer.encode(getattr(target, name))]


def serve_set(peer, target, name, value):
    target = peer.decode(target)
    peer.check_attribute(target, name)
    setattr(target, name, peer.decode(value))
    return [None]


def serve_next(peer, target):
    try:
        return [peer.encode(next(peer.decode(target)))]
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


import operator

ARITHMETIC = ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or")
ORDERING = ("eq", "ne", "lt", "le", "gt", "ge")
NUMERIC = ("abs", "neg", "pos", "invert", "int", "float", "complex", "index", "round", "trunc", "floor", "ceil")
OPS = {
    "call": serve_call, "get": serve_get, "set": serve_set, "next": serve_next, "iter": unary(iter), "len": unary(len),
    "item": binary(lambda container, key: container[key]), "set_item": serve_set_item, "bool": unary(bool),
    "del_item": binary(operator.delitem), "str": unary(str), "repr": unary(repr), "isinstance": serve_isinstance,
    **{name: binary(getattr(operator, "__" + name + "__")) for name in ARITHMETIC},
    **{name: decided(getattr(operator, name)) for name in ORDERING},
    **{name: unary(lambda value, method="__" + name + "__": getattr(value, method)()) for name in NUMERIC},
}
TRUSTED_OPS = frozenset(("call", "get", "set", "next", "iter", "len", "item", "bool"))


class Remote:
    """An object that lives at the other end. It never equals, orders with or turns into plain data of this
    end: an object with its own __eq__ must not be able to decide a test."""

    __slots__ = ("_peer", "_number", "_kind", "_type_name", "_derived", "_watched")
    __array_ufunc__ = None

    def __init__(self, peer, number, kind, type_name):
        for name, value in (("_peer", peer), ("_number", number), ("_kind", kind), ("_type_name", type_name),
                            ("_derived", False), ("_watched", ())):
            object.__setattr__(self, name, value)

    def _ask(self, op, *fields):
        return self._peer.ask_value(op, ["P", self._number], *fields)

    def __call__(self, *arguments, **keywords):
        peer = self._peer
        watched = self._watched
        object.__setattr__(self, "_watched", ())
        answer = peer.ask("call", ["P", self._number], peer.encode_items(arguments), encode_pairs(peer, keywords), list(watched))
        if len(answer) > 1 and watched:
            slots = {**dict(enumerate(arguments)), **keywords}
            for key, value in answer[1]:
                if key in watched:
                    replace_contents(slots[key], peer.decode(value))
        return peer.decode(answer[0])

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__name__", "__doc__", "__annotations__"):
            raise AttributeError(name)
        return self._ask("get", name)

    def __setattr__(self, name, value):
        self._ask("set", name, self._peer.encode(value))

    def __iter__(self):
        return self._ask("iter")

    def __next__(self):
        answer = self._peer.ask("next", ["P", self._number])
        if len(answer) > 1:
            raise StopIteration
        return self._peer.decode(answer[0])

    def __contains__(self, wanted):
        return any(item is wanted or item == wanted for item in self)

    def __getitem__(self, key):
        return self._ask("item", self._peer.encode(key))

    def __setitem__(self, key, value):
        self._ask("set_item", self._peer.encode(key), self._peer.encode(value))

    def __delitem__(self, key):
        self._ask("del_item", self._peer.encode(key))

    def __len__(self):
        return self._ask("len")

    def __bool__(self):
        return self._ask("bool") is True

    def __str__(self):
        return str(self._ask("str"))

    def __repr__(self):
        return str(self._ask("repr"))

    def __hash__(self):
        return hash(self._number)

    def __instancecheck__(self, value):
        return type(value) is Remote and self._peer.ask_value(
            "isinstance", ["P", value._number], ["P", self._number]) is True


def compare(op):
    def method(self, other):
        if type(other) is not Remote:
            return {"eq": False, "ne": True}.get(op, NotImplemented)
        if op in ("eq", "ne") and other._number == self._number:
            return op == "eq"
        return self._ask(op, ["P", other._number]) is True
    return method


def arithmetic(op, swapped):
    def method(self, other):
        sides = [["P", self._number], self._peer.encode(other)]
        result = self._peer.ask_value(op, *(reversed(sides) if swapped else sides))
        if type(result) is not Remote and type(other) is not Remote:
            raise TypeError("arithmetic of a program's object with plain data must give such an object")
        if type(result) is Remote and type(other) is not Remote:
            object.__setattr__(result, "_derived", True)
        return result
    return method


def conversion(op):
    def method(self, *ignored):
        if self._derived:
            raise TypeError("this object was computed from the tests' data and cannot become plain data")
        return self._ask(op)
    return method


for op in ORDERING:
    setattr(Remote, "__" + op + "__", compare(op))
for op in ARITHMETIC:
    setattr(Remote, "__" + op + "__", arithmetic(op, False))
    setattr(Remote, "__r" + op + "__", arithmetic(op, True))
for op in NUMERIC:
    setattr(Remote, "__" + op + "__", conversion(op))


def replace_contents(target, value):
    """Makes a change that the program made to its copy of an argument in the tests' own object."""
    if type(target) is not type(value):
        return
    if isinstance(target, (list, bytearray)):
        target[:] = value
    elif isinstance(target, (dict, set)):
        target.clear()
        target.update(value)
    elif isinstance(target, collections.deque):
        target.clear()
        target.extend(value)
    elif isinstance(target, (TreeNode, ListNode)):
        target.__dict__.update(value.__dict__)
    elif type(target).__module__ == "numpy" and target.shape == value.shape:
        target[...] = value
