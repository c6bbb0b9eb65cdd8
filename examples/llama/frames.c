#include "frames.h"
#include <string.h>

/* Between \1 and \1 stands the name of a token, which is text where there is none of that name; \2 is what ends a text, \3 the message. `first` is a
 * message of the user without one of the system in front of it. */
typedef struct Frames { const char *name, *marks[2], *system, *user, *first, *reply; } Frames;
#define MARK(name) "\1" name "\1"
static const Frames all[] = {
  {"llama3", {"<|start_header_id|>", "<|eot_id|>"}, MARK("<|start_header_id|>") "system" MARK("<|end_header_id|>") "\n\n\3" MARK("<|eot_id|>"),
   MARK("<|start_header_id|>") "user" MARK("<|end_header_id|>") "\n\n\3" MARK("<|eot_id|>"), NULL,
   MARK("<|start_header_id|>") "assistant" MARK("<|end_header_id|>") "\n\n"},
  {"chatml", {"<|im_start|>", "<|im_end|>"}, MARK("<|im_start|>") "system\n\3" MARK("<|im_end|>") "\n",
   MARK("<|im_start|>") "user\n\3" MARK("<|im_end|>") "\n", NULL, MARK("<|im_start|>") "assistant\n"},
  {"phi3", {"<|user|>", "<|end|>"}, MARK("<|system|>") "\n\3" MARK("<|end|>") "\n", MARK("<|user|>") "\n\3" MARK("<|end|>") "\n", NULL,
   MARK("<|assistant|>") "\n"},
  {"zephyr", {"<|user|>", "<|assistant|>"}, MARK("<|system|>") "\n\3\2\n", MARK("<|user|>") "\n\3\2\n", NULL, MARK("<|assistant|>") "\n"},
  {"llama2", {"[INST]", "<<SYS>>"}, MARK("[INST]") " <<SYS>>\n\3\n<</SYS>>\n\n", "\3 " MARK("[/INST]"), MARK("[INST]") " \3 " MARK("[/INST]"), ""},
  {"mistral", {"[INST]", " [/INST]"}, MARK("[INST]") " \3\n\n", "\3 " MARK("[/INST]"), MARK("[INST]") " \3 " MARK("[/INST]"), ""},
  {"mistral, later", {"[INST]", "[/INST]"}, MARK("[INST]") " \3\n\n", "\3" MARK("[/INST]"), MARK("[INST]") " \3" MARK("[/INST]"), ""},
  {"alpaca", {"### Instruction:", "### Response:"}, "\3\n\n", "### Instruction:\n\3\n\n", NULL, "### Response:\n"},
  {"vicuna", {"USER: ", "ASSISTANT:"}, "\3 ", "USER: \3 ", NULL, "ASSISTANT:"}};
enum { KNOWN = sizeof all / sizeof *all, BY_TOKENS = 2 };                /* the first few are told by their tokens, too */

/* Text that waits for the next token with a name: what stands between two of these is one text. */
typedef struct Writer { const Tokenizer *t; char *text; size_t len, room; Tokens *out; Memory *memory; Fail *fail; } Writer;

static bool
has(Text where, const char *what)
{
  return where.len && memmem(where.at, where.len, what, strlen(what));
}

static int
flush(Writer *w)
{
  int status = w->len ? tokenizer_encode(w->t, (Text){w->text, w->len}, w->out, w->memory, w->fail) : 0;
  w->len = 0;
  return status;
}

static int
add_text(Writer *w, const char *at, size_t len)
{
  char *text = memory_grow(w->memory, w->text, w->len, len, &w->room, 1, w->fail);
  if (!text)
    return -1;
  w->text = text;
  if (len)
    memcpy(w->text + w->len, at, len);
  w->len += len;
  return 0;
}

static int
add_named(Writer *w, Text name)
{
  int32_t token = tokenizer_find(w->t, name);
  if (token < 0 || (w->t->kind[token] != TOKEN_CONTROL && w->t->kind[token] != TOKEN_ADDED))
    return add_text(w, name.at, name.len);
  return flush(w) || tokens_add(w->out, token, w->memory, w->fail) ? -1 : 0;
}

static int
add_end(Writer *w)
{
  return w->t->end < 0 ? 0 : add_named(w, w->t->pieces[w->t->end]);
}

static int
add_message(Writer *w, const char *frame, Text message)
{
  for (const char *at = frame; *at;) {
    size_t n = strcspn(at, "\1\2\3");
    if (add_text(w, at, n))
      return -1;
    at += n;
    if (*at == '\1') {
      n = strcspn(++at, "\1");
      if (add_named(w, (Text){at, n}))
        return -1;
      at += n + 1;
    } else if (*at) {
      if (*at++ == '\2' ? add_end(w) : add_text(w, message.at, message.len))
        return -1;
    }
  }
  return 0;
}

/* NULL: none is meant; or, with a sentence, none is known. */
static const Frames *
find(const Tokenizer *t, Text chat, Fail *fail)
{
  for (size_t i = 0; chat.len && i < KNOWN; i++)
    if (has(chat, all[i].marks[0]) && has(chat, all[i].marks[1]))
      return &all[i];
  for (size_t i = 0; !chat.len && i < BY_TOKENS; i++)
    if (tokenizer_find(t, (Text){all[i].marks[0], strlen(all[i].marks[0])}) >= 0)
      return &all[i];
  if (chat.len)
    fail_with(fail, "the model's template of a chat is none of those that are known (llama2, llama3, chatml, mistral, zephyr, phi3, alpaca, vicuna); "
                    "--raw takes the prompt as it is");
  return NULL;
}

/* What a template that is known as chatml says where no message of the system is given: words between its marks, with nothing to be computed. */
static Text
usual_system(Text chat)
{
  static const char before[] = "<|im_start|>system", behind[] = "<|im_end|>";
  const char *end = chat.at + chat.len;
  for (const char *at = chat.at; at && at < end && (at = memmem(at, (size_t)(end - at), before, sizeof before - 1)) != NULL;) {
    at += sizeof before - 1;
    size_t newline = at < end && *at == '\n' ? 1 : end - at > 1 && at[0] == '\\' && at[1] == 'n' ? 2 : 0;
    if (!newline)
      continue;
    at += newline;
    const char *stop = memmem(at, (size_t)(end - at), behind, sizeof behind - 1);
    if (stop && !memchr(at, '\'', (size_t)(stop - at)) && !memchr(at, '"', (size_t)(stop - at)) && !memchr(at, '{', (size_t)(stop - at)) &&
        !memchr(at, '\\', (size_t)(stop - at)))
      return (Text){at, (size_t)(stop - at)};
  }
  return (Text){0};
}

int
frames_encode(const Tokenizer *t, Text chat, const char *system, const char *prompt, Tokens *out, Memory *memory, Fail *fail)
{
  Writer w = {.t = t, .out = out, .memory = memory, .fail = fail};
  const Frames *f = find(t, chat, fail);
  Text first = system ? (Text){system, strlen(system)} : usual_system(chat), message = {prompt, strlen(prompt)};
  if (!f && chat.len)
    return -1;
  if (t->begin >= 0 && (t->add_begin || has(chat, "bos_token")) && tokens_add(out, t->begin, memory, fail))
    return -1;
  if (!f)
    return tokenizer_encode(t, message, out, memory, fail);
  if ((first.len && add_message(&w, f->system, first)) || add_message(&w, first.len || !f->first ? f->user : f->first, message))
    return -1;
  return add_message(&w, f->reply, (Text){0}) || flush(&w) ? -1 : 0;
}
