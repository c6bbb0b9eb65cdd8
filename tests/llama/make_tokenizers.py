"""make_tokenizers.py: write tests/llama/tokenizers: small tokenizers of each kind, trained by the package tokenizers (0.23), and what it makes
of some texts, with which tokenizer_test.c is compared. With GGUF OUT: tokenizer.json of that file's tokenizer and texts, in the folder OUT."""
import json, os, random, sys
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

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
