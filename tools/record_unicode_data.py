"""Writes src/text/tokenizer/unicode_data.cpp: where PyPI `tokenizers` and the installed Unicode
tables disagree.

`tokenizers` contains several Unicode versions (16 in its regex engine, 9 in its normalizers, 7 in
its punctuation), while utf8proc and PCRE2 have one each. Ids must not depend on that, so the
differences are recorded as ranges.

    .deps/reference/bin/python tools/record_unicode_data.py > src/text/tokenizer/unicode_data.cpp
    clang-format -i src/text/tokenizer/unicode_data.cpp
"""

import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split()
)


def matching(pattern):
    """The code points that the regex matches."""
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for i in range(0, len(CODE_POINTS), 4096):
        chunk = CODE_POINTS[i : i + 4096]
        kept = {ord(c) for piece, _ in split.pre_tokenize_str("".join(map(chr, chunk))) for c in piece}
        found.update(c for c in chunk if c not in kept)
    return found


def ranges(code_points):
    result = []
    for c in sorted(code_points):
        if result and result[-1][1] == c - 1:
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def print_table(name, comment, rows):
    print(f"\n// {comment}")
    print(f"constexpr CodePointRange {name}Rows[] = {{{', '.join('{' + ', '.join(row) + '}' for row in rows)}}};")
    print(f"constinit const std::span<const CodePointRange> {name} = {name}Rows;")


def plain(code_points):
    return [(f"0x{a:04X}", f"0x{b:04X}") for a, b in ranges(code_points)]


def main():
    print("// Written by tools/record_unicode_data.py; run it again rather than edit this file.")
    print('#include "text/tokenizer/unicode.h"\n\nnamespace antisd::inline text {')

    base = {c: unicodedata.category(chr(c)) for c in CODE_POINTS}
    newer = []
    for category in CATEGORIES:
        changed = {c for c in matching(rf"\p{{{category}}}") if base[c] != category}
        newer += [(f"0x{a:04X}", f"0x{b:04X}", f'"{category}"') for a, b in ranges(changed)]
    newer.sort(key=lambda row: int(row[0], 16))
    print_table("kNewCategories", f"Categories that changed after Unicode {unicodedata.unidata_version}.", newer)

    nfc, nfkc = normalizers.NFC(), normalizers.NFKC()

    def reorders(c):
        text = chr(c)
        return (
            nfc.normalize_str(f"a{text}\u0334") != nfc.normalize_str(f"a{text}") + "\u0334"
            or nfc.normalize_str(f"a\u0345{text}") != "a\u0345" + nfc.normalize_str(text)
        )

    inert = {0x11930, 0x11935, 0x11938}  # composed since Unicode 13
    for c in CODE_POINTS:
        if unicodedata.combining(chr(c)) and not reorders(c):
            inert.add(c)
        if unicodedata.normalize("NFKC", chr(c)) != chr(c) == nfkc.normalize_str(chr(c)):
            inert.add(c)
    new_marks = {int(a, 16) + i for a, b, k in newer if k in ('"Mn"', '"Mc"', '"Lm"')
                 for i in range(int(b, 16) - int(a, 16) + 1)}
    print_table("kInertInNormalization", "What normalization leaves alone and does not move anything across.",
                plain(inert | {c for c in new_marks if nfkc.normalize_str(chr(c)) == chr(c)}))

    punctuation = pre_tokenizers.Punctuation("removed")
    is_punctuation = {c for c in CODE_POINTS if not punctuation.pre_tokenize_str(chr(c))}
    by_category = matching(r"\p{P}") | set(map(ord, "$+<=>^`|~"))
    print_table("kNotPunctuation", "Category P, but not to the Punctuation pre-tokenizer.",
                plain(by_category - is_punctuation))
    print_table("kAlsoPunctuation", "Not category P, but punctuation to that pre-tokenizer.",
                plain(is_punctuation - by_category))

    digits = pre_tokenizers.Digits()
    numeric = {c for c in CODE_POINTS if len(digits.pre_tokenize_str("a" + chr(c))) > 1}
    print_table("kAlsoNumeric", "Not category N, but numeric to the Digits pre-tokenizer.",
                plain(numeric - matching(r"\p{N}")))

    lower = normalizers.Lowercase()
    rows = []
    for c in CODE_POINTS:
        ours, theirs = chr(c).lower(), lower.normalize_str(chr(c))
        if c != 0x130 and ours != theirs:
            assert len(theirs) == 1
            rows.append((f"0x{c:04X}", f"0x{ord(theirs):04X}"))
    print_table("kNewLowercase", "From, to: lower-case letters that came after.", rows)
    print("\n}  // namespace antisd::inline text")


main()
