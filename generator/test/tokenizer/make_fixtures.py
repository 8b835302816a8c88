#!/usr/bin/env python3
"""Writes the tokenizers that the tests read, and the tokens that Hugging Face's `tokenizers` and OpenAI's
`tiktoken` give for the same texts (cases.jsonl in each folder).

Development only: pip install tokenizers tiktoken. Every text here is ours.

    make_fixtures.py            # writes the folders below and forms.jsonl beside itself

    bytes     byte-level BPE as DeepSeek's: split regexes in a row, digits, added tokens of each kind
    fallback  SentencePiece's way: prepend, replace, byte fallback, unknown tokens, strip
    features  rare features: all behaviours of a split, metaspace, ignore_merges, single words, stripping
    kimi      tiktoken.model with named and reserved special tokens
    deepseek  as bytes, with the added tokens of DeepSeek-V3, R1 and V3.1: some special, others not
    glm       the split of GLM-4, with its added tokens; the tokens of thoughts and tools are not special
    kimi-k2   as kimi, with the names of Kimi-K2's tokens at their distances from the first
"""
import base64
import json
import pathlib
import random

import tiktoken
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors,
                        trainers)

HERE = pathlib.Path(__file__).resolve().parent

TEXT = """
The cache holds one row a token, and a row holds its content and its place. What is read most is laid out first.
She measured it twice; the second time it wasn't faster, so she wrote that down as well. They'll see, we've seen, I'm sure.
Numbers: 1, 22, 333, 4444, 55555, 3.14159, 1,000,000; dates such as 2024-02-29; hexadecimal 0xCAFE.
Der Speicher hält eine Zeile je Zeichen; größere Seiten kosten weniger Übersetzung. Été, garçon, niño, façade, œuvre.
Память хранит строку на каждый знак, и строка хранит содержание и место. Это измерено дважды.
Η μνήμη κρατά μία γραμμή για κάθε σύμβολο. الذاكرة تحفظ سطرا لكل رمز. הזיכרון שומר שורה לכל סימן.
缓存为每个词元保存一行，每行保存内容和位置。测量了两次，第二次没有更快。注意力机制读取缓存。
キャッシュはトークンごとに一行を持ち、内容と位置を保存する。二回測定した。캐시는 토큰마다 한 줄을 가진다.
स्मृति हर चिह्न के लिए एक पंक्ति रखती है। நினைவகம் ஒவ்வொரு குறிக்கும் ஒரு வரி. หน่วยความจำเก็บหนึ่งแถว
for (int i = 0; i < n; i++) {\n\t\tsum += a[i] * b[i];\n\t}\n\treturn sum;
def row(x):\n    return x if x > 0 else -x\n\n
😀 👍🏽 👨‍👩‍👧 ❤️ 🇫🇷 ✓ → ∑ ½ ² Ⅷ ٣٤ ७
"""

