"""Records testdata/io: small files written by pyarrow, safetensors and huggingface_hub
that the tests of src/io compare with.

    .deps/reference/bin/python tools/record_io_fixtures.py
"""

import ctypes
import datetime as dt
import json
import pathlib
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import safetensors
from huggingface_hub.serialization._base import split_state_dict_into_shards_factory

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "io"
UTC = dt.timezone.utc


def parquet_columns():
    """name -> (type, four values, the four JSON values that a reader should return)"""
    moment = dt.datetime(2024, 2, 29, 23, 59, 58, 123456)
    early = dt.datetime(1901, 12, 31, 0, 0, 0, 1000)
    chat = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    messages = [[{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": None}], [], None, [None]]
    same = lambda values: (values, values)
    return {
        "text": (pa.string(), *same(["plain", "é 你 😀 \n\"\\", None, ""])),
        "large_text": (pa.large_string(), *same(["a", None, "ccc", ""])),
        "category": (pa.dictionary(pa.int8(), pa.string()), *same(["x", "y", None, "x"])),
        "bytes": (pa.binary(), [b"utf-8 \xc3\xa9", None, b"", b"x"], ["utf-8 é", None, "", "x"]),
        "code": (pa.binary(2), [b"ab", b"cd", None, b"ef"], ["ab", "cd", None, "ef"]),
        "yes": (pa.bool_(), *same([True, False, None, True])),
        "int8": (pa.int8(), *same([-128, 127, None, 0])),
        "uint32": (pa.uint32(), *same([0, 4294967295, None, 7])),
        "int64": (pa.int64(), *same([-(2**63), 2**63 - 1, None, 0])),
        "uint64": (pa.uint64(), *same([0, 2**64 - 1, None, 7])),
        "half": (pa.float16(), *same([1.5, -0.25, None, 65504.0])),
        "float": (pa.float32(), *same([1.5, -0.25, None, 0.0])),
        "double": (pa.float64(), *same([0.1, 1e300, None, -0.0])),
        "nothing": (pa.null(), *same([None] * 4)),
        "money": (pa.decimal128(10, 2), [Decimal("12.50"), Decimal("-0.07"), None, Decimal("0.00")],
                  ["12.50", "-0.07", None, "0.00"]),
        "huge": (pa.decimal256(50, 0), [Decimal(10**49), None, Decimal(-3), Decimal(0)],
                 [str(10**49), None, "-3", "0"]),
        "day": (pa.date32(), [moment.date(), dt.date(1, 1, 1), None, dt.date(1969, 12, 31)],
                ["2024-02-29", "0001-01-01", None, "1969-12-31"]),
        "stamp_ms": (pa.timestamp("ms"), [moment.replace(microsecond=7000), early, None, dt.datetime(1970, 1, 1)],
                     ["2024-02-29T23:59:58.007", "1901-12-31T00:00:00.001", None, "1970-01-01T00:00:00.000"]),
        "stamp_utc": (pa.timestamp("us", tz="UTC"), [moment.replace(tzinfo=UTC), None] * 2,
                      ["2024-02-29T23:59:58.123456Z", None] * 2),
        "stamp_ns": (pa.timestamp("ns"), [1, -1, None, 1_709_251_198_123_456_789],
                     ["1970-01-01T00:00:00.000000001", "1969-12-31T23:59:59.999999999", None,
                      "2024-02-29T23:59:58.123456789"]),
        "clock": (pa.time32("ms"), [dt.time(1, 2, 3, 4000), None, dt.time(23, 59, 59), dt.time(0)],
                  ["01:02:03.004", None, "23:59:59.000", "00:00:00.000"]),
        "clock_us": (pa.time64("us"), [dt.time(1, 2, 3, 4), None, dt.time(0), dt.time(0)],
                     ["01:02:03.000004", None, "00:00:00.000000", "00:00:00.000000"]),
        "numbers": (pa.list_(pa.int32()), *same([[1, 2, None], [], None, [3]])),
        "nested": (pa.list_(pa.list_(pa.string())), *same([[["a"], [], None], [["b", "c"]], None, []])),
        "pair": (pa.list_(pa.float64(), 2), *same([[1.0, 2.0], [3.0, None], None, [5.0, 6.0]])),
        "chat": (chat, *same(messages)),
        "outer": (pa.struct([("inner", pa.struct([("n", pa.int64())])), ("s", pa.string())]),
                  *same([{"inner": {"n": 1}, "s": "a"}, {"inner": None, "s": None}, None, {"inner": {"n": None}, "s": ""}])),
        "by_name": (pa.map_(pa.string(), pa.int64()), [[("a", 1), ("b", None)], [], None, [("z", 3)]],
                    [{"a": 1, "b": None}, {}, None, {"z": 3}]),
        "by_number": (pa.map_(pa.int32(), pa.string()), [[(1, "one"), (-2, "two")], [], None, []],
                      [{"1": "one", "-2": "two"}, {}, None, {}]),
        "by_day": (pa.map_(pa.date32(), pa.int64()), [[(dt.date(2024, 1, 2), 5)], [], None, []],
                   [[["2024-01-02", 5]], [], None, []]),
    }


def record_parquet():
    columns = parquet_columns()
    table = pa.table({name: pa.array(values, type=type_) for name, (type_, values, _) in columns.items()})
    rows = [{name: expected[i] for name, (_, _, expected) in columns.items()} for i in range(4)]
    # Row groups of 3 and 1 rows; both page versions and codecs occur.
    pq.write_table(table, FOLDER / "types.parquet", row_group_size=3, compression="zstd")
    with open(FOLDER / "types.jsonl", "w", encoding="utf-8") as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    # A v2 page layout, another codec, many row groups.
    many = pa.table({"n": pa.array(range(5000)), "s": pa.array([str(i) * (i % 7) for i in range(5000)])})
    pq.write_table(many, FOLDER / "many.parquet", row_group_size=700, compression="snappy",
                   data_page_version="2.0", data_page_size=512)
    bad = pa.table({"n": [1, 2, 3], "chat": pa.array([[{"b": b"ok"}], [{"b": b"x"}, {"b": b"\xff\xfe"}], []])})
    pq.write_table(bad, FOLDER / "not_utf8.parquet")
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(twice, FOLDER / "twice.parquet")


def tensor_spec(dtype, shape, data, alive):
    buffer = ctypes.create_string_buffer(data, len(data)) if data else ctypes.create_string_buffer(1)
    alive.append(buffer)
    return safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=ctypes.addressof(buffer), data_len=len(data))


def record_safetensors():
    # Every type that the library supports in Python; bytes count up from the tensor's number.
    types = {"bool": 1, "uint8": 1, "int8": 1, "float8_e5m2": 1, "float8_e4m3fn": 1, "float8_e8m0fnu": 1,
             "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4,
             "complex64": 8, "float64": 8, "int64": 8, "uint64": 8}
    alive, specs = [], {}
    for number, (dtype, size) in enumerate(types.items()):
        data = bytes((number + i) % 256 for i in range(3 * size))
        specs[f"layer.{number}.{dtype}"] = tensor_spec(dtype, [3, 1], data, alive)
    specs["scalar"] = tensor_spec("float32", [], bytes(4), alive)
    specs["empty"] = tensor_spec("float32", [0, 5], b"", alive)
    specs["weird \"name\" é\n"] = tensor_spec("uint8", [1], b"\x07", alive)
    # Only one entry of metadata: the library writes several in no particular order.
    blob = bytes(safetensors.serialize(specs, metadata={"format": "pt"}))
    (FOLDER / "types.safetensors").write_bytes(blob)
    listing = [{"name": name, "dtype": info["dtype"], "shape": info["shape"], "data": bytes(info["data"]).hex()}
               for name, info in safetensors.deserialize(blob)]
    with open(FOLDER / "types.safetensors.jsonl", "w", encoding="utf-8") as out:
        for row in sorted(listing, key=lambda row: row["name"]):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
    alive.clear()
    plain = {"b": tensor_spec("float32", [2], bytes(range(8)), alive), "a": tensor_spec("float32", [1], b"abcd", alive)}
    (FOLDER / "plain.safetensors").write_bytes(bytes(safetensors.serialize(plain)))
    (FOLDER / "none.safetensors").write_bytes(bytes(safetensors.serialize({})))


def record_shards():
    sizes = {f"layer.{i}": size for i, size in enumerate([40, 60, 1, 99, 100, 4, 4, 92, 1, 7])}
    split = split_state_dict_into_shards_factory(
        sizes, get_storage_size=lambda size: size, filename_pattern="model{suffix}.safetensors", max_shard_size=100)
    index = {"metadata": split.metadata, "weight_map": split.tensor_to_filename}
    (FOLDER / "shards.index.json").write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    record_parquet()
    record_safetensors()
    record_shards()
