# Objects of the other process as this one sees them.

# Methods of plain data that decide whether it is what the tests expect. If tests call one of them
# on a function's result, they expect plain data, and an object of the program would judge itself.
JUDGES = frozenset(name for name in dir(str) if not name.startswith("_")) | {
    "issubset", "issuperset", "isdisjoint", "equals", "all", "any", "allclose", "array_equal", "is_integer"}


class Remote:
    """An object at the other end. It never equals, compares with or converts to plain data of this
    end: an object with its own __eq__ must not decide a test. A `closed` one the tests can only
    call, iterate once, and compare with None. `asked`: the tests name it; `made`: they created it
    by calling such a name; `judge`: a method in JUDGES of an object they did not create."""

    __slots__ = ("_peer", "_number", "_kind", "_type_name", "_derived", "_watched", "_iterator", "_done", "_asked",
                 "_made", "_judge")
    __array_ufunc__ = None

    def __init__(self, peer, number, kind, type_name):
        for name, value in (("_peer", peer), ("_number", number), ("_kind", kind), ("_type_name", type_name),
                            ("_derived", False), ("_watched", ()), ("_iterator", None), ("_done", False),
                            ("_asked", False), ("_made", False), ("_judge", False)):
            object.__setattr__(self, name, value)

    def _view(self, judge=False):
        """The same object without the trust in one that the tests created."""
        view = Remote(self._peer, self._number, self._kind, self._type_name)
        object.__setattr__(view, "_judge", judge)
        return view

    def _ask(self, op, *fields):
        return self._peer.ask_value(op, ["P", self._number], *fields)

    def _ask_open(self, what, op, *fields):
        if self._peer.closed:
            raise Unsupported(what)
        return self._ask(op, *fields)

    def __call__(self, *arguments, **keywords):
        peer = self._peer
        if self._judge and not any(type(a) is Remote for a in (*arguments, *keywords.values())):
            raise Unsupported("the test lets a method decide of")
        watched = self._watched
        object.__setattr__(self, "_watched", ())
        answer = peer.ask("call", ["P", self._number], peer.encode_items(arguments), encode_pairs(peer, keywords), list(watched))
        if len(answer) > 1 and watched:
            slots = {**dict(enumerate(arguments)), **keywords}
            for key, value in answer[1]:
                if key in watched:
                    replace_contents(slots[key], peer.decode(value))
        result = peer.decode(answer[0])
        if type(result) is Remote and self._asked:
            object.__setattr__(result, "_made", True)
        elif type(result) is Remote and result._made:
            return result._view()
        return result

    def __getattr__(self, name):
        if name in FUNCTION_FIELDS:
            return self._ask("get", name)
        if name.startswith("__"):
            raise AttributeError(name)
        value = self._ask_open("the test reads .%s of" % name, "get", name)
        is_judge = name in JUDGES and not (self._made or self._asked) and self._peer.trusted
        return value._view(judge=True) if is_judge and type(value) is Remote else value

    def __setattr__(self, name, value):
        self._ask_open("the test sets .%s of" % name, "set", name, self._peer.encode(value))

    def __iter__(self):
        if not self._peer.closed:
            return self._ask("iter")
        # Every iteration gives the same items: a second one cannot differ.
        if self._iterator is None:
            iterator = self._ask("iter")
            object.__setattr__(self, "_iterator", iterator if type(iterator) is Remote else iter(iterator))
        return self._iterator

    def __next__(self):
        if self._done:
            raise StopIteration
        answer = self._peer.ask("next", ["P", self._number])
        if len(answer) > 1:
            object.__setattr__(self, "_done", True)
            raise StopIteration
        return self._peer.decode(answer[0])

    def __contains__(self, wanted):
        return any(item is wanted or item == wanted for item in self)

    def __getitem__(self, key):
        return self._ask_open("the test takes an item of", "item", self._peer.encode(key))

    def __setitem__(self, key, value):
        self._ask_open("the test sets an item of", "set_item", self._peer.encode(key), self._peer.encode(value))

    def __delitem__(self, key):
        self._ask_open("the test deletes an item of", "del_item", self._peer.encode(key))

    def __len__(self):
        if self._peer.closed:
            raise UnsupportedLength("the test takes the length of")
        return self._ask("len")

    def __bool__(self):
        return self._peer.closed or self._ask("bool") is True

    def __str__(self):
        return repr(self) if self._peer.closed else str(self._ask("str"))

    def __repr__(self):
        return "<%s of the program>" % self._type_name if self._peer.closed else str(self._ask("repr"))

    def __hash__(self):
        return hash(self._number)

    def __instancecheck__(self, value):
        if self._peer.closed:
            raise Unsupported("the test asks for the class of")
        return type(value) is Remote and self._peer.ask_value(
            "isinstance", ["P", value._number], ["P", self._number]) is True


def compare(op):
    def method(self, other):
        if op in ("eq", "ne") and (other is None or type(other) is Remote and other._number == self._number):
            return (other is None) == (op == "ne")
        if op == "eq" and (self._peer.closed or type(other) is not Remote):
            return False
        if self._peer.closed:
            raise Unsupported("the test compares")
        if type(other) is not Remote:
            return True if op == "ne" else NotImplemented
        return self._ask(op, ["P", other._number]) is True
    return method


def arithmetic(op, swapped):
    def method(self, other):
        if self._peer.closed:
            raise Unsupported("the test computes with")
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
        return self._ask_open("the test makes a number of", op)
    return method


for op in ORDERING:
    setattr(Remote, "__" + op + "__", compare(op))
for op in ARITHMETIC:
    setattr(Remote, "__" + op + "__", arithmetic(op, False))
    setattr(Remote, "__r" + op + "__", arithmetic(op, True))
for op in NUMERIC:
    setattr(Remote, "__" + op + "__", conversion(op))


def replace_contents(target, value):
    """Applies the program's change of its copy of an argument to the tests' own object."""
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
