/* tokenizer_test.c - TOKENIZER.json|.gguf CASES.json...: text becomes the tokens that another implementation made of it (make_tokenizers.py), and
 * they become that text again. Without pairs of files: what a tokenizer refuses. */
#include "../runtime/check.h"
#include "tokenizer.h"

/* Reads a file of JSON that is there and good. */
static Json *
load(const char *path, Mapping *m, Memory *memory)
{
  Fail err = {{0}};
  Json *j = NULL;
  CHECK_OK(mapping_open(m, path, &err));
  CHECK_OK(json_read(memory, (const char *)m->bytes, m->size, &j, &err));
  return j;
}

static bool
same_tokens(const Tokens *got, const Json *ids)
{
  const Json *e = ids->first;
  if (got->count != ids->count)
    return false;
  for (size_t i = 0; i < got->count; i++, e = e->next) {
    uint64_t id;
    if (!json_integer(e, &id) || id != (uint64_t)got->at[i])
      return false;
  }
  return true;
}

static void
check_case(const Tokenizer *t, Text text, const Json *ids)
{
  Memory memory = {0};
  Fail err = {{0}};
  Tokens got = {0};
  size_t n = 0;
  char *back = malloc(text.len + 1024);
  CHECK(back);
  CHECK_OK(tokenizer_encode(t, text, &got, &memory, &err));
  if (!same_tokens(&got, ids)) {
    fprintf(stderr, "\"%.*s\":", (int)text.len, text.at);
    for (size_t i = 0; i < got.count; i++)
      fprintf(stderr, " %d", got.at[i]);
    fputs(", expected:", stderr);
    for (const Json *e = ids->first; e; e = e->next)
      fprintf(stderr, " %.*s", TEXT_ARGS(e->text));
    fputs("\n", stderr);
    exit(1);
  }
  for (size_t i = 0; i < got.count; i++)
    n += tokenizer_decode(t, got.at[i], back + n, text.len + 1024 - n);
  size_t space = t->add_space && text.len;
  CHECK(n == text.len + space && (!space || *back == ' ') && (!text.len || !memcmp(back + space, text.at, text.len)));
  free(back);
  memory_free(&memory);
}

/* The words that text falls into, by their bytes. */
static void
check_words(const Tokenizer *t, Text text, const Json *words)
{
  const char *at = text.at, *end = text.at + text.len;
  for (const Json *e = words->first; e; e = e->next) {
    uint64_t expected;
    size_t n = word_length(t->words, at, end);
    if (!json_integer(e, &expected) || n != expected) {
      fprintf(stderr, "\"%.*s\", byte %zu: a word of %zu bytes, expected %.*s\n", (int)text.len, text.at, (size_t)(at - text.at), n, TEXT_ARGS(e->text));
      exit(1);
    }
    at += n;
  }
  CHECK(at == end);
}

static void
check_file(const char *tokenizer, const char *cases)
{
  Memory memory = {0};
  Mapping a, b;
  Fail err = {{0}};
  Tokenizer t;
  Gguf g;
  Json *j;
  CHECK_OK(mapping_open(&a, tokenizer, &err));
  bool is_gguf = gguf_looks_so(a.bytes, a.size);
  if (is_gguf) {
    CHECK_OK(gguf_read(&memory, a.bytes, a.size, &g, &err));
    CHECK_OK(tokenizer_from_gguf(&memory, &g, &t, &err));
  } else {
    CHECK_OK(json_read(&memory, (const char *)a.bytes, a.size, &j, &err));
    CHECK_OK(tokenizer_from_json(&memory, j, NULL, &t, &err));
  }
  const Json *all = load(cases, &b, &memory);
  CHECK(all->count > 50);
  for (const Json *e = all->first; e; e = e->next) {
    if (json_member(e, "words"))
      check_words(&t, json_member(e, "text")->text, json_member(e, "words"));
    check_case(&t, json_member(e, "text")->text, json_member(e, "ids"));
  }
  printf("%s: %zu texts\n", tokenizer, all->count);
  mapping_close(&a);
  mapping_close(&b);
  memory_free(&memory);
}

static void
refuses(const char *text, const char *expected)
{
  Memory memory = {0};
  Fail err = {{0}};
  Json *j;
  Tokenizer t;
  CHECK_OK(json_read(&memory, text, strlen(text), &j, &err));
  if (!tokenizer_from_json(&memory, j, NULL, &t, &err) || !strstr(err.message, expected)) {
    fprintf(stderr, "%s: message \"%s\", expected \"%s\"\n", text, err.message, expected);
    exit(1);
  }
  memory_free(&memory);
}

/* A tokenizer's file of metadata alone, with other bytes at some place. */
static void
refuses_gguf(const char *path, const char *find, uint8_t byte, size_t behind, const char *expected)
{
  Memory memory = {0};
  Fail err = {{0}};
  Mapping m;
  Gguf g;
  Tokenizer t;
  CHECK_OK(mapping_open(&m, path, &err));
  uint8_t *copy = malloc(m.size);
  CHECK(copy);
  memcpy(copy, m.bytes, m.size);
  uint8_t *at = memmem(copy, m.size, find, strlen(find));
  CHECK(at);
  at[behind] = byte;
  CHECK_OK(gguf_read(&memory, copy, m.size, &g, &err));
  if (!tokenizer_from_gguf(&memory, &g, &t, &err) || !strstr(err.message, expected)) {
    fprintf(stderr, "%s: message \"%s\", expected \"%s\"\n", find, err.message, expected);
    exit(1);
  }
  free(copy);
  memory_free(&memory);
  mapping_close(&m);
}

static void
bad_pieces(const char *path)
{
  refuses_gguf(path, "tokenizer.ggml.scores", 'S', 15, "tokenizer.ggml.scores: a number for each token");
  refuses_gguf(path, "tokenizer.ggml.scores", 5, 25, "tokenizer.ggml.scores: a number for each token");             /* integers */
  refuses_gguf(path, "tokenizer.ggml.token_type", 4, 29, "tokenizer.ggml.token_type: a number for each token");     /* without a sign */
  refuses_gguf(path, "tokenizer.ggml.unknown_token_id", 9, 36, "what is unknown is token");
  refuses_gguf(path, "tokenizer.ggml.tokens", 'T', 15, "tokenizer.ggml.tokens: a list of strings");
}

int
main(int argc, char **argv)
{
  for (int i = 1; i + 1 < argc; i += 2)
    check_file(argv[i], argv[i + 1]);
  for (int i = 1; i + 1 < argc; i += 2)
    if (strstr(argv[i], ".gguf"))
      bad_pieces(argv[i]);
  refuses("{}", "model.vocab");
  refuses("{\"model\":{\"vocab\":{}}}", "a vocabulary of 0");
  refuses("{\"model\":{\"vocab\":{\"a\":1}}}", "token a has no number below 1");
  refuses("{\"model\":{\"vocab\":{\"a\":0}}}", "model.merges is no list");
  refuses("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "merge 0 is no pair");
  refuses("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merge 0 is no pair");
  refuses("{\"model\":{\"vocab\":{\"\":0},\"merges\":[[\"\",\"\"]]}}", "merge 0 is no pair");
  refuses("{\"model\":{\"vocab\":{\"\":0},\"merges\":[\" a\"]}}", "merge 0 is no pair");
  refuses("{\"model\":{\"vocab\":{\"a\":0},\"merges\":[\"a a\"]}}", "merge 0 (a and a) is not of tokens");
  refuses("{\"model\":{\"vocab\":{\"a\":0}},\"added_tokens\":[{\"id\":5}]}", "added_tokens");
  return 0;
}
