# Values that cross between the tests' process and the program's process.
#
# The text is JSON: scalars as they are, everything else an array whose first element is a tag.
# Decoding builds only exact built-in types and never calls anything that the sender chose, so it is
# safe for the data of an untrusted process.
import collections
import datetime
import decimal
import fractions
import itertools
import json
import re

SCALARS = frozenset((type(None), bool, int, float, str))
DIRECT = SCALARS - {int}
BIG = 1 << 63  # decimal text of huge integers takes quadratic time, hexadecimal linear
BUILTIN_TYPES = {t.__name__: t for t in (bool, int, float, complex, str, bytes, bytearray, list, tuple,
                                         dict, set, frozenset, range, object, type)}
DATE_TYPES = {t.__name__: t for t in (datetime.date, datetime.datetime, datetime.time, datetime.timedelta)}
DTYPE = re.compile(r"[<>|=]?[biufcSU?][0-9]*\Z")
MAX_NODES = 1_000_000
LONG = 4_000
CELLS = [code for code in range(35, 127) if code != 92]  # characters that JSON writes as they are
VIEWS = tuple(type(view) for view in ({}.keys(), {}.values(), {}.items()))


class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right


class ListNode:
    def __init__(self, val=0, next=None):
        self.val, self.next = val, next


class Codec:
    """Encodes and decodes; `export` and `resolve` handle values without a plain form."""

    tree_node, list_node = TreeNode, ListNode

    def export(self, value):
        raise TypeError("cannot pass " + type(value).__name__)

    def resolve(self, tag, fields):
        raise ValueError("unknown tag")

    def encode_items(self, items):
        encode = self.encode
        return [item if (kind := type(item)) in DIRECT or kind is int and -BIG < item < BIG else encode(item) for item in items]

    def encode(self, value):
        kind = type(value)
        if kind in DIRECT:
            return value
        if kind is int:
            return value if -BIG < value < BIG else ["i", hex(value)]
        encoder = ENCODERS.get(kind)
        if encoder is not None:
            return encoder(self, value)
        if kind is self.tree_node or kind.__name__ == "TreeNode" and hasattr(value, "val"):
            return ["tree", *self.encode_items(tree_values(value))]
        if kind is self.list_node or kind.__name__ == "ListNode" and hasattr(value, "val"):
            return ["chain", *self.encode_items(chain_values(value))]
        if kind.__module__ == "numpy":
            return encode_numpy(self, value)
        if isinstance(value, type) and BUILTIN_TYPES.get(value.__name__) is value:
            return ["type", value.__name__]
        # An instance of a subclass becomes the plain value it extends: a named tuple is a tuple.
        for base in (str, int, float, tuple, list, dict, set, frozenset, bytes):
            if isinstance(value, base) and kind.__eq__ is base.__eq__:
                plain = base.__new__(base, value) if base in (str, int, float, bytes) else base(value)
                return self.encode(plain)
        return self.export(value)

    def decode_items(self, items):
        decode = self.decode
        return [item if type(item) is not list else decode(item) for item in items]

    def decode(self, value):
        if type(value) is not list:
            if type(value) is dict:
                raise ValueError("an object where a value was expected")
            return value
        decoder = DECODERS.get(value[0])
        return decoder(self, value[1:]) if decoder is not None else self.resolve(value[0], value[1:])


def tree_values(root):
    """A tree in level order with None for absent children, as LeetCode writes it."""
    values, row = [], collections.deque([root])
    while row:
        node = row.popleft()
        if len(values) > MAX_NODES:
            raise ValueError("the tree is too large or has a cycle")
        if node is None:
            values.append(None)
            continue
        values.append(node.val)
        row.append(node.left)
        row.append(node.right)
    while values and values[-1] is None:
        values.pop()
    return values


def tree_node(values, node_type=TreeNode):
    values = iter(values)
    first = next(values, None)
    if first is None:
        return None
    root = node_type(first)
    row = collections.deque([root])
    while row:
        node = row.popleft()
        for side in ("left", "right"):
            value = next(values, None)
            if value is not None:
                child = node_type(value)
                setattr(node, side, child)
                row.append(child)
    return root


