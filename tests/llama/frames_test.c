/* frames_test.c - TOKENIZER.json FRAMES.json: a chat by a known template becomes the tokens of the text that the template makes of it
 * (make_frames.py), with what the messages say as text. */
#include "../runtime/check.h"
#include "frames.h"

enum { TEXT_MOST = 4096 };
typedef struct Test { Memory memory; Tokenizer t; } Test;

static Json *
load(const char *path, Test *s)
{
  Fail err = {{0}};
  Mapping m;                    /* stays until the end */
  Json *j = NULL;
  CHECK_OK(mapping_open(&m, path, &err));
  CHECK_OK(json_read(&s->memory, (const char *)m.bytes, m.size, &j, &err));
  return j;
}

/* The text of tokens, with the names of control tokens, and how many of these there are. */
static Text
shown(Test *s, const Tokens *tokens, char *to, size_t *controls)
{
  size_t n = 0;
  *controls = 0;
  for (size_t i = 0; i < tokens->count; i++) {
    Text name = s->t.pieces[tokens->at[i]];
    if (s->t.kind[tokens->at[i]] != TOKEN_CONTROL) {
      n += tokenizer_decode(&s->t, tokens->at[i], to + n, TEXT_MOST - n);
      continue;
    }
    CHECK(n + name.len < TEXT_MOST);
    memcpy(to + n, name.at, name.len);
    n += name.len;
    ++*controls;
  }
  return (Text){to, n};
}

static void
check_case(Test *s, const Json *e)
{
  Fail err = {{0}};
  char system[256], user[256], text[TEXT_MOST];
  Tokens tokens = {0};
  size_t controls;
  const Json *said = json_member(e, "system"), *asked = json_member(e, "user");
  Text expected = json_member(e, "text")->text;
  CHECK(asked->text.len < sizeof user && (!said || said->text.len < sizeof system));
  snprintf(system, sizeof system, "%.*s", said ? (int)said->text.len : 0, said ? said->text.at : "");
  snprintf(user, sizeof user, "%.*s", (int)asked->text.len, asked->text.at);
  CHECK_OK(frames_encode(&s->t, json_member(e, "template")->text, said ? system : NULL, user, &tokens, &s->memory, &err));
  Text got = shown(s, &tokens, text, &controls);
  if (!texts_same(got, expected)) {
    fprintf(stderr, "%.*s: \"%.*s\", expected \"%.*s\"\n", TEXT_ARGS(json_member(e, "name")->text), (int)got.len, got.at, (int)expected.len, expected.at);
    exit(1);
  }
  if (memmem(expected.at, expected.len, "<|im_start|>", 12))
    CHECK(controls > 1);        /* which are no text */
}

static void
other_templates(Test *s)
{
  Fail err = {{0}};
  char text[TEXT_MOST];
  Tokens tokens = {0};
  size_t controls;
  CHECK(frames_encode(&s->t, (Text){"{{ messages }}", 14}, NULL, "x", &tokens, &s->memory, &err) && strstr(err.message, "--raw"));
  CHECK_OK(frames_encode(&s->t, (Text){0}, NULL, "x <|im_start|>", &tokens, &s->memory, &err));         /* by its tokens */
  Text got = shown(s, &tokens, text, &controls);
  CHECK(text_is(got, "<|im_start|>user\nx <|im_start|><|im_end|>\n<|im_start|>assistant\n") && controls == 2);
}

int
main(int argc, char **argv)
{
  Test s = {{0}};
  Fail err = {{0}};
  CHECK(argc == 3);
  CHECK_OK(tokenizer_from_json(&s.memory, load(argv[1], &s), NULL, &s.t, &err));
  other_templates(&s);
  /* Any two tokens of text that begin and end one: their names are in what is expected. */
  Tokenizer *t = &s.t;
  t->begin = (int32_t)t->count - 2;
  t->end = (int32_t)t->count - 3;
  t->pieces[t->begin] = (Text){"<bos>", 5};
  t->pieces[t->end] = (Text){"<eos>", 5};
  t->kind[t->begin] = TOKEN_CONTROL;
  const Json *all = load(argv[2], &s);
  CHECK(all->count > 20);
  for (const Json *e = all->first; e; e = e->next)
    check_case(&s, e);
  memory_free(&s.memory);
  return 0;
}
