"""Our own template snippets, one or two features each; all use the same VARIABLES."""

VARIABLES = {
    "name": "World", "empty": "", "text": "one two  three", "lines": "a\nb\n\nc", "mixed": "heLLo wOrld",
    "uni": "Grüße, 東京 🗼!", "quote": "it's \"so\"", "html": "<a href='x'>&</a>", "number": 7, "zero": 0,
    "negative": -3, "pi": 3.14159, "whole": 2.0, "big": 9007199254740993, "yes": True, "no": False,
    "nothing": None, "list": [3, 1, 2], "words": ["b", "A", "c"], "nested": [[1, 2], [3, [4]]],
    "blank": [], "record": {"a": 1, "b": [True, None], "c": {"d": "x"}}, "emptydict": {},
    "people": [{"name": "Ann", "age": 30, "tag": "x"}, {"name": "bob", "age": 25, "tag": "y"},
               {"name": "Cid", "age": 30, "tag": "x"}],
    "clash": {"items": 1, "get": 2, "keys": 3}, "control": "\u0000\u001f\u007f\u0085\u2028\t\"\\/",
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": "Hello", "tool_calls": [
                     {"function": {"name": "f", "arguments": {"x": 1, "y": [1.5, "z"]}}}]},
                 {"role": "tool", "content": "42"}],
    "schema": {"type": "object", "properties": {
        "a": {"type": "string", "enum": ["x", "y"]}, "b": {"type": ["integer", "null"]},
        "c": {"type": "array", "items": {"type": "object", "properties": {"d": {"type": "number"}}}}},
        "required": ["a"]},
    "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True,
}

