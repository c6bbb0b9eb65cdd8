#include "tokenizer.h"
#include "unicode.h"
#include <string.h>

enum { NO_TOKEN = -1, TOKENS_MOST = 1 << 24 };
enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER = 4, TYPE_BYTE = 6 };   /* tokenizer.ggml.token_type */

/* ---- tables ---- */

static uint64_t
mixed(uint64_t h)
{
  h = (h ^ h >> 31) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static uint64_t
text_hash(Text t)
{
  uint64_t h = t.len;
  for (size_t i = 0; i < t.len; i++)
    h = (h ^ (uint8_t)t.at[i]) * 0x100000001b3u;
  return mixed(h);
}

/* At most half of a table is filled. */
static size_t
table_mask(size_t count)
{
  size_t size = 16;
  while (size < 2 * count)
    size *= 2;
  return size - 1;
}

int32_t
tokenizer_find(const Tokenizer *t, Text name)
{
  for (size_t i = text_hash(name) & t->text_mask; t->by_text[i]; i = (i + 1) & t->text_mask) {
    if (texts_same(t->pieces[t->by_text[i] - 1], name))
      return t->by_text[i] - 1;
  }
  return NO_TOKEN;
}

/* Of two tokens with the same text the first is found. */
static int
index_pieces(Memory *memory, Tokenizer *t, Fail *fail)
{
  t->text_mask = table_mask(t->count);
  t->by_text = memory_take(memory, t->text_mask + 1, sizeof *t->by_text, fail);
  for (size_t k = 0; t->by_text && k < t->count; k++) {
    if (tokenizer_find(t, t->pieces[k]) != NO_TOKEN)
      continue;
    size_t i = text_hash(t->pieces[k]) & t->text_mask;
    while (t->by_text[i])
      i = (i + 1) & t->text_mask;
    t->by_text[i] = (int32_t)k + 1;
  }
  return t->by_text ? 0 : -1;
}

static uint64_t
pair_key(int32_t a, int32_t b)
{
  return ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) + 1;
}

static Slot *
pair_slot(const Tokenizer *t, uint64_t key)
{
  size_t i = mixed(key) & t->merge_mask;
  while (t->merges[i].key && t->merges[i].key != key)
    i = (i + 1) & t->merge_mask;
  return &t->merges[i];
}

const Slot *
tokenizer_merge(const Tokenizer *t, int32_t left, int32_t right)
{
  const Slot *s = pair_slot(t, pair_key(left, right));
  return s->key ? s : NULL;
}

/* ---- the alphabet ---- */

/* The character of a byte: itself where it can be seen, the others are counted from 256 on. */
static uint32_t
byte_code(int byte)
{
  if ((byte > 32 && byte < 127) || (byte > 160 && byte != 173))
    return (uint32_t)byte;
  return (uint32_t)(byte <= 32 ? 256 + byte : byte == 173 ? 323 : 289 + byte - 127);
}

/* -1: no character of the alphabet. */
static int
code_byte(uint32_t code)
{
  if (code < 256)
    return byte_code((int)code) == code ? (int)code : -1;
  if (code == 323)
    return 173;
  return code < 289 ? (int)code - 256 : code < 323 ? (int)code - 289 + 127 : -1;
}

