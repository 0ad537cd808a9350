"""Writes testdata/text/: small tokenizers trained on our own texts, and the results of PyPI
`tokenizers` and transformers.

    .deps/reference/bin/python tools/record_tokenizer_fixtures.py

Each folder of testdata/text/ is a model directory; expected.json beside its tokenizer holds, per
text of texts.json, the ids, the ids with special tokens, and the two decodings if they differ from
the text. real_<name>.json holds the ids of the same texts under real tokenizers, which are in
../shared/data and not part of the repository.
"""

import json
import pathlib
import shutil
import tempfile

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "testdata" / "text"
SHARED = ROOT.parent / "shared" / "data" / "models"
QWEN2 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CORPUS = [
    "The sum of two even numbers is even. Let a = 2m and b = 2n; then a + b = 2(m + n), which is even.",
    "A triangle with sides 3, 4 and 5 has a right angle, because 9 + 16 = 25.",
    "def add(a, b):\n    return a + b\n\n\nfor i in range(10):\n    print(i, add(i, 1))\n",
    "Find all integers x such that $x^2 - 5x + 6 = 0$. We get $x = 2$ or $x = 3$, so the answer is $\\boxed{2, 3}$.",
    "We don't know what they've found, but I'll say it's fine; you're right, and she'd agree. I'm sure.",
    "Ein Café in Köln, naïve Größe, déjà vu, mañana, Ångström, Łódź, Ελληνικά, Русский текст.",
    "日本語のテキストと漢字。中文文本,数学题。한국어 문장입니다.",
    "नमस्ते दुनिया, यह एक परीक्षण है। สวัสดีชาวโลก مرحبا بالعالم שלום עולם",
    "How many ways are there to choose 3 of 12 books? There are 12 * 11 * 10 / 6 = 220 ways.",
    "The answer is 42. The answer is 7. The answer is 1000. Therefore the number of solutions is 12.",
]
TEXTS = [
    "", " ", "  ", "\n", "\r\n", "\t", "\n\n\n", " \n \n ", "   x", "x   ", "a  b   c    d", "\u00a0x\u3000y\u2003z", "\u0085\u2028\u2029",
    "a", "Hello, world!", "The quick brown fox jumps over the lazy dog.", "don't DON'T Don'T it's IT'S we've WE'VE I'LL 'ſ 'K",
    "'s 't 're 've 'm 'll 'd", "x's'll'dd", "''''", "rock'n'roll", "2 + 2 = 4", "1234567890", "12 345 6789", "3.14159e-10", "½ ² Ⅷ ٣ ௧ 五",
    "x1y2z3", "1,000,000.00", "-273.15", "0x1F", "10^{10}", "$\\frac{a}{b} + \\sqrt{x^2 + y^2}$", "\\[ \\int_0^1 x\\,dx = \\tfrac12 \\]",
    "\\boxed{\\text{yes}}", "\\begin{align*}\nx &= 1 \\\\\ny &= 2\n\\end{align*}", "Let $f\\colon \\mathbb{R} \\to \\mathbb{R}$ be continuous.",
    "∑_{k=1}^n k = n(n+1)/2", "∀ε>0 ∃δ>0", "α ≤ β ≠ γ", "def f(x):\n    return x ** 2\n", "if (a && b || !c) { return 0; }\r\n", "\tindented\n\t\ttwice\n",
    "#include <vector>\nint main() { return 0; }\n", "SELECT * FROM t WHERE a = 'b';", "https://example.org/a?b=c&d=e#f", "user@example.org",
    "snake_case camelCase PascalCase kebab-case", "UPPER lower MiXeD", "... --- === ***", "!?!?!?", "(a)[b]{c}<d>", "\"quoted\" 'single' `code`",
    "café", "cafe\u0301", "Café cafe\u0301 CAFÉ", "A\u030a \u212b Å", "ﬁ ﬂ ﬃ", "ö o\u0308", "q\u0307\u0323 q\u0323\u0307", "\u1100\u1161\u11a8 각", "가나다",
    "e\u0301\u0327 \u0301", "ẛ̣", "İstanbul ıI", "straße STRASSE ß", "Ǆ ǅ ǆ", "日本語", "中文,测试。", "漢字かなカナ", "ひらがな カタカナ", "한국어 문장",
    "नमस्ते", "क्षि त्र ज्ञ", "ไทยภาษา", "สวัสดีครับ", "مرحبا بالعالم", "اَلْعَرَبِيَّةُ", "שלום", "שָׁלוֹם", "Привет, мир!", "Ελληνικά", "Հայերեն", "ქართული", "አማርኛ",
    "ಕನ್ನಡ தமிழ் తెలుగు", "😀", "😀😀😀", "👩\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪🇫🇷", "❤\ufe0f", "🏳\ufe0f\u200d🌈", "a😀b", "text 😀 text", "\u200b\u200c\u200d\ufeff",
    "\U00011935\U00011930 \U0001e5d0\U0001e5f1", "\u180e x", "\x00\x01\x7f", "null\x00byte", "\ufffd", "\U0010ffff", "a\u0300\u0301\u0302\u0303\u0304",
    "<|im_start|>user\nHi<|im_end|>\n", "<|im_start|>", "x<|im_start|>y", "<|im_start|><|im_end|>", "<|im_", "<|endoftext|>", " <|im_end|> ",
    "<think>\n\n</think>\n\n", "<think>x</think>", "<tool_call>{\"name\": \"f\"}</tool_call>", "<s>a</s>", "[UNK] [EOS]", "keyword", "the keyword here", "akeyword", "keyword.",
    "_keyword", "keyword keyword", "a <left> b", "a   <left>b", "a <right>   b", "a<right>\n\nb", "a  <both>  b", "<both><both> <left>", "Straße", "straße", "STRASSE",
    "<0x41>", "▁a ▁", "a▁b", "The answer is 42 . It 's done , is n't it ?", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    " " * 70, "\n" * 60, "ab" * 40, "=" * 65, "9" * 50, "the sum of " * 12, "é" * 40, "日" * 30,
]
ADDED = [
    AddedToken("<think>", special=False, normalized=False),
    AddedToken("</think>", special=False, normalized=False),
    AddedToken("keyword", single_word=True, normalized=True),
    AddedToken("<left>", lstrip=True, normalized=False),
    AddedToken("<right>", rstrip=True, normalized=False),
    AddedToken("<both>", lstrip=True, rstrip=True, special=True, normalized=False),
    AddedToken("Straße", normalized=True),
]