# Each line is a template; "\\n" and the like are Jinja's own escapes, real newlines are in lists.
_EXPRESSIONS = r"""
{{ name }}|{{ missing }}|{{ nothing }}|{{ yes }}|{{ no }}|{{ number }}|{{ pi }}|{{ whole }}|{{ big }}
{{ list }}|{{ nested }}|{{ record }}|{{ words }}|{{ blank }}|{{ emptydict }}|{{ () }}|{{ (1,) }}|{{ 1, 2 }}
{{ [quote, "it's", 'say "x"', "a\nb\t\\", "é", "\x00\x7f", "\u200b\u00ad", "\U0001F600"] }}
{{ [1.0, 0.1, 1e100, 1e16, 123456789012345680.0, 1e-5, 0.0001, -0.0, 1.5e300, 2.5, 100.0] }}
{{ 1 + 2 * 3 - 4 / 2 }}|{{ 7 // 2 }}|{{ -7 // 2 }}|{{ 7 % 3 }}|{{ -7 % 3 }}|{{ 7 % -3 }}|{{ 2 ** 10 }}
{{ 2 ** -1 }}|{{ 2 ** 3 ** 2 }}|{{ -2 ** 2 }}|{{ 7.5 // 2 }}|{{ -7.5 % 2 }}|{{ 1 / 3 }}|{{ 10 / 5 }}
{{ 1_000 }}|{{ 0x1F }}|{{ 0b101 }}|{{ 0o17 }}|{{ 1e3 }}|{{ 1.5e-3 }}|{{ 1_0.5_0 }}|{{ 00 }}
{{ "a" ~ 1 ~ none ~ true ~ missing ~ 1.0 }}|{{ "a" + "b" }}|{{ "ab" * 3 }}|{{ 2 * "x" }}|{{ [1] * 2 }}
{{ [1] + [2, 3] }}|{{ (1, 2) + (3,) }}|{{ "x" * 0 }}|{{ "x" * -1 }}|{{ true + true }}|{{ 1 == 1.0 }}
{{ 1 < 2 < 3 }}|{{ 1 < 3 < 2 }}|{{ 1 == 1 != 2 }}|{{ "a" < "b" }}|{{ [1, 2] < [1, 3] }}|{{ "B" < "a" }}
{{ 1 in list }}|{{ 9 not in list }}|{{ "wo" in text }}|{{ "a" in record }}|{{ "x" in missing }}|{{ none in [none] }}
{{ not 1 }}|{{ not not "" }}|{{ 0 or "x" }}|{{ "a" and "b" }}|{{ "" and 1 }}|{{ missing or "d" }}|{{ none or false }}
{{ not yes and no or 5 }}|{{ 1 if yes else 2 }}|{{ 1 if no }}|{{ 1 if no else 2 if no else 3 }}|{{ (1 if yes) + 1 }}
{{ record.a }}|{{ record["a"] }}|{{ record.c.d }}|{{ record.zzz }}|{{ record["zzz"] }}|{{ list[0] }}|{{ list[-1] }}|{{ list[9] }}
{{ list.0 }}|{{ nested[1][1][0] }}|{{ nested.1.1.0 }}|{{ clash.items()|list }}|{{ clash["items"] }}|{{ clash["get"] }}
{{ text[0] }}|{{ text[-1] }}|{{ uni[8] }}|{{ uni[2:4] }}|{{ uni[::-1] }}|{{ text[:3] }}|{{ text[-5:] }}|{{ text[::2] }}
{{ list[::-1] }}|{{ list[1:] }}|{{ list[:-1] }}|{{ list[5:] }}|{{ list[-2:] }}|{{ list[2:0:-1] }}|{{ list[:] }}
{{ messages[1:][0].role }}|{{ messages[::-1][0].content }}|{{ (1, 2, 3)[1:] }}|{{ list[-9:9] }}|{{ range(9)[2:7:2]|list }}
{{ "a\tb\\n\x41\u00e9\101\q" }}|{{ 'it\'s' }}|{{ "a" "b" 'c' }}|{{ "{{ }}" }}|{{ '%}' }}|{{ "\U0001F5FC" }}
{{ {"a": 1, 2: "b", none: true, (1, 2): [], 1.5: {}} }}|{{ {"a": 1, "a": 2} }}|{{ {1: "x", true: "y", 1.0: "z"} }}
{{ {"a": 1}.a }}|{{ {"b": {"c": 2}}["b"].c }}|{{ [1, 2, ] }}|{{ {"a": 1, } }}|{{ record == {"a": 1, "b": [true, none], "c": {"d": "x"}} }}
{{ [1, 2] == [1, 2] }}|{{ (1,) == [1] }}|{{ "1" == 1 }}|{{ none == false }}|{{ missing == missing2 }}|{{ missing == none }}
{{ "  x ".strip() }}|{{ "xxaxx".strip("x") }}|{{ "xya".lstrip("yx") }}|{{ "axy".rstrip("yx") }}|{{ "\u00a0\u3000a\n".strip() }}|
{{ text.split() }}|{{ text.split(" ") }}|{{ text.split(" ", 1) }}|{{ text.split(maxsplit=1) }}|{{ "a,b,c".rsplit(",", 1) }}|{{ "".split() }}|{{ "".split(",") }}
{{ " a  b c ".rsplit(none, 1) }}|{{ " a  b c ".split(none, 1) }}|{{ " a b ".split(none, 0) }}|{{ " a b ".rsplit(none, 0) }}|{{ "aaa".rsplit("aa", 1) }}
{{ lines.splitlines() }}|{{ "a\r\nb\x0bc\u2028d".splitlines() }}|{{ "a\nb\n".splitlines(true) }}|{{ "a-b-c".partition("-") }}|{{ "a-b-c".rpartition("-") }}|{{ "abc".partition("-") }}
{{ text.startswith("one") }}|{{ text.endswith(("x", "three")) }}|{{ text.startswith("two", 4) }}|{{ text.startswith("", 99) }}|{{ uni.startswith("東", 7) }}
{{ text.find("two") }}|{{ uni.find("京") }}|{{ text.find("zzz") }}|{{ text.rfind("t") }}|{{ text.index("e") }}|{{ text.count("e") }}|{{ "aaaa".count("aa") }}|{{ "abc".count("") }}|{{ "abc".find("") }}|{{ "abc".rfind("") }}
{{ text.replace("o", "0") }}|{{ text.replace("o", "0", 1) }}|{{ "ab".replace("", "-") }}|{{ "ab".replace("", "-", 2) }}|{{ "aaa".replace("aa", "b") }}
{{ name.upper() }}|{{ name.lower() }}|{{ mixed.title() }}|{{ mixed.capitalize() }}|{{ mixed.swapcase() }}|{{ "straße".upper() }}|{{ "ÄÖ".lower() }}|{{ "they're bill's".title() }}
{{ "12".isdigit() }}|{{ "1a".isdigit() }}|{{ "".isdigit() }}|{{ "ab".isalpha() }}|{{ "a1".isalnum() }}|{{ " \t".isspace() }}|{{ "AB1".isupper() }}|{{ "ab".islower() }}|{{ "Ab Cd".istitle() }}|{{ "é".isascii() }}|{{ "²".isdigit() }}|{{ "½".isnumeric() }}
{{ "prefix-x".removeprefix("prefix-") }}|{{ "x.jinja".removesuffix(".jinja") }}|{{ "x".removeprefix("") }}|{{ ", ".join(["a", "b"]) }}|{{ "-".join("abc") }}|{{ "".join([]) }}
{{ "a".ljust(3) }}|{{ "a".rjust(3, "*") }}|{{ "ab".center(5, ".") }}|{{ "abc".center(6) }}|{{ "-5".zfill(4) }}|{{ "é".center(4, "ü") }}
{{ "{} and {}".format(1, "x") }}|{{ "{0}{1}{0}".format("a", "b") }}|{{ "{x} {y[0]} {z.a}".format(x=1, y=[2], z={"a": 3}) }}|{{ "{{}}".format() }}|{{ "{!r}".format("a") }}
{{ "{:>5}|{:<5}|{:^5}|{:*^7}".format("a", "b", "c", "d") }}|{{ "{:05d} {:+d} {:,} {:x} {:.2f} {:8.3f} {:.0%} {:e}".format(42, 5, 1234567, 255, 3.14159, 2.5, 0.5, 12345.678) }}
{{ "%s and %d" % ("x", 3) }}|{{ "%5.2f|%-5s|%05d|%x|%%" % (3.14159, "a", 42, 255) }}|{{ "%(a)s" % {"a": 1} }}|{{ "%s" % 5 }}|{{ "%r" % "x" }}|{{ "%s-%s"|format("a", 1) }}|{{ "%(n)s"|format(n=2) }}
{{ record.items() }}|{{ record.keys() }}|{{ record.values() }}|{{ record.keys()|list }}|{{ record.get("a") }}|{{ record.get("z") }}|{{ record.get("z", "d") }}|{{ record.items()|list }}
{{ list.index(1) }}|{{ list.count(3) }}|{{ (1, 1, 2).count(1) }}|{{ list.copy() }}|{{ record.copy() == record }}
{{ missing|default("d") }}|{{ ""|default("d") }}|{{ ""|default("d", true) }}|{{ none|d("x") }}|{{ none|d("x", boolean=true) }}|{{ record.zz|default({"k": 1}) }}|{{ missing|default }}
{{ text|length }}|{{ uni|length }}|{{ list|count }}|{{ record|length }}|{{ missing|length }}|{{ range(5)|length }}
{{ "  x "|trim }}|{{ "xax"|trim("x") }}|{{ name|upper }}|{{ name|lower }}|{{ mixed|capitalize }}|{{ mixed|title }}|{{ "foo-bar (baz) it's"|title }}|{{ 5|upper }}|{{ none|trim }}
{{ text|replace("o", "0") }}|{{ text|replace("o", "0", 1) }}|{{ 5|replace(5, 6) }}|{{ list|join }}|{{ list|join(", ") }}|{{ people|join("-", attribute="name") }}|{{ "abc"|join(".") }}|{{ missing|join }}|{{ [none, true, 1.0]|join("/") }}
{{ list|first }}|{{ list|last }}|{{ blank|first }}|{{ text|first }}|{{ uni|last }}|{{ record|first }}|{{ record|last }}|{{ missing|first }}|{{ people|map(attribute="age")|first }}
{{ "abc"|list }}|{{ record|list }}|{{ range(3)|list }}|{{ missing|list }}|{{ 5|string + "x" }}|{{ none|string }}|{{ [1, "a"]|string }}
{{ "42"|int }}|{{ "4x"|int }}|{{ "4x"|int(7) }}|{{ "0x1A"|int(base=16) }}|{{ "42.9"|int }}|{{ 3.9|int }}|{{ -3.9|int }}|{{ none|int }}|{{ true|int }}|{{ " 5 "|int }}|{{ "1_000"|int }}|{{ "1e3"|int }}
{{ "4.5"|float }}|{{ "x"|float }}|{{ "x"|float(1.5) }}|{{ 3|float }}|{{ "1e5"|float }}|{{ "inf"|float }}|{{ "nan"|float }}|{{ none|float }}|{{ "1_0.5"|float }}
{{ record|items|list }}|{{ missing|items|list }}|{% for k, v in record|items %}{{ k }}={{ v }};{% endfor %}|{{ record|dictsort }}|{{ {"b": 1, "A": 2, "c": 0}|dictsort }}|{{ {"b": 1, "A": 2}|dictsort(true) }}|{{ {"b": 1, "A": 2}|dictsort(by="value", reverse=true) }}
{{ list|sort }}|{{ list|sort(reverse=true) }}|{{ words|sort }}|{{ words|sort(case_sensitive=true) }}|{{ people|sort(attribute="age")|map(attribute="name")|join(",") }}|{{ people|sort(attribute="age,name")|map(attribute="name")|join(",") }}|{{ "bca"|sort }}
{{ list|reverse|list }}|{{ "abc"|reverse }}|{{ record|reverse|list }}|{{ [1, 2, 1, "a", "A"]|unique|list }}|{{ people|unique(attribute="tag")|map(attribute="name")|list }}|{{ ["a", "A"]|unique(true)|list }}
{{ words|map("upper")|join }}|{{ people|map(attribute="name")|list }}|{{ people|map(attribute="zz", default="-")|join }}|{{ ["1", "2"]|map("int")|sum }}|{{ [" a "]|map("trim")|list }}|{{ ["a-b"]|map("replace", "-", "+")|list }}|{{ blank|map("nope")|list }}
{{ [0, 1, "", "a"]|select|list }}|{{ list|select("odd")|list }}|{{ list|reject("odd")|list }}|{{ list|select("gt", 1)|list }}|{{ list|select(">=", 2)|list }}|{{ [1, "a", none]|select("string")|list }}|{{ list|select("in", [1, 2])|list }}
{{ messages|selectattr("role", "equalto", "user")|list|length }}|{{ messages|rejectattr("role", "eq", "user")|map(attribute="role")|join(",") }}|{{ messages|selectattr("tool_calls", "defined")|list|length }}|{{ messages|selectattr("tool_calls")|list|length }}|{{ messages|selectattr("role", "in", ["user", "tool"])|list|length }}
{{ list|batch(2)|list }}|{{ list|batch(2, "x")|list }}|{{ [1, 2, 3, 4, 5]|slice(3)|list }}|{{ [1, 2, 3, 4, 5]|slice(3, 0)|list }}|{{ blank|batch(2)|list }}
{{ list|sum }}|{{ people|sum(attribute="age") }}|{{ [1.5, 2]|sum(start=10) }}|{{ [[1], [2]]|sum(start=[]) }}|{{ list|min }}|{{ list|max }}|{{ words|min }}|{{ words|max(case_sensitive=true) }}|{{ blank|max }}|{{ (people|max(attribute="age")).name }}
{{ -3|abs }}|{{ (-3)|abs }}|{{ (-2.5)|abs }}|{{ 2.5|round }}|{{ 3.5|round }}|{{ 2.675|round(2) }}|{{ 42.55|round(1, "floor") }}|{{ 42.51|round(0, "ceil") }}|{{ 7|round }}|{{ 1234|round(-2) }}|{{ 2.5|round|int }}
{{ lines|indent }}|{{ lines|indent(2, true) }}|{{ lines|indent(2, blank=true) }}|{{ lines|indent(">> ") }}|{{ lines|indent(width=1, first=true) }}
{{ text|wordcount }}|{{ "don't stop_it 5"|wordcount }}|{{ html|escape }}|{{ html|e }}|{{ name|safe }}|{{ 5|e }}|{{ "a b/c?d=é"|urlencode }}|{{ {"a": 1, "b c": "d&e"}|urlencode }}|{{ "x"|center(5) }}|
{{ "foo bar baz qux"|truncate(9) }}|{{ "foo bar baz qux"|truncate(9, true) }}|{{ "foo bar baz qux"|truncate(11) }}|{{ "foo bar baz qux"|truncate(9, false, "…", 0) }}
{% for g in people|groupby("age") %}{{ g.grouper }}:{{ g.list|map(attribute="name")|join("+") }};{% endfor %}|{% for age, group in people|groupby("age") %}{{ age }}={{ group|length }} {% endfor %}|{{ people|groupby("tag")|map("first")|list }}
{{ record|tojson }}|{{ html|tojson }}|{{ uni|tojson }}|{{ quote|tojson }}|{{ control|tojson }}|{{ none|tojson }}|{{ [1.0, 1e22, 1e-7, 0.1, true]|tojson }}|{{ ""|tojson }}|{{ [(1, 2)]|tojson }}
{{ record|tojson(indent=2) }}|{{ nested|tojson(indent=1) }}|{{ blank|tojson(indent=2) }}|{{ emptydict|tojson(indent=4) }}|{{ [[], {}]|tojson(indent=2) }}
{{ {"b": 1, "a": {"d": 1, "c": 2}}|tojson(sort_keys=true) }}|{{ record|tojson(separators=(",", ":")) }}|{{ uni|tojson(ensure_ascii=true) }}|{{ "\x7f😀"|tojson(true) }}|{{ record|tojson(indent="--") }}|{{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}|{{ record|tojson(indent=0) }}
{{ "inf"|float|tojson }}|{{ "nan"|float|tojson }}|{{ -0.0|tojson }}|{{ big|tojson }}|{{ "\b\f\n\r\t"|tojson }}|{{ record.values()|list|tojson }}
{{ name is defined }}|{{ missing is defined }}|{{ missing is undefined }}|{{ record.z is defined }}|{{ nothing is none }}|{{ missing is none }}|{{ nothing is not none }}|{{ name is string }}|{{ 1 is string }}
{{ record is mapping }}|{{ list is mapping }}|{{ list is iterable }}|{{ name is iterable }}|{{ 5 is iterable }}|{{ missing is iterable }}|{{ list is sequence }}|{{ name is sequence }}|{{ record is sequence }}|{{ 5 is sequence }}|{{ record.items() is sequence }}|{{ missing is sequence }}
{{ 1 is number }}|{{ true is number }}|{{ 1 is integer }}|{{ true is integer }}|{{ 1.0 is integer }}|{{ 1.0 is float }}|{{ 1 is float }}|{{ true is boolean }}|{{ 1 is boolean }}|{{ true is true }}|{{ 1 is true }}|{{ false is false }}|{{ none is false }}
{{ 3 is odd }}|{{ 3 is even }}|{{ 9 is divisibleby 3 }}|{{ 9 is divisibleby(2) }}|{{ 1 is eq 1 }}|{{ 1 is equalto(2) }}|{{ 1 is ne 2 }}|{{ 1 is lt 2 }}|{{ 1 is gt(2) }}|{{ 1 is le 1 }}|{{ 1 is ge 2 }}|{{ 1 is in [1, 2] }}|{{ "a" is in("abc") }}|{{ 1 is not in [2] }}
{{ none is sameas none }}|{{ true is sameas 1 }}|{{ range is callable }}|{{ name is callable }}|{{ name.upper is callable }}|{{ "a" is lower }}|{{ "A" is upper }}|{{ "aB" is lower }}|{{ "upper" is filter }}|{{ "nope" is filter }}|{{ "odd" is test }}|{{ "x" is escaped }}
{{ range(3)|list }}|{{ range(1, 7, 2)|list }}|{{ range(3, 0, -1)|list }}|{{ range(0)|list }}|{{ range(3) }}|{{ range(1, 9, 3) }}|{{ 2 in range(3) }}|{{ range(5)[-1] }}|{{ range(3) == range(3) }}
{{ dict(a=1, b="x") }}|{{ dict({"a": 1}, b=2) }}|{{ dict([("k", "v")]) }}|{{ namespace(x=1).x }}|{{ namespace({"y": 2}).y }}|{{ namespace().zz }}
{% set c = cycler("a", "b") %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.reset() }}{{ c.next() }}|{% set j = joiner("; ") %}{{ j() }}a{{ j() }}b{{ j() }}c
{{ (-5)|abs + 1 }}|{{ -list[0] }}|{{ not list|length > 5 }}|{{ 5 - 2|abs }}|{{ "a" ~ "b"|upper }}|{{ 1 + 1|string|int }}|{{ list|length * 2 }}|{{ 2 is odd or 3 is odd }}|{{ "x" if 1 is odd else "y" }}
{{ name.upper().lower().title() }}|{{ (name ~ "x").upper() }}|{{ "abc"[1].upper() }}|{{ [name][0].upper() }}|{{ messages[-1]["content"]|int + 1 }}|{{ messages[2].tool_calls[0].function.arguments.y[1] }}
{{ people|map(attribute="name")|map("lower")|select("ne", "bob")|join("&") }}|{{ people|map(attribute="name")|sort|first }}|{{ "a.b.c".split(".")|last }}|{{ text.split()|map("capitalize")|join(" ") }}
{{ missing.x if false else "safe" }}|{{ record.zz.yy if record.zz is defined else "none" }}|{{ (record.zz or {}).yy }}|{{ record.zz|default({})|length }}
{%- set m = words|map("upper") -%}{{ m|list }}{{ m|list }}|{% set m = words|map("upper") %}{{ m|first }}{{ m|join }}|{% set s = list|select("odd") %}{{ 3 in s }}{{ s|list }}
{{ 9223372036854775807 }}|{{ -9223372036854775807 - 1 }}|{{ 9007199254740993 == 9007199254740992.0 }}|{{ 9007199254740993 > 9007199254740992.0 }}|{{ 3 // -2 }}|{{ 3.0 // -2 }}|{{ 0.1 + 0.2 }}|{{ 1e308 * 10 }}
{{ "a" is defined and "b" }}|{{ (1, "a", none, true, 1.5, [2], {"k": (3,)}) }}|{{ [missing] }}|{{ {"a": missing} }}
{{ loop is defined }}|{{ "%.3g"|format(1234.5) }}|{{ "%e" % 12345.678 }}|{{ "%c" % "x" }}|{{ "%+d % d" % (5, 5) }}|{{ "%o %X" % (8, 255) }}|{{ "%10s|" % "ab" }}|{{ "%.2s" % "abc" }}
{{ messages is sequence and messages is iterable and messages is not string and messages is not mapping }}
{{ "ǆ".title() }}|{{ "ﬀ".isalpha() }}|{{ "αΒγ".swapcase() }}|{{ "İ".lower()|length }}|{{ "x₂".isalnum() }}|{{ "٣".isdecimal() }}|{{ "Ⅷ".isnumeric() }}
{{ list|map("string")|map("length")|sum }}|{{ [[1, 2], [3]]|map("sum")|list }}|{{ [[2, 1]]|map("sort")|list }}|{{ people|map(attribute="tag")|unique|sort|join }}|{{ record|map("upper")|list }}|{{ "ab"|map("upper")|list }}
"""