CASES = [
    "", " ", "  ", "\n", "a", "The cache holds one row a token.", "wasn't they'll WE'VE I'm", "1 22 333 4444 1234567",
    "  leading", "trailing  ", "a  b   c\t\td\r\n\r\n\ne", "größer Été œuvre", "Память строка", "السطر שורה",
    "缓存为每个词元保存一行", "キャッシュ캐시トークン", "नमस्ते ஒரு หนึ่ง", "😀👍🏽👨‍👩‍👧❤️🇫🇷", "x=1;\n\n\n\tif(a[i]!=b){c+=2;}",
    "\u0000\u0001\u001b[0m\u007f", "\u00a0\u1680\u180e\u2028\u2029\u3000x\u0085y\u200b", "e\u0301 n\u0303 \u0915\u094d\u0937",
    "٣٤٥٦ ½ Ⅷ ²³", "ſ K İ ı ß", "\ufeff\ufffd\ufffe", "𝒳𝓎 𐍈 𠀀𠀁", "<|end|>", "a<|end|>b", "<|user|>hi<|end|><|user|>",
    "< |end|> <|end |>", "<think>x</think>", "<tool>a <tool>\tb", "toolbox tool a tool", "▁ ▁▁a", "<0x41> <s> </s> <unk>",
    "a" * 300, " " * 300, "ab" * 200, "缓存" * 150, "\n" * 70, "0" * 70, "!?" * 60, "日本語 text 混ぜる 123円",
    # newer than Unicode 14: letters of both cases, Han, marks, digits, punctuation, symbols
    "a\u1C89b\u1C8Ac \uA7CB\uA7DAx", "漢\U0002EBF0\U00031350字\U0002EBF0", "x\u0897\u0CF3y \U00010D4A\U00010D6A",
    "1\U00010D40\U00010D412 \U0001CCF0\U0001D2C0", "a\U00010D6Eb!\U00016D6Ec", "\U0001FAE9 \U0001FADC\u2427x\u31EF\u2FFC",
    "\U00010D404444 2\U00010D4122 \U00010D40\U00010D415555 1\U0001CCF0333", "\U00010D8E=\U00010D8F+", " \U00011BC0\U0001E5D0 \U00013460\U000143FA", "\U00013439a\U0001343F",
    "有效的值。\"\n\nx", "値は。です、「一」ー々〇", "é\u0301漢\u0301字",
]


def random_cases(seed, count):
    rng = random.Random(seed)
    letters = sorted(set(TEXT)) + ["<|end|>", "<|user|>", "<tool>", "tool", "<think>", "\u180e", "\u00a0", "\r\n", "   "]
    return ["".join(rng.choice(letters) for _ in range(rng.randint(1, 40))) for _ in range(count)]


# markers of a chat with tools and thoughts: alone, in a row, cut, and inside a text
def marked(names):
    return [f"{a}x {b}\n{c}" for a, b, c in zip(names, names[1:] + names[:1], names[2:] + names[:2])] + [
        "".join(names), "".join(names[::-1]), " ".join(names), *[n[:-1] for n in names], *[n + n for n in names]]


DEEPSEEK = {"<｜begin▁of▁sentence｜>": True, "<｜end▁of▁sentence｜>": True, "<｜▁pad▁｜>": True, "<think>": False,
            "</think>": False, "<｜User｜>": False, "<｜Assistant｜>": False, "<|EOT|>": True, "<｜tool▁calls▁begin｜>": False,
            "<｜tool▁calls▁end｜>": False, "<｜tool▁call▁begin｜>": False, "<｜tool▁call▁end｜>": False,
            "<｜tool▁outputs▁begin｜>": False, "<｜tool▁outputs▁end｜>": False, "<｜tool▁output▁begin｜>": False,
            "<｜tool▁output▁end｜>": False, "<｜tool▁sep｜>": False}
GLM = {"<|endoftext|>": True, "[MASK]": True, "[gMASK]": True, "[sMASK]": True, "<sop>": True, "<eop>": True,
       "<|system|>": True, "<|user|>": True, "<|assistant|>": True, "<|observation|>": True, "<think>": False,
       "</think>": False, "<tool_call>": False, "</tool_call>": False, "<tool_response>": False, "</tool_response>": False,
       "<arg_key>": False, "</arg_key>": False, "<arg_value>": False, "</arg_value>": False, "/nothink": False}
KIMI_K2 = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 6: "<|start_header_id|>",
           7: "<|end_header_id|>", 9: "[EOT]", 10: "<|im_system|>", 11: "<|tool_calls_section_begin|>",
           12: "<|tool_calls_section_end|>", 13: "<|tool_call_begin|>", 14: "<|tool_call_argument_begin|>",
           15: "<|tool_call_end|>", 17: "<|im_middle|>", 254: "[UNK]", 255: "[PAD]"}


def train(tok, size, initial, special=()):
    tok.train_from_iterator(TEXT.split("\n"), trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=initial, special_tokens=list(special), show_progress=False))


