"""make_tokenizers.py: write tests/llama/tokenizers: small tokenizers of each kind, trained by the package tokenizers (0.23), and what it makes
of some texts, with which tokenizer_test.c is compared; --pieces: those of SentencePiece alone. With GGUF OUT: tokenizer.json of that file's tokenizer and texts, in the folder OUT."""
import io, json, os, random, struct, sys
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
bytes_ = lambda regex: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
KINDS = {"gpt2": bytes_(True), "digits": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_(True)]),
         "llama3": pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"), bytes_(False)])}
TEXTS = ["", " ", "a", "The quick brown fox isn't here; we'll see, they've gone, I'm sure, he'd say.", "  two  spaces   three", "trailing   ", "tabs\t\tand\n\nlines\r\n\r\n  x",
         "In 1984, 3.14159 x 1000000 = 3141590", "a1b22c333d4444", "x ²³½ ٣٤ Ⅻ", "naïve café Übergröße ÀÉ", "Привет, мир! Как дела?", "你好，世界。这是一个测试", "こんにちは",
         "مرحبا بالعالم", "नमस्ते दुनिया", "emoji 😀👍🏽 👩‍👩‍👧 ok", "f(x) == y && !z || [1,2] // comment", "'S 'LL it'S DON'T", "nbsp\u00a0and\u2003em\u3000wide", "\u0085next\u2028line",
         "<|im_start|>user\n", "a\u0301 combining \ufe0f", "\x00\x01\x7f control", "_under_score__ --dash-- ...", "\n", "\n\n\n a", " \n x", "   1", "é", "''''s", "' s't're", "http://a.b/c?d=e&f=1"]


def random_texts(n):
    rng = random.Random(5)
    pieces = ["the", "x", "'s", "'", " ", "  ", "\n", "\r\n", "\t", "1", "23", "é", "ß", "漢", "½", "!", "--", "😀", "\u00a0", "'LL", "Ab"]
    return ["".join(rng.choice(pieces) for _ in range(rng.randrange(1, 14))) for _ in range(n)]


def write(folder, name, tokenizer, texts):
    words = lambda t: [len(w) for w, _ in tokenizer.pre_tokenizer.pre_tokenize_str(t)]       # a character is a byte in the tokens' alphabet
    cases = [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids, "words": words(t)} for t in texts]
    with open(os.path.join(folder, name + ".cases.json"), "w") as f:
        json.dump(cases, f, separators=(",", ":"))
        f.write("\n")


ADDED = ["<fn>", "<fn>=", "==>", "<tool call>"]
WITH_ADDED = ["<fn>", "a<fn>b", "a <fn> b", "<fn>=<fn><fn", "x==>y ==> <tool call>== >", "the <tool call> <tool call"]


def write_added(folder):
    """gpt2.json with tokens that are found in text as they are."""
    t = Tokenizer.from_file(os.path.join(folder, "gpt2.json"))
    t.add_tokens(ADDED)
    with open(os.path.join(folder, "added.json"), "w") as f:
        json.dump(json.loads(t.to_str()), f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")
    texts = [x for x in TEXTS + WITH_ADDED + random_texts(20) if "<|im_start|>" not in x]        # what is control is text to us
    with open(os.path.join(folder, "added.cases.json"), "w") as f:
        json.dump([{"text": x, "ids": t.encode(x, add_special_tokens=False).ids} for x in texts], f, separators=(",", ":"))
        f.write("\n")


# ---- pieces, by the package sentencepiece (0.2) ----

def train_pieces(texts):
    import sentencepiece as sp
    model = io.BytesIO()
    sp.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=model, vocab_size=700, model_type="bpe", byte_fallback=True, character_coverage=0.98,
                                  normalization_rule_name="identity", remove_extra_whitespaces=False, max_sentence_length=1 << 20, minloglevel=2,
                                  split_digits=True, allow_whitespace_only_pieces=True, user_defined_symbols=ADDED)
    return sp.SentencePieceProcessor(model_proto=model.getvalue())