_BLOCKS = [
    ("for", "{% for x in list %}{{ x }},{% endfor %}|{% for x in blank %}x{% else %}none{% endfor %}"
            "|{% for k in record %}{{ k }}{% endfor %}|{% for c in 'aé🗼' %}[{{ c }}]{% endfor %}"),
    ("for loop variables", "{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}"
                           "{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}"),
    ("for neighbours", "{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }};{% endfor %}"
                       "{% for x in list %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}"),
    ("for cycle changed", "{% for x in [1,1,2,2,1] %}{{ loop.cycle('a','b','c') }}{{ loop.changed(x) }} {% endfor %}"),
    ("for if", "{% for x in range(9) if x is odd %}{{ x }}:{{ loop.index }}/{{ loop.length }}{{ ',' if not loop.last }}{% endfor %}"
               "|{% for x in list if x > 5 %}x{% else %}none{% endfor %}"),
    ("for unpack", "{% for k, v in record.items() %}{{ k }}={{ v }};{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a+b+c }}{% endfor %}"
                   "{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}"),
    ("for break continue", "{% for x in range(9) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}"),
    ("for nested", "{% for x in list %}{% for y in list %}{% if y == x %}{% break %}{% endif %}{{ y }}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}"),
    ("for scope", "{% set x = 0 %}{% for i in list %}{{ x }}{% set x = x + i %}{{ x }};{% endfor %}{{ x }}{{ i }}"),
    ("for scope of an if", "{% for i in list %}{% if i == 1 %}{% set y = 'set' %}{% endif %}{{ y|default('-') }}{% endfor %}{{ y }}"),
    ("for recursive", "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': []}, {'v': 3}]}] recursive %}{{ loop.depth }}:{{ n.v }}[{{ loop(n.c) if n.c }}]{% endfor %}"),
    ("for lazy filter", "{% set ns = namespace(stop=false) %}{% for x in range(5) if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}"),
    ("for over a tuple", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}|{% for x in (1, 2) + (3,) %}{{ x }}{% endfor %}"),
    ("for over undefined", "{% for x in missing %}x{% else %}nothing{% endfor %}"),
    ("for reverse", "{% for m in messages|reverse %}{{ loop.index }}{{ m.role }}{{ loop.last }}{% endfor %}{% for m in messages[::-1] %}{{ (messages|length - 1) - loop.index0 }}{% endfor %}"),
    ("for shadow", "{% for name in words %}{{ name }}{% endfor %}{{ name }}"),
    ("for loop kept", "{% set ns = namespace(l=none) %}{% for x in list %}{% set ns.l = loop %}{% endfor %}{{ ns.l.index }}"),
    ("for generator length", "{% for x in words|map('upper') %}{{ loop.length }}{{ x }}{{ loop.revindex }}{{ loop.last }}{% endfor %}"),
    ("for else scope", "{% for x in blank %}{% else %}{% set q = 1 %}{{ q }}{% endfor %}{{ q }}"),
    ("if chain", "{% for x in range(5) %}{% if x == 0 %}zero{% elif x == 1 %}one{% elif x is even %}even{% else %}odd{% endif %} {% endfor %}"),
    ("if truth", "{% for x in [0, 1, '', 'a', none, [], [0], {}, {'a': 1}, 0.0, 0.1, true, false, missing] %}{{ 1 if x else 0 }}{% endfor %}"),
    ("if tuple", "{% if 0, 0 %}yes{% endif %}{% if (0) %}no{% endif %}"),
    ("set", "{% set x = 5 %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% set t = 1, 2 %}{{ t }}"),
    ("set block", "{% set x %}a{{ name }}b{% endset %}{{ x }}|{% set y | upper | trim %} abc {% endset %}{{ y }}|{% set z %}{% set inner = 1 %}{% endset %}{{ inner }}{{ z|length }}"),
    ("set in if", "{% if yes %}{% set q = 'in' %}{% endif %}{{ q }}{% if no %}{% set r = 1 %}{% endif %}{{ r }}"),
    ("set overrides a variable", "{% set name = name ~ '!' %}{{ name }}{% set missing = missing|default('m') %}{{ missing }}"),
    ("namespace", "{% set ns = namespace(a=1, found=false) %}{% for x in list %}{% set ns.a = ns.a + x %}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.a }}{{ ns.found }}{% set ns.new = [1] %}{{ ns.new }}{{ ns['a'] }}"),
    ("namespace in a tuple", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a + ns.b }}"),
    ("namespace list", "{% set ns = namespace(l=[]) %}{% for x in words %}{% set ns.l = ns.l + [x ~ loop.index] %}{% endfor %}{{ ns.l|join(',') }}"),
    ("namespace cycle", "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns.me.me.me is defined }}"),
    ("macro", "{% macro m(a, b='x', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2, 3) }}{{ m(c=1, a=2) }}{{ m() }}{{ m(b=a, a=1) }}"),
    ("macro closure", "{% set g = 1 %}{% macro m() %}{{ g }}{{ later }}{% set g = 9 %}{{ g }}{% endmacro %}{% set g = 2 %}{% set later = 'L' %}{{ m() }}{{ g }}"),
    ("macro varargs kwargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}{{ m(1) }}{{ m(*[1, 2], **{'k': 3}) }}"),
    ("macro recursive", "{% macro fact(n) %}{{ 1 if n < 2 else n * fact(n - 1)|int }}{% endmacro %}{{ fact(10) }}"),
    ("macro default sees others", "{% macro m(a, b=a ~ 'b') %}{{ b }}{% endmacro %}{{ m('x') }}{% macro n(name=name) %}[{{ name }}]{% endmacro %}{{ n() }}"),
    ("macro returns a string", "{% macro m() %} a {% endmacro %}{{ m()|trim ~ m()|length }}{{ m() is string }}{% set x = m() %}{{ x.strip() }}"),
    ("macro in a loop", "{% for x in list %}{% macro m() %}{{ x }}{{ loop.index }}{% endmacro %}{{ m() }}{% endfor %}"),
    ("macro as a value", "{% macro m(x) %}<{{ x }}>{% endmacro %}{% set f = m %}{{ f(1) }}{{ m.name }}{% macro apply(f, x) %}{{ f(x) }}{% endmacro %}{{ apply(m, 2) }}"),
    ("call block", "{% macro m(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call m('b') %}in {{ name }}{% endcall %}"),
    ("call block with arguments", "{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(x, i) each(list) %}{{ i }}={{ x }};{% endcall %}"),
    ("caller absent", "{% macro m() %}{{ caller() if caller else 'no' }}{% endmacro %}{{ m() }}{% call m() %}yes{% endcall %}"),
    ("filter block", "{% filter upper %}a{{ name }}{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}"),
    ("with", "{% with a = 1, b = number %}{{ a }}{{ b }}{% set a = 3 %}{{ a }}{% endwith %}{{ a }}{% with %}{% set z = 1 %}{% endwith %}{{ z }}"),
    ("generation", "{% generation %}a{{ name }}{% endgeneration %}{% for m in messages %}{% generation %}{{ m.role }}{% set g = 1 %}{% endgeneration %}{{ g }}{% endfor %}"),
    ("print tag", "{% print name %}{% print 1, 2 %}"),
    ("block tag", "{% block title %}a{{ name }}{% endblock %}{% block b %}b{% endblock b %}"),
    ("raw", "{% raw %}{{ x }}{% if %}{# no #}{% endraw %}|{%- raw -%}  {{ a }} {%- endraw -%} |\n{% raw %}\n  x\n{% endraw %}\ny"),
    ("comments", "a{# x #}b{#- y -#} c {#\n{{ z }}\n#}\nd\n  {# indented #}\ne {#- f -#}\n g{#+ h +#}\n"),
    # white space
    ("trim blocks", "a\n{% if yes %}\nb\n{% endif %}\nc\n"),
    ("lstrip blocks", "a\n    {% if yes %}\n  b\n    {% endif %}\n  c"),
    ("lstrip keeps text", "a  {% if yes %} b {% endif %} c\n \t {% if yes %}d{% endif %}  \n"),
    ("no lstrip with plus", "a\n  {%+ if yes %}\nb{% endif +%}\nc"),
    ("minus", "a  \n  {%- if yes -%}  \n  b  \n {%- endif -%}\n\n c {{- name -}}  d\n"),
    ("variable keeps line end", "{{ name }}\n{{ name }}\n\nx"),
    ("minus variable", "a \n {{- name }} \n {{ name -}} \n b"),
    ("first line indented", "   {% if yes %}x{% endif %}"),
    ("lines of statements", "{% set a = 1 %}\n{% set b = 2 %}\n\n{{ a }}{{ b }}\n{% for x in list %}\n{{ x }}\n{% endfor %}\n\nend\n\n"),
    ("carriage returns", "a\r\n{% if yes %}\r\nb\r{% endif %}\r\nc\r\n"),
    ("trailing newline", "x\n"), ("trailing newlines", "x\n\n"), ("only a newline", "\n"), ("empty", ""),
    ("unicode spaces", "a\u00a0{%- if yes -%}\u3000b{% endif %}\u2028{%- if yes %}c{% endif %}"),
    ("multi line tags", "{{\n  name\n  |upper\n}}{%\n if yes\n%}x{%\n endif\n%}{{ {\n'a': 1\n}\n}}"),
    ("braces", "{ {a} } }} %} #} {{ '}}' }} { % x % } {{ {'a': {'b': 1}}}} {{ {} }}"),
    ("signs", "{{-5}}|{{ - 5 }}|{{+5}}|{{ 3 -2 }}|{{ 1-1 }}|{{1 - -1}}"),
    ("comment between", "{% if yes %}\n{# note #}\nx\n{% endif %}"),
    ("indented tags in text", "<s>\n  {%- for m in messages %}\n    {{ m.role }}: {{ m.content }}\n  {%- endfor %}\n</s>"),
    ("string with newline", "{{ 'a\nb' }}|{{ \"x\\\ny\" }}|{{ 'a\r\nb' }}"),
    ("colon after a tag", "{% if yes: %}a{% else: %}b{% endif %}{% for x in list: %}{{ x }}{% endfor %}"),
    ("filter unknown in a branch", "{% if no %}{{ name|nope }}{% endif %}ok{{ name|nope2 if no else 'x' }}"),
    ("names that look like words", "{% set index = 1 %}{% set not_x = 2 %}{% set inner = 3 %}{% set iff = 4 %}{{ index }}{{ not_x }}{{ inner }}{{ iff }}{% set é = 5 %}{{ é }}"),
    ("keyword named arguments", "{{ dict(a=1, **{'b': 2}) }}|{{ range(*[1, 4])|list }}|{{ '{a}{b}'.format(**{'a': 1, 'b': 2}) }}"),
    ("tests without parentheses", "{{ 5 is divisibleby 5 and 1 }}|{{ name is string and name is not none }}|{{ x is not defined or 1 }}|{{ 'a' is in 'abc' }}"),
    # in the manner of well-known templates
    ("header style", "{{- bos_token }}{% for m in messages %}{% set content = '<|start|>' + m['role'] + '<|end|>\\n\\n' + m['content'] | trim + '<|eot|>' %}{% if loop.index0 == 0 %}{% set content = 'B' + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|end|>\\n\\n' }}{% endif %}"),
    ("alternation check", "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}{%- set rest = messages[1:] %}{%- else %}{%- set rest = messages %}{%- endif %}{%- for m in rest if m.role in ['user', 'assistant'] %}{%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('must alternate') }}{%- endif %}{{ m.role }} {% endfor %}{{ system }}"),
    ("image parts", "{% for part in [{'type': 'text', 'text': 'a'}, {'type': 'image'}] %}{% if part.type == 'image' %}<img>{% elif 'text' in part %}{{ part.text }}{% endif %}{% endfor %}"),
    ("schema macro", "{%- macro kind(s) -%}{%- if s.type == 'array' -%}{{ kind(s['items']) }}[]{%- elif s.type == 'object' -%}{ {%- for k, v in s.properties.items() -%}{{ ', ' if not loop.first }}{{ k }}{{ '?' if k not in (s.required or []) }}: {{ kind(v) }}{%- endfor -%} }{%- elif s.enum -%}{{ s.enum|map('tojson')|join(' | ') }}{%- elif s.type is iterable and s.type is not string -%}{{ s.type|join(' | ') }}{%- else -%}{{ s.type }}{%- endif -%}{%- endmacro -%}{{ kind(schema) }}"),
    ("tool loop", "{% for m in messages %}{% if m.tool_calls is defined and m.tool_calls %}{% for c in m.tool_calls %}{% set c = c.function %}{\"name\": {{ c.name|tojson }}, \"arguments\": {{ c.arguments|tojson }}}{% endfor %}{% endif %}{% endfor %}"),
    ("date", "{% set d = strftime_now('%Y') %}{{ d|length }}{{ d|int > 2000 }}{{ strftime_now is defined }}"),
    ("date fallback", "{%- if not date_string is defined %}{%- set date_string = '26 Jul 2024' %}{%- endif %}{{ date_string }}"),
    ("reasoning split", "{% set c = '<think>\\na\\n</think>\\n\\nb' %}{{ c.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') }}|{{ c.split('</think>')[-1].lstrip('\\n') }}|{{ (c.split('</think>')|last).strip() }}"),
    ("items of a dict", "{% for key, value in messages[2].tool_calls[0].function.arguments|items %}<p name=\"{{ key }}\">{{ value|tojson if value is mapping or (value is sequence and value is not string) else value|string }}</p>{% endfor %}"),
    ("last user", "{% set ns = namespace(i=-1) %}{% for m in messages %}{% if m.role == 'user' %}{% set ns.i = loop.index0 %}{% endif %}{% endfor %}{{ ns.i }}{{ (messages|selectattr('role', 'equalto', 'user')|list|last).content }}{{ messages[:ns.i + 1]|length }}"),
    ("inline conditional strings", "{{ 'a' + ('b' if yes else '') + 'c' }}{{ '<' ~ (name if name is string else 'x') ~ '>' }}{{- '\\n' if not no -}}"),
    ("dict building", "{% set d = dict(a=1) %}{% set d = dict(d, **{'b': 2}) %}{{ d|tojson }}{% set l = [] %}{% set l = l + [d] %}{{ l|length }}"),
]