def write(folder, tok, extra=None, cases=None):
    path = HERE / folder
    path.mkdir(exist_ok=True)
    spec = json.loads(tok.to_str())
    if extra:
        extra(spec)
        tok = Tokenizer.from_str(json.dumps(spec))
    (path / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=True, separators=(",", ":")) + "\n")
    with open(path / "cases.jsonl", "w") as out:
        for text in cases or CASES + random_cases(7, 60):
            ids = tok.encode(text, add_special_tokens=False).ids
            row = {"text": text, "ids": ids, "with_specials": tok.encode(text).ids,
                   "decoded": tok.decode(ids, skip_special_tokens=False), "skipped": tok.decode(ids)}
            tok.encode_special_tokens = True
            row["plain"] = tok.encode(text, add_special_tokens=False).ids
            tok.encode_special_tokens = False
            out.write(json.dumps(row) + "\n")
        rng = random.Random(3)
        for _ in range(60):  # ids that no text gives: their bytes need not be UTF-8
            ids = [rng.randrange(tok.get_vocab_size()) for _ in range(rng.randint(1, 10))]
            out.write(json.dumps({"ids": ids, "decoded": tok.decode(ids, skip_special_tokens=False),
                                  "skipped": tok.decode(ids)}) + "\n")


def deepseek_split():
    split = pre_tokenizers.Split
    return pre_tokenizers.Sequence([
        split(Regex(r"\p{N}{1,3}"), "isolated"),
        split(Regex("[一-鿿ぁ-ヿ]+"), "isolated"),
        split(Regex(r"[-!/:;<=>?@\[\]\\^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
                    r"|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = deepseek_split()
    tok.decoder = decoders.ByteLevel()
    train(tok, 620, pre_tokenizers.ByteLevel.alphabet(), ["<|begin|>"])
    tok.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    tok.add_tokens([AddedToken("<|user|>", normalized=False), AddedToken("<think>"), AddedToken("</think>"),
                    AddedToken("<tool>", lstrip=True, rstrip=True), AddedToken("tool", single_word=True)])
    tok.post_processor = processors.TemplateProcessing(
        single="<|begin|> $A <|end|>", special_tokens=[("<|begin|>", 0), ("<|end|>", tok.token_to_id("<|end|>"))])
    write("bytes", tok)


def add_all(tok, names, special_normalized):
    for name, special in names.items():
        if special:
            tok.add_special_tokens([AddedToken(name, normalized=special_normalized)])
        else:
            tok.add_tokens([AddedToken(name, normalized=True)])


def deepseek():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = deepseek_split()
    tok.decoder = decoders.ByteLevel()
    train(tok, 300, pre_tokenizers.ByteLevel.alphabet())
    add_all(tok, DEEPSEEK, True)
    bos = "<｜begin▁of▁sentence｜>"
    tok.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, tok.token_to_id(bos))])
    write("deepseek", tok, cases=marked(list(DEEPSEEK)))


def glm():
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                                   r"|\s*[\r\n]+|\s+(?!\S)|\s+"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    train(tok, 300, pre_tokenizers.ByteLevel.alphabet())
    add_all(tok, GLM, False)
    write("glm", tok, cases=marked(list(GLM)) + CASES)


def fallback():
    tok = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                     decoders.Strip(" ", 1, 0)])
    train(tok, 700, [], ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)])
    tok.add_special_tokens([AddedToken("<|end|>", normalized=False)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])

    def only_real_specials(spec):
        spec["added_tokens"] = [t for t in spec["added_tokens"] if not t["content"].startswith("<0x")]
    write("fallback", tok, only_real_specials)


def features():
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, ignore_merges=True))
    split = pre_tokenizers.Split
    tok.normalizer = normalizers.Replace(Regex(r"\r\n?"), "\n")
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        split(Regex(r"\n"), "merged_with_previous"), split(Regex(r"\p{P}"), "contiguous"),
        split("=", "removed"), split(Regex(r"\p{Lu}"), "merged_with_next"), split(Regex(r"[^\u4e00-\u9fff]+"), "isolated", True),
        split(Regex(r"\w+|\s+$"), "isolated"), split(Regex(r"x*"), "isolated"), pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)])
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    train(tok, 500, [], ["<unk>"])
    tok.add_tokens([AddedToken("<tool>", lstrip=True, normalized=False), AddedToken("tool", single_word=True),
                    AddedToken("<think>", rstrip=True), AddedToken("<|user|>")])
    tok.add_special_tokens([AddedToken("<|end|>", rstrip=True)])
    write("features", tok)