def write_pieces_gguf(path, p):
    """As a file of metadata alone."""
    text = lambda s: struct.pack("<Q", len(s.encode())) + s.encode()
    n = p.get_piece_size()
    kinds = [2 if p.is_unknown(i) else 3 if p.is_control(i) else 6 if p.is_byte(i) else 4 if p.id_to_piece(i) in ADDED else 1 for i in range(n)]
    values = [("model", struct.pack("<I", 8) + text("llama")),
              ("tokens", struct.pack("<IIQ", 9, 8, n) + b"".join(text(p.id_to_piece(i)) for i in range(n))),
              ("scores", struct.pack("<IIQ", 9, 6, n) + b"".join(struct.pack("<f", p.get_score(i)) for i in range(n))),
              ("token_type", struct.pack("<IIQ", 9, 5, n) + b"".join(struct.pack("<i", k) for k in kinds)),
              ("bos_token_id", struct.pack("<II", 4, p.bos_id())), ("eos_token_id", struct.pack("<II", 4, p.eos_id())),
              ("unknown_token_id", struct.pack("<II", 4, p.unk_id()))]
    with open(path, "wb") as f:
        f.write(b"GGUF" + struct.pack("<IQQ", 3, 0, len(values)) + b"".join(text("tokenizer.ggml." + k) + v for k, v in values))


def fast_pieces(p):
    """The same as merges, in the order of the scores of what they give."""
    names = [p.id_to_piece(i) for i in range(p.get_piece_size())]
    normal = {w: i for i, w in enumerate(names) if not (p.is_control(i) or p.is_unknown(i) or p.is_byte(i) or w in ADDED)}
    merges = [(p.get_score(i), -normal[w[:k]], (w[:k], w[k:])) for w, i in normal.items() for k in range(1, len(w)) if w[:k] in normal and w[k:] in normal]
    merges.sort(key=lambda m: m[:2], reverse=True)
    t = Tokenizer(models.BPE({w: i for i, w in enumerate(names)}, [m[2] for m in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    t.add_special_tokens([AddedToken(w, special=True) for w in ("<unk>", "<s>", "</s>")])
    return t


def write_pieces(folder, texts):
    p = train_pieces([open(os.path.join(root, "docs", d)).read() for d in ("tour.md", "plan.md", "fuzzing.md")] + TEXTS * 5)
    write_pieces_gguf(os.path.join(folder, "pieces.gguf"), p)
    fast = fast_pieces(p)
    texts = [t for t in texts if "\0" not in t]
    # Where text is parted by added tokens, the package tokenizers puts a space in front of each part: not what sentencepiece does.
    mine = {"pieces": texts + WITH_ADDED, "merged_pieces": texts}
    for name, ids in (("pieces", p.encode), ("merged_pieces", lambda t: fast.encode(t, add_special_tokens=False).ids)):
        with open(os.path.join(folder, name + ".cases.json"), "w") as f:
            json.dump([{"text": t, "ids": ids(t)} for t in mine[name]], f, separators=(",", ":"))
            f.write("\n")
    with open(os.path.join(folder, "merged_pieces.json"), "w") as f:
        json.dump(json.loads(fast.to_str()), f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


def of_gguf(path):
    sys.argv[1:] = ["", ""]
    import gguf
    r = gguf.GGUFReader(path)
    tokens, merges = (r.fields["tokenizer.ggml." + k].contents() for k in ("tokens", "merges"))
    t = Tokenizer(models.BPE({w: i for i, w in enumerate(tokens)}, [tuple(m.split(" ")) for m in merges]))
    t.pre_tokenizer, t.decoder = KINDS["digits"], decoders.ByteLevel()
    return t


if len(sys.argv) == 3:
    path, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    t = of_gguf(path)
    t.save(os.path.join(folder, "smollm.json"))
    write(folder, "smollm", t, TEXTS + random_texts(3000) + [open(os.path.join(root, "docs", d)).read() for d in os.listdir(root + "/docs") if d.endswith(".md")])
    sys.exit()
write_pieces(os.path.join(here, "tokenizers"), TEXTS + random_texts(60))
write_added(os.path.join(here, "tokenizers"))
if sys.argv[1:] == ["--pieces"]:
    sys.exit()
for name, pre in KINDS.items():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre, decoders.ByteLevel()
    t.train_from_iterator([open(os.path.join(root, "docs", d)).read() for d in ("tour.md", "plan.md", "fuzzing.md")] + TEXTS * 5,
                          trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    texts = TEXTS + random_texts(60)
    write(os.path.join(here, "tokenizers"), name, t, texts)
    t.add_special_tokens([AddedToken("<|im_start|>", special=True)])
    with open(os.path.join(here, "tokenizers", name + ".json"), "w") as f:
        json.dump(json.loads(t.to_str()), f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")