# All of these must fail, while parsing or while rendering.
_FAILURES = r"""
{{ missing.x }}
{{ missing["x"] }}
{{ missing() }}
{{ missing + 1 }}
{{ "a" + missing }}
{{ missing < 1 }}
{{ -missing }}
{{ missing|int }}
{{ missing|tojson }}
{{ record.zz.yy }}
{{ nothing.x.y }}
{{ nothing + 1 }}
{{ "a" + 1 }}
{{ 1 + "a" }}
{{ [1] + (2,) }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ 1 in 5 }}
{{ 1 in "abc" }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ nothing() }}
{{ 5() }}
{{ "a"() }}
{{ name.nope() }}
{{ list.append(1) }}
{{ list.sort() }}
{{ record.update({}) }}
{{ record.pop("a") }}
{{ record.setdefault("a", 1) }}
{{ raise_exception("no") }}
{{ 5|length }}
{{ nothing|length }}
{{ words|map("upper")|length }}
{{ 5|list }}
{{ nothing|list }}
{{ [1, "a"]|sort }}
{{ [none, 1]|min }}
{{ 5|join }}
{{ "a"|sum }}
{{ range(1000000) }}
{{ range(1, 2, 0) }}
{{ range("a") }}
{{ text.split("") }}
{{ text.index("zzz") }}
{{ text.join([1]) }}
{{ text.startswith(1) }}
{{ text.split(1) }}
{{ list[::0] }}
{{ {[]: 1} }}
{{ {{}: 1} }}
{{ record|dictsort(by="x") }}
{{ 5|items|list }}
{{ "%d" % "a" }}
{{ "%s %s" % ("a",) }}
{{ "%s" % ("a", "b") }}
{{ "{}".format() }}
{{ "{x}".format(y=1) }}
{{ 1|round(1, "bad") }}
{{ "a"|round }}
{{ name|nope }}
{{ name is nope }}
{{ list|map("nope")|list }}
{{ list|select("nope")|list }}
{{ list|map|list }}
{{ range|tojson }}
{{ {(1, 2): 3}|tojson }}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% set a, b = 1 %}
{% set a, b = [1, 2, 3] %}
{% set name.x = 1 %}
{% set missing.x = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}
{% macro m(a) %}{{ a + 1 }}{% endmacro %}{{ m() }}
{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}
{% for x in list %}{{ loop(x) }}{% endfor %}
{% for x in list %}{{ loop.cycle() }}{% endfor %}
{{
{{ }}
{{ a b }}
{{ a. }}
{{ a[ }}
{{ a[] }}{{ a[1 }}
{{ (a }}
{{ a) }}
{{ [1, 2 }}
{{ {"a" 1} }}
{{ 'abc }}
{{ a | }}
{{ a is }}
{{ a ? b }}
{{ 1 2 }}
{{ f(a=1, 2) }}
{{ f(**a, *b) }}
{{ a and }}
{{ not }}
{{ if }}x{{ 5 if }}
{{ x.5y }}
{{ "\x4" }}
{{ "\u12" }}
{{ 'a' is defined is string }}
{% if %}{% endif %}
{% if yes %}
{% endif %}
{% if yes %}{% endfor %}
{% for x %}{% endfor %}
{% for in list %}{% endfor %}
{% for x in %}{% endfor %}
{% for x in list %}
{% else %}
{% set %}
{% set x %}
{% set 5 = 1 %}
{% set x = %}
{% set true = 1 %}
{% break %}
{% continue %}
{% macro %}{% endmacro %}
{% macro m %}{% endmacro %}
{% macro m(a=1, b) %}{% endmacro %}
{% call 5 %}{% endcall %}
{% filter %}{% endfilter %}
{% unknown %}
{% %}
{%
{# never closed
{% raw %}x
{% with a %}{% endwith %}
{% endgeneration %}
{% include "x" %}
{% generation %}
{% do 1 %}
{{ a[1:2:3:4] }}
{{ ; }}
{{ $ }}
{{ a ! b }}
{{ a = 1 }}
{{ - }}
{{ , }}
{% for x in list %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
"""

SNIPPETS = [(f"expression {i + 1}", line) for i, line in enumerate(_EXPRESSIONS.strip("\n").split("\n"))]
SNIPPETS += _BLOCKS
SNIPPETS += [(f"failure {i + 1}", line) for i, line in enumerate(_FAILURES.strip("\n").split("\n"))]