def chain_values(head):
    values = []
    while head is not None:
        values.append(head.val)
        head = head.next
        if len(values) > MAX_NODES:
            raise ValueError("the list is too long or has a cycle")
    return values


def list_node(values, node_type=ListNode):
    head = None
    for value in reversed(list(values)):
        node = node_type(value)
        node.next = head
        head = node
    return head


def encode_numpy(codec, value):
    import numpy
    if isinstance(value, numpy.ndarray):
        if value.dtype.hasobject:
            return ["objects", list(value.shape), *codec.encode_items(value.ravel().tolist())]
        if DTYPE.match(value.dtype.str):
            return ["array", value.dtype.str, list(value.shape), numpy.ascontiguousarray(value).tobytes().hex()]
    if isinstance(value, numpy.generic) and DTYPE.match(value.dtype.str):
        return ["scalar", value.dtype.str, value.tobytes().hex()]
    return codec.export(value)


def decode_array(codec, fields):
    import numpy
    if not DTYPE.match(fields[0]):
        raise ValueError("this dtype cannot be passed")
    flat = numpy.frombuffer(bytearray.fromhex(fields[2]), dtype=numpy.dtype(fields[0]))
    return flat.reshape([int(side) for side in fields[1]])


def decode_scalar(codec, fields):
    return decode_array(codec, [fields[0], [1], fields[1]])[0]


def decode_objects(codec, fields):
    import numpy
    flat = numpy.empty(len(fields) - 1, dtype=object)
    flat[:] = codec.decode_items(fields[1:])
    return flat.reshape([int(side) for side in fields[0]])


def encode_pairs(codec, mapping):
    flat = []
    for key, value in mapping.items():
        flat.append(key)
        flat.append(value)
    return codec.encode_items(flat)


def decode_pairs(codec, fields):
    flat = codec.decode_items(fields)
    return dict(zip(flat[0::2], flat[1::2], strict=True))


def decode_default(codec, fields):
    return collections.defaultdict(BUILTIN_TYPES.get(fields[0]), decode_pairs(codec, fields[1:]))


def encode_date(codec, value):
    kind = type(value).__name__
    if kind == "timedelta":
        return ["date", kind, value.days, value.seconds, value.microseconds]
    if getattr(value, "tzinfo", None) is not None:
        return codec.export(value)
    names = {"date": ("year", "month", "day"), "time": ("hour", "minute", "second", "microsecond")}
    names["datetime"] = names["date"] + names["time"]
    return ["date", kind, *(getattr(value, name) for name in names[kind])]


def tagged(tag):
    def encode(codec, value):
        if len(value) < LONG:
            return [tag, *codec.encode_items(value)]
        # Long ones are sent in parts, so that the encoded form of millions of tuples never exists
        # at once.
        items, codes = list(value), {}
        return ["parts", tag, *(encode_part(codec, items[at:at + LONG], codes) for at in range(0, len(items), LONG))]
    return encode


def encode_part(codec, items, codes):
    """JSON text; or, for rows of one length with few distinct texts (combinations, grids), one
    character per cell."""
    kind, width = type(items[0]), len(items[0]) if type(items[0]) in (tuple, list) else 0
    if width and set(map(type, items)) == {kind} and set(map(len, items)) == {width}:
        try:
            cells = bytes(map(codes.__getitem__, itertools.chain.from_iterable(items)))
        except (KeyError, TypeError):
            cells = None
            if add_codes(codes, items):
                cells = bytes(map(codes.__getitem__, itertools.chain.from_iterable(items)))
        if cells is not None:
            return ["t" if kind is tuple else "l", width, list(codes), cells.decode()]
    return json.dumps(codec.encode_items(items))


def add_codes(codes, items):
    try:
        distinct = set(itertools.chain.from_iterable(items)) | codes.keys()
    except TypeError:
        return False
    if len(distinct) > len(CELLS) or set(map(type, distinct)) != {str}:
        return False
    for text in distinct - codes.keys():
        codes[text] = CELLS[len(codes)]
    return True