static void
find_bytes(Tokenizer *t)
{
  for (int b = 0; b < 256; b++) {
    uint32_t code = byte_code(b);
    char two[2] = {(char)(code < 0x80 ? code : 0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};
    t->byte_token[b] = tokenizer_find(t, (Text){two, code < 0x80 ? 1 : 2});
  }
}

/* ---- from files ---- */

static int
start(Memory *memory, Tokenizer *t, size_t count, Fail *fail)
{
  *t = (Tokenizer){.count = count, .begin = NO_TOKEN, .end = NO_TOKEN, .unknown = NO_TOKEN};
  if (!count || count > TOKENS_MOST)
    return fail_with(fail, "tokenizer: a vocabulary of %zu", count);
  t->pieces = memory_take(memory, count, sizeof *t->pieces, fail);
  t->kind = t->pieces ? memory_take(memory, count, 1, fail) : NULL;
  return t->kind ? 0 : -1;
}

static int
start_merges(Memory *memory, Tokenizer *t, size_t count, Fail *fail)
{
  if (count > TOKENS_MOST)
    return fail_with(fail, "tokenizer: %zu merges", count);
  t->merge_mask = table_mask(count);
  t->merges = memory_take(memory, t->merge_mask + 1, sizeof *t->merges, fail);
  return t->merges ? 0 : -1;
}

/* The pair and what it becomes have to be tokens. */
static int
add_merge(Tokenizer *t, size_t rank, Text left, Text right, Fail *fail)
{
  char both[512];
  if (!left.len || !right.len)
    return fail_with(fail, "tokenizer: merge %zu is no pair", rank);
  if (left.len + right.len > sizeof both)
    return fail_with(fail, "tokenizer: merge %zu is too long", rank);
  memcpy(both, left.at, left.len);
  memcpy(both + left.len, right.at, right.len);
  int32_t a = tokenizer_find(t, left), b = tokenizer_find(t, right), result = tokenizer_find(t, (Text){both, left.len + right.len});
  if (a < 0 || b < 0 || result < 0)
    return fail_with(fail, "tokenizer: merge %zu (%.*s and %.*s) is not of tokens", rank, TEXT_ARGS(left), TEXT_ARGS(right));
  Slot *slot = pair_slot(t, pair_key(a, b));
  if (!slot->key)
    *slot = (Slot){pair_key(a, b), (int32_t)rank, result};
  return 0;
}

/* "left right" */
static int
add_merge_text(Tokenizer *t, size_t rank, Text merge, Fail *fail)
{
  const char *space = merge.len ? memchr(merge.at, ' ', merge.len) : NULL;
  if (!space)
    return fail_with(fail, "tokenizer: merge %zu is no pair", rank);
  size_t left = (size_t)(space - merge.at);
  return add_merge(t, rank, (Text){merge.at, left}, (Text){space + 1, merge.len - left - 1}, fail);
}

static int
check_token(const Tokenizer *t, const char *what, uint64_t token, int32_t *out, Fail *fail)
{
  *out = NO_TOKEN;
  if (token == UINT64_MAX)
    return 0;
  if (token >= t->count)
    return fail_with(fail, "tokenizer: %s is token %llu of %zu", what, (unsigned long long)token, t->count);
  *out = (int32_t)token;
  return 0;
}

static int
words_of(const GgufValue *pre, Words *out, Fail *fail)
{
  static const struct { const char *name; Words words; } known[] = {
    {"default", WORDS_GPT2}, {"gpt-2", WORDS_GPT2}, {"smollm", WORDS_DIGITS}, {"llama-bpe", WORDS_LLAMA3}, {"llama3", WORDS_LLAMA3}};
  *out = WORDS_GPT2;
  if (!pre)
    return 0;
  if (pre->is_array || pre->type != GGUF_STRING)
    return fail_with(fail, "metadata tokenizer.ggml.pre: a string is expected");
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (text_is(pre->strings[0], known[i].name)) {
      *out = known[i].words;
      return 0;
    }
  return fail_with(fail, "metadata tokenizer.ggml.pre: %.*s is unknown", TEXT_ARGS(pre->strings[0]));
}

static const GgufValue *
strings_of(const Gguf *g, const char *key, Fail *fail)
{
  const GgufValue *v = gguf_find(g, key);
  if (v && v->is_array && v->type == GGUF_STRING)
    return v;
  fail_with(fail, "metadata %s: a list of strings is expected", key);
  return NULL;
}

/* <0x00> to <0xFF>, those that are there. */
static void
find_byte_pieces(Tokenizer *t)
{
  static const char digits[] = "0123456789ABCDEF";
  for (int b = 0; b < 256; b++) {
    char name[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'};
    t->byte_token[b] = tokenizer_find(t, (Text){name, sizeof name});
    if (t->byte_token[b] >= 0)
      t->kind[t->byte_token[b]] = TOKEN_BYTE;
  }
}

static void
find_added(Tokenizer *t)
{
  for (size_t i = 0; i < t->count; i++)
    if (t->kind[i] == TOKEN_ADDED && t->pieces[i].len) {
      t->added_most = t->pieces[i].len > t->added_most ? t->pieces[i].len : t->added_most;
      t->added_first[(uint8_t)*t->pieces[i].at] = true;
    }
}

int32_t
tokenizer_added(const Tokenizer *t, const char *at, const char *end)
{
  if (!t->added_most || at >= end || !t->added_first[(uint8_t)*at])
    return NO_TOKEN;
  size_t n = (size_t)(end - at) < t->added_most ? (size_t)(end - at) : t->added_most;
  for (; n; n--) {
    int32_t token = tokenizer_find(t, (Text){at, n});
    if (token >= 0 && t->kind[token] == TOKEN_ADDED)
      return token;
  }
  return NO_TOKEN;
}

static int
gguf_controls(Tokenizer *t, const Gguf *g, Fail *fail)
{
  const GgufValue *types = gguf_find(g, "tokenizer.ggml.token_type");
  if (!types)
    return 0;
  if (!types->is_array || types->type != GGUF_I32 || types->count != t->count)
    return fail_with(fail, "metadata tokenizer.ggml.token_type: a number for each token is expected");
  for (size_t i = 0; i < t->count; i++) {
    int64_t type = gguf_element(types, i);
    t->kind[i] = type == TYPE_CONTROL || type == TYPE_UNKNOWN ? TOKEN_CONTROL : type == TYPE_BYTE ? TOKEN_BYTE : type == TYPE_USER ? TOKEN_ADDED : TOKEN_TEXT;
  }
  find_added(t);
  return 0;
}

static int
gguf_flag(const Gguf *g, const char *key, bool otherwise)
{
  const GgufValue *v = gguf_find(g, key);
  return v && !v->is_array && v->type == GGUF_BOOL ? gguf_element(v, 0) != 0 : otherwise;
}

static int
gguf_ends(Tokenizer *t, const Gguf *g, Fail *fail)
{
  uint64_t begin, end;
  t->add_begin = gguf_flag(g, "tokenizer.ggml.add_bos_token", t->pieced);
  return gguf_integer(g, "tokenizer.ggml.bos_token_id", UINT64_MAX, &begin, fail) || check_token(t, "what begins a text", begin, &t->begin, fail) ||
         gguf_integer(g, "tokenizer.ggml.eos_token_id", UINT64_MAX, &end, fail) || check_token(t, "what ends a text", end, &t->end, fail) ? -1 : 0;
}

/* Pieces with a score each. */
static int
pieces_from_gguf(Memory *memory, const Gguf *g, Tokenizer *out, Fail *fail)
{
  uint64_t unknown;
  const GgufValue *pieces = strings_of(g, "tokenizer.ggml.tokens", fail), *scores = gguf_find(g, "tokenizer.ggml.scores");
  if (!pieces || start(memory, out, (size_t)pieces->count, fail))
    return -1;
  if (!scores || !scores->is_array || scores->type != GGUF_F32 || scores->count != out->count)
    return fail_with(fail, "metadata tokenizer.ggml.scores: a number for each token is expected");
  out->scores = memory_take(memory, out->count, sizeof *out->scores, fail);
  if (!out->scores)
    return -1;
  memcpy(out->scores, scores->at, out->count * sizeof *out->scores);
  memcpy(out->pieces, pieces->strings, out->count * sizeof *out->pieces);
  out->pieced = true;
  out->add_space = gguf_flag(g, "tokenizer.ggml.add_space_prefix", true);
  if (index_pieces(memory, out, fail) || gguf_controls(out, g, fail) || gguf_ends(out, g, fail) ||
      gguf_integer(g, "tokenizer.ggml.unknown_token_id", UINT64_MAX, &unknown, fail))
    return -1;
  find_byte_pieces(out);
  return check_token(out, "what is unknown", unknown, &out->unknown, fail);
}

int
tokenizer_from_gguf(Memory *memory, const Gguf *g, Tokenizer *out, Fail *fail)
{
  const GgufValue *model = gguf_find(g, "tokenizer.ggml.model");
  bool known = model && !model->is_array && model->type == GGUF_STRING;
  if (known && text_is(model->strings[0], "llama"))
    return pieces_from_gguf(memory, g, out, fail);
  if (!known || !text_is(model->strings[0], "gpt2"))
    return fail_with(fail, "metadata tokenizer.ggml.model: gpt2 (byte-level BPE) and llama (SentencePiece's pieces) are what can be read");
  const GgufValue *pieces = strings_of(g, "tokenizer.ggml.tokens", fail), *merges = pieces ? strings_of(g, "tokenizer.ggml.merges", fail) : NULL;
  if (!merges || start(memory, out, (size_t)pieces->count, fail) || start_merges(memory, out, (size_t)merges->count, fail))
    return -1;
  memcpy(out->pieces, pieces->strings, out->count * sizeof *out->pieces);
  if (index_pieces(memory, out, fail) || words_of(gguf_find(g, "tokenizer.ggml.pre"), &out->words, fail))
    return -1;
  for (size_t i = 0; i < merges->count; i++)
    if (add_merge_text(out, i, merges->strings[i], fail))
      return -1;
  find_bytes(out);
  return gguf_controls(out, g, fail) || gguf_ends(out, g, fail) ? -1 : 0;
}

/* What pre_tokenizer says, which may be a sequence of such. */
static Words
json_words(const Json *pre)
{
  const Json *type = json_member(pre, "type"), *list = json_member(pre, "pretokenizers");
  const Json *expression = json_member(json_member(pre, "pattern"), "Regex");
  if (type && text_is(type->text, "Digits"))
    return WORDS_DIGITS;
  if (expression && memmem(expression->text.at, expression->text.len, "{1,3}", 5))
    return WORDS_LLAMA3;
  Words found = WORDS_GPT2;
  for (const Json *e = list ? list->first : NULL; e && found == WORDS_GPT2; e = e->next)
    found = json_words(e);
  return found;
}

static int
json_pieces(Tokenizer *t, const Json *vocabulary, const Json *added, Fail *fail)
{
  for (const Json *e = vocabulary->first; e; e = e->next) {
    uint64_t id;
    if (!json_integer(e, &id) || id >= t->count)
      return fail_with(fail, "tokenizer.json: token %.*s has no number below %zu", TEXT_ARGS(e->key), t->count);
    t->pieces[id] = e->key;
  }
  for (const Json *e = added ? added->first : NULL; e; e = e->next) {
    uint64_t id;
    const Json *content = json_member(e, "content"), *special = json_member(e, "special");
    if (!json_integer(json_member(e, "id"), &id) || id >= t->count || !content || content->kind != JSON_STRING)
      return fail_with(fail, "tokenizer.json: added_tokens: a number and a content are expected");
    t->pieces[id] = content->text;
    t->kind[id] = special && special->kind == JSON_TRUE ? TOKEN_CONTROL : TOKEN_ADDED;
  }
  return 0;
}

static int
json_merges(Memory *memory, Tokenizer *t, const Json *merges, Fail *fail)
{
  size_t rank = 0;
  if (!merges || merges->kind != JSON_ARRAY)
    return fail_with(fail, "tokenizer.json: model.merges is no list");
  if (start_merges(memory, t, merges->count, fail))
    return -1;
  for (const Json *e = merges->first; e; e = e->next, rank++) {
    bool pair = e->kind == JSON_ARRAY && e->count == 2 && e->first->kind == JSON_STRING && e->first->next->kind == JSON_STRING;
    if (!pair && e->kind != JSON_STRING)
      return fail_with(fail, "tokenizer.json: merge %zu is no pair", rank);
    if (pair ? add_merge(t, rank, e->first->text, e->first->next->text, fail) : add_merge_text(t, rank, e->text, fail))
      return -1;
  }
  return 0;
}

/* eos_token_id may be a list; its first number counts. */
static int
json_ends(Tokenizer *t, const Json *config, Fail *fail)
{
  uint64_t begin, end;
  const Json *ends = json_member(config, "eos_token_id");
  if (ends && ends->kind == JSON_ARRAY)
    ends = ends->first;
  if (!json_integer(json_member(config, "bos_token_id"), &begin))
    begin = UINT64_MAX;
  if (!json_integer(ends, &end))
    end = UINT64_MAX;
  return check_token(t, "what begins a text", begin, &t->begin, fail) || check_token(t, "what ends a text", end, &t->end, fail) ? -1 : 0;
}

/* Whether a normalizer or pre-tokenizer, or one of a sequence, puts a space in front of a text. */
static bool
json_adds_space(const Json *j, const char *list)
{
  const Json *type = json_member(j, "type"), *scheme = json_member(j, "prepend_scheme"), *all = json_member(j, list);
  if (type && text_is(type->text, "Metaspace"))
    return !scheme || !text_is(scheme->text, "never");
  bool adds = type && text_is(type->text, "Prepend");
  for (const Json *e = all ? all->first : NULL; e && !adds; e = e->next)
    adds = json_adds_space(e, list);
  return adds;
}

int
tokenizer_from_json(Memory *memory, const Json *j, const Json *config, Tokenizer *out, Fail *fail)
{
  const Json *model = json_member(j, "model"), *vocabulary = json_member(model, "vocab"), *added = json_member(j, "added_tokens");
  const Json *post = json_member(j, "post_processor"), *post_type = json_member(post, "type");
  if (!vocabulary || vocabulary->kind != JSON_OBJECT)
    return fail_with(fail, "tokenizer.json: model.vocab is no object; byte-level BPE is what can be read");
  uint64_t count = vocabulary->count;
  for (const Json *e = added ? added->first : NULL; e; e = e->next) {
    uint64_t id;
    if (json_integer(json_member(e, "id"), &id) && id >= count && id < TOKENS_MOST)
      count = id + 1;
  }
  if (start(memory, out, (size_t)count, fail) || json_pieces(out, vocabulary, added, fail) || index_pieces(memory, out, fail) ||
      json_merges(memory, out, json_member(model, "merges"), fail))
    return -1;
  find_added(out);
  const Json *fallback = json_member(model, "byte_fallback");
  if (fallback && fallback->kind == JSON_TRUE) {
    const Json *unknown = json_member(model, "unk_token");
    out->pieced = true;
    out->add_space = json_adds_space(json_member(j, "normalizer"), "normalizers") || json_adds_space(json_member(j, "pre_tokenizer"), "pretokenizers");
    out->unknown = unknown && unknown->kind == JSON_STRING ? tokenizer_find(out, unknown->text) : NO_TOKEN;
    out->add_begin = post_type != NULL;
    find_byte_pieces(out);
    return json_ends(out, config, fail);
  }
  out->words = json_words(json_member(j, "pre_tokenizer"));
  out->add_begin = post_type && !text_is(post_type->text, "ByteLevel");         /* a template, which puts it there */
  find_bytes(out);
  return json_ends(out, config, fail);
}

/* ---- text to tokens and back ---- */

int
tokens_add(Tokens *t, int32_t token, Memory *memory, Fail *fail)
{
  int32_t *at = memory_grow(memory, t->at, t->count, 1, &t->room, sizeof *at, fail);
  if (!at)
    return -1;
  t->at = at;
  t->at[t->count++] = token;
  return 0;
}

/* The pair of all neighbours that comes first in the list, and where; NULL: none is left. */
static const Slot *
best_pair(const Tokenizer *t, const int32_t *at, size_t count, size_t *where)
{
  const Slot *best = NULL;
  for (size_t i = 0; i + 1 < count; i++) {
    const Slot *s = pair_slot(t, pair_key(at[i], at[i + 1]));
    if (s->key && (!best || s->rank < best->rank)) {
      best = s;
      *where = i;
    }
  }
  return best;
}

/* One word's bytes behind what is there, merged. Very long words are cut, as time grows with the square. */
enum { WORD_LONGEST = 4096 };

static int
encode_word(const Tokenizer *t, Text word, Tokens *out, Memory *memory, Fail *fail)
{
  size_t from = out->count, where = 0;
  for (size_t i = 0; i < word.len; i++) {
    int32_t token = t->byte_token[(uint8_t)word.at[i]];
    if (token < 0)
      return fail_with(fail, "tokenizer: no token for byte %u", (uint8_t)word.at[i]);
    if (tokens_add(out, token, memory, fail))
      return -1;
  }
  for (const Slot *s; (s = best_pair(t, out->at + from, out->count - from, &where)) != NULL;) {
    int32_t *at = out->at + from + where;
    at[0] = s->result;
    memmove(at + 1, at + 2, (out->count - from - where - 2) * sizeof *at);
    out->count--;
  }
  return 0;
}

static int
encode_words(const Tokenizer *t, const char *at, const char *end, Tokens *out, Memory *memory, Fail *fail)
{
  while (at < end) {
    size_t n = word_length(t->words, at, end);
    n = n > WORD_LONGEST ? WORD_LONGEST : n;
    if (encode_word(t, (Text){at, n}, out, memory, fail))
      return -1;
    at += n;
  }
  return 0;
}

int
tokenizer_encode(const Tokenizer *t, Text text, Tokens *out, Memory *memory, Fail *fail)
{
  const char *end = text.at + text.len;
  if (t->pieced)
    return pieces_encode(t, text, out, memory, fail);
  for (const char *at = text.at; at < end;) {
    const char *stop = at;
    int32_t token = NO_TOKEN;
    while (stop < end && (token = tokenizer_added(t, stop, end)) == NO_TOKEN)
      stop++;
    if (encode_words(t, at, stop, out, memory, fail) || (token != NO_TOKEN && tokens_add(out, token, memory, fail)))
      return -1;
    at = stop + (token != NO_TOKEN ? t->pieces[token].len : 0);
  }
  return 0;
}

/* U+2581 is a space. */
static size_t
decode_piece(Text piece, char *out, size_t size)
{
  size_t n = 0;
  for (size_t i = 0; i < piece.len && n < size; n++) {
    bool space = piece.len - i >= 3 && !memcmp(piece.at + i, "\xe2\x96\x81", 3);
    out[n] = space ? ' ' : piece.at[i];
    i += space ? 3 : 1;
  }
  return n;
}

size_t
tokenizer_decode(const Tokenizer *t, int32_t token, char *out, size_t size)
{
  size_t n = 0;
  if (token < 0 || (size_t)token >= t->count || t->kind[token] == TOKEN_CONTROL)
    return 0;
  if (t->pieced && t->kind[token] != TOKEN_BYTE)
    return decode_piece(t->pieces[token], out, size);
  if (t->kind[token] == TOKEN_ADDED) {
    n = t->pieces[token].len < size ? t->pieces[token].len : size;
    if (n)
      memcpy(out, t->pieces[token].at, n);
    return n;
  }
  for (int b = 0; t->pieced && b < 256; b++)
    if (t->byte_token[b] == token && size) {
      out[0] = (char)b;
      return 1;
    }
  const char *at = t->pieces[token].at, *end = at + t->pieces[token].len;
  while (at < end && n < size) {
    Char c = char_at(at, end);
    int byte = code_byte(c.code);
    if (byte >= 0)
      out[n++] = (char)byte;
    at += c.bytes;
  }
  return n;
}