def special(content):
    return AddedToken(content, special=True, normalized=False)


def train(tokenizer, vocabulary, tokens=(), alphabet=()):
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=list(tokens), initial_alphabet=list(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def qwen():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN2), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 520, alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.add_tokens([special("<|endoftext|>"), special("<|im_start|>"), special("<|im_end|>"), *ADDED])
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}
    return tokenizer, config


def smol():
    """Digits one by one, then GPT-2's pattern; a template around the sequence; ignore_merges."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    train(tokenizer, 450, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], pre_tokenizers.ByteLevel.alphabet())
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(),
        processors.TemplateProcessing(single="<|im_start|> $A <|im_end|>", special_tokens=[("<|im_start|>", 1), ("<|im_end|>", 2)]),
    ])
    return tokenizer, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}


def llama():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    train(tokenizer, 600, ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.add_tokens(ADDED)
    return tokenizer, {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}


def metaspace():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace("▁", "first", True), pre_tokenizers.Punctuation("merged_with_previous")]
    )
    tokenizer.decoder = decoders.Metaspace("▁", "first", True)
    train(tokenizer, 400, ["<unk>"])
    tokenizer.add_tokens(ADDED)
    return tokenizer, {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "<unk>"}


def words():
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        CORPUS, trainers.WordLevelTrainer(vocab_size=200, special_tokens=["[UNK]", "[EOS]"], show_progress=False)
    )
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "[EOS]", "clean_up_tokenization_spaces": True}
    return tokenizer, config


def record(load, texts):
    tokenizer = load
    rows = []
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        row = {"ids": ids}
        with_special = tokenizer(text, add_special_tokens=True)["input_ids"]
        if with_special != ids:
            row["with_special"] = with_special
        for key, skip in (("decoded", False), ("decoded_plain", True)):
            decoded = tokenizer.decode(ids, skip_special_tokens=skip)
            if decoded != text:
                row[key] = decoded
        rows.append(row)
    return rows


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def write_rows(path, rows):
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f"[\n{lines}\n]\n")


def write_directory(name, tokenizer, config):
    folder = OUT / name
    folder.mkdir(parents=True, exist_ok=True)
    content = json.loads(tokenizer.to_str())
    # Byte tokens are plain entries of the vocabulary in real files.
    content["added_tokens"] = [t for t in content["added_tokens"] if not t["content"].startswith("<0x")]
    write(folder / "tokenizer.json", content)
    write(folder / "tokenizer_config.json", config)
    write_rows(folder / "expected.json", record(PreTrainedTokenizerFast.from_pretrained(folder), TEXTS))


def write_gpt2():
    """vocab.json and merges.txt; the special token is in the vocabulary, as in GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(tokenizer, 480, ["<|endoftext|>"], pre_tokenizers.ByteLevel.alphabet())
    folder = OUT / "gpt2"
    folder.mkdir(parents=True, exist_ok=True)
    content = json.loads(tokenizer.to_str())["model"]
    write(folder / "vocab.json", content["vocab"])
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in content["merges"]]
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")
    write(folder / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer", "add_bos_token": True})
    write_rows(folder / "expected.json", record(AutoTokenizer.from_pretrained(folder), TEXTS))


def write_qwen_files():
    """The qwen tokenizer again, as vocab.json and merges.txt with added_tokens_decoder."""
    content = json.loads((OUT / "qwen" / "tokenizer.json").read_text())
    folder = OUT / "qwen_files"
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "vocab.json", content["model"]["vocab"])
    (folder / "merges.txt").write_text("\n".join(" ".join(m) if isinstance(m, list) else m for m in content["model"]["merges"]) + "\n")
    added = {str(t["id"]): {k: v for k, v in t.items() if k != "id"} for t in content["added_tokens"]}
    config = {"tokenizer_class": "Qwen2Tokenizer", "added_tokens_decoder": added, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
              "additional_special_tokens": ["<|im_start|>", "<|im_end|>"], "bos_token": None, "unk_token": None}
    write(folder / "tokenizer_config.json", config)
    write_rows(folder / "expected.json", record(AutoTokenizer.from_pretrained(folder), TEXTS))