def kimi():
    write_kimi("kimi", 560, {0: "[BOS]", 1: "[EOS]", 2: "<|end|>", 4: "<|user|>"}, CASES + random_cases(9, 60), 3)


def kimi_k2():
    write_kimi("kimi-k2", 300, KIMI_K2, marked(list(KIMI_K2.values())), 5)


def write_kimi(folder, size, named, cases, unnamed):
    """Trains ranks as for the byte-level fixture. The ids of special tokens follow after the last rank."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(tok, size, pre_tokenizers.ByteLevel.alphabet())
    back = {c: b for b, c in tiktoken_alphabet().items()}
    words = sorted(tok.get_vocab().items(), key=lambda kv: kv[1])
    ranks = {bytes(back[c] for c in w): i for w, i in words}
    names = {len(ranks) + i: n for i, n in named.items()}
    special = {names.get(i, f"<|reserved_token_{i}|>"): i for i in range(len(ranks), len(ranks) + 256)}
    upper = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    lower = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
    tail = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    head = r"[^\r\n\p{L}\p{N}]?"
    pattern = "|".join([r"[\p{Han}]+", head + upper + "*" + lower + "+" + tail, head + upper + "+" + lower + "*" + tail,
                        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
    enc = tiktoken.Encoding("kimi", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)
    path = HERE / folder
    path.mkdir(exist_ok=True)
    with open(path / "tiktoken.model", "w") as out:
        for word, rank in ranks.items():
            out.write(f"{base64.b64encode(word).decode()} {rank}\n")
    config = {"added_tokens_decoder": {str(i): {"content": n, "special": True} for i, n in names.items()},
              "bos_token": "[BOS]", "eos_token": "[EOS]", "tokenizer_class": "TikTokenTokenizer"}
    (path / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    with open(path / "cases.jsonl", "w") as out:
        for text in cases[:len(CASES)] + ["<|reserved_token_%d|>[EOS]" % (len(ranks) + unnamed)] + cases[len(CASES):]:
            ids = enc.encode(text, allowed_special="all")
            out.write(json.dumps({"text": text, "ids": ids, "plain": enc.encode_ordinary(text),
                                  "decoded": enc.decode(ids)}) + "\n")


def tiktoken_alphabet():
    own = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    rest = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(0x100 + i) for i, b in enumerate(rest)}}


def forms():
    """Texts for Unicode's normalisation forms: composed and decomposed letters, Hangul, marks in several orders."""
    rng = random.Random(11)
    marks = "\u0300\u0301\u0302\u0308\u0323\u0327\u0328\u0345\u05b4\u064b\u093c\u3099\u0f71\u0f72"
    others = ("eaoEns\u00e9\u00f1\u1e69\u1e0d\u0307\uac00\u1100\u1161\u11a8\u304b\u30cf\ufb01\u2460\u00bd\u212b\u2126\u1f82"
              "\u0915\u0958\uff21\uff76\uff9e\u3392\ufdfa\u0f73\U0001d15e\U0002f800\u2adc 1x")
    texts = CASES + ["".join(rng.choice(marks if rng.random() < 0.5 else others) for _ in range(rng.randint(1, 20)))
                     for _ in range(150)]
    with open(HERE / "forms.jsonl", "w") as out:
        for text in texts:
            out.write(json.dumps({"text": text} | {
                form: getattr(normalizers, form)().normalize_str(text) for form in ("NFC", "NFD", "NFKC", "NFKD")}) + "\n")


for make in (byte_level, deepseek, glm, fallback, features, kimi, kimi_k2, forms):
    make()