def decode_parts(codec, fields):
    items = []
    for part in fields[1:]:
        if type(part) is str:
            items += codec.decode_items(json.loads(part))
            continue
        tag, width, texts, cells = part
        table = [None] * 256
        for code, text in zip(CELLS, texts):
            table[code] = str(text)
        row = map(table.__getitem__, cells.encode("ascii"))
        rows = zip(*[row] * int(width))
        items += rows if tag == "t" else map(list, rows)
    return {"l": list, "t": tuple, "s": set, "f": frozenset}[fields[0]](items)


ENCODERS = {
    list: tagged("l"), tuple: tagged("t"), set: tagged("s"), frozenset: tagged("f"),
    dict: lambda codec, value: ["d", *encode_pairs(codec, value)],
    bytes: lambda codec, value: ["b", value.hex()],
    bytearray: lambda codec, value: ["ba", value.hex()],
    complex: lambda codec, value: ["c", value.real, value.imag],
    range: lambda codec, value: ["r", *codec.encode_items((value.start, value.stop, value.step))],
    slice: lambda codec, value: ["sl", *codec.encode_items((value.start, value.stop, value.step))],
    type(...): lambda codec, value: ["..."],
    type(NotImplemented): lambda codec, value: ["type", "NotImplemented"],
    collections.deque: lambda codec, value: ["dq", value.maxlen, *codec.encode_items(value)],
    collections.Counter: lambda codec, value: ["cn", *encode_pairs(codec, value)],
    collections.OrderedDict: lambda codec, value: ["od", *encode_pairs(codec, value)],
    collections.defaultdict: lambda codec, value: [
        "dd", getattr(value.default_factory, "__name__", None), *encode_pairs(codec, value)],
    fractions.Fraction: lambda codec, value: ["q", *codec.encode_items((value.numerator, value.denominator))],
    decimal.Decimal: lambda codec, value: ["dec", str(value)],
    **{kind: lambda codec, value, tag=tag: [tag, *codec.encode_items(value)] for kind, tag in zip(VIEWS, ("dk", "dv", "di"))},
    **{kind: encode_date for kind in DATE_TYPES.values()},
}

DECODERS = {
    "i": lambda codec, fields: int(fields[0], 16),
    "l": Codec.decode_items,
    "parts": decode_parts,
    "t": lambda codec, fields: tuple(codec.decode_items(fields)),
    "s": lambda codec, fields: set(codec.decode_items(fields)),
    "f": lambda codec, fields: frozenset(codec.decode_items(fields)),
    "d": decode_pairs,
    "b": lambda codec, fields: bytes.fromhex(fields[0]),
    "ba": lambda codec, fields: bytearray.fromhex(fields[0]),
    "c": lambda codec, fields: complex(*fields),
    "r": lambda codec, fields: range(*codec.decode_items(fields)),
    "sl": lambda codec, fields: slice(*codec.decode_items(fields)),
    "...": lambda codec, fields: ...,
    "dq": lambda codec, fields: collections.deque(codec.decode_items(fields[1:]), fields[0]),
    "cn": lambda codec, fields: collections.Counter(decode_pairs(codec, fields)),
    "od": lambda codec, fields: collections.OrderedDict(decode_pairs(codec, fields)),
    "dd": decode_default,
    "q": lambda codec, fields: fractions.Fraction(*codec.decode_items(fields)),
    "dec": lambda codec, fields: decimal.Decimal(fields[0]),
    "dk": lambda codec, fields: dict.fromkeys(codec.decode_items(fields)).keys(),
    "dv": lambda codec, fields: dict(enumerate(codec.decode_items(fields))).values(),
    "di": lambda codec, fields: dict(codec.decode_items(fields)).items(),
    "date": lambda codec, fields: DATE_TYPES[fields[0]](*fields[1:]),
    "type": lambda codec, fields: NotImplemented if fields[0] == "NotImplemented" else BUILTIN_TYPES[fields[0]],
    "array": decode_array, "scalar": decode_scalar, "objects": decode_objects,
    "tree": lambda codec, fields: tree_node(codec.decode_items(fields), codec.tree_node),
    "chain": lambda codec, fields: list_node(codec.decode_items(fields), codec.list_node),
}