def write_real():
    files = {
        "qwen3": [("qwen/vocab.json", "vocab.json"), ("qwen/merges.txt", "merges.txt"), ("qwen/qwen3_tokenizer_config.json", "tokenizer_config.json")],
        "gpt2": [("gpt2/vocab.json", "vocab.json"), ("gpt2/merges.txt", "merges.txt")],
        "olmo3": [("olmo3/dolma2_tokenizer.json", "tokenizer.json")],
    }
    for name, parts in files.items():
        if not all((SHARED / source).exists() for source, _ in parts):
            print(f"real_{name}.json left as it is: ../shared is not here")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for source, target in parts:
                shutil.copy(SHARED / source, pathlib.Path(folder) / target)
            if name == "gpt2":
                write(pathlib.Path(folder) / "tokenizer_config.json", {"tokenizer_class": "GPT2Tokenizer"})
            load = PreTrainedTokenizerFast if name == "olmo3" else AutoTokenizer
            rows = [row["ids"] for row in record(load.from_pretrained(folder), TEXTS)]
        write_rows(OUT / f"real_{name}.json", rows)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    write_rows(OUT / "texts.json", TEXTS)
    for name, make in {"qwen": qwen, "smol": smol, "llama": llama, "metaspace": metaspace, "words": words}.items():
        write_directory(name, *make())
    write_gpt2()
    write_qwen_files()
    write_real()


main()
