/* main.c - a Llama that reads a prompt and goes on with it. Every kernel is of kernels.tile; `llama --help` says what it takes.
 *
 *   llama SmolLM2-135M-Instruct.Q4_1.gguf "Why is the sky blue?" --device=sim
 */
#include "frames.h"
#include "options.h"
#include "rounds.h"
#include "source.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the prompt ---- */

typedef struct Prompt { const Tokenizer *tokenizer; Text chat; Tokens tokens; Memory *memory; Fail *fail; } Prompt;

/* Whether a tokenizer is needed. */
static bool
reads_text(const Options *o)
{
  return !o->ids && !o->rounds;
}

static int
add_ids(Prompt *p, const char *ids, uint64_t vocabulary)
{
  for (const char *at = ids; *at;) {
    char *end;
    unsigned long long id = strtoull(at, &end, 10);
    if (end == at || (*end && *end != ',') || id >= vocabulary)
      return fail_with(p->fail, "--ids=%s: numbers below %llu are expected", ids, (unsigned long long)vocabulary);
    if (tokens_add(&p->tokens, (int32_t)id, p->memory, p->fail))
      return -1;
    at = *end ? end + 1 : end;
  }
  return 0;
}

static int
make_prompt(Prompt *p, const Options *o, uint64_t vocabulary)
{
  if (o->rounds)
    return 0;
  if (o->ids)
    return add_ids(p, o->ids, vocabulary);
  if (!o->raw)
    return frames_encode(p->tokenizer, p->chat, o->system, o->prompt, &p->tokens, p->memory, p->fail);
  if (p->tokenizer->add_begin && p->tokenizer->begin >= 0 && tokens_add(&p->tokens, p->tokenizer->begin, p->memory, p->fail))
    return -1;
  return tokenizer_encode(p->tokenizer, (Text){o->prompt, strlen(o->prompt)}, &p->tokens, p->memory, p->fail);
}

/* ---- the text ---- */

static void
print_token(const Options *o, const Tokenizer *t, int32_t token)
{
  char bytes[1024];
  if (o->ids)
    printf("%d\n", token);
  else
    fwrite(bytes, 1, tokenizer_decode(t, token, bytes, sizeof bytes), stdout);
  fflush(stdout);
}

static bool
is_end(const Tokenizer *t, int32_t token)
{
  static const char *const ends[] = {"<|im_end|>", "<|eot_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>"};
  bool end = token == t->end;
  for (size_t i = 0; t->count && i < sizeof ends / sizeof *ends; i++)
    end = end || token == tokenizer_find(t, (Text){ends[i], strlen(ends[i])});
  return end;
}

static int
generate(Session *s, const Options *o, const Prompt *p, Fail *fail)
{
  int32_t next;
  double began = seconds_now();
  if (session_prefill(s, p->tokens.at, p->tokens.count, &next, fail))
    return -1;
  double filled = seconds_now();
  uint64_t steps = 0;
  for (uint64_t i = 0; i < o->tokens && (o->ids || !is_end(p->tokenizer, next)); i++) {
    print_token(o, p->tokenizer, next);
    if (i + 1 == o->tokens)
      break;
    if (session_decode(s, &next, fail))
      return -1;
    steps++;
  }
  double took = seconds_now() - filled;
  if (!o->ids)
    puts("");
  fflush(stdout);
  if (o->timing)
    fprintf(stderr, "prompt: %zu tokens in %.3f s; then %llu in %.3f s, %.2f a second\n", p->tokens.count, filled - began,
            (unsigned long long)steps, took, steps ? (double)steps / took : 0.0);
  return 0;
}

static int
write_logits(Session *s, const char *path, Memory *memory, Fail *fail)
{
  size_t n = (size_t)s->model->vocabulary;
  float *logits = memory_take(memory, n, sizeof *logits, fail);
  if (!logits || session_logits(s, logits, fail))
    return -1;
  FILE *f = fopen(path, "wb");
  bool good = f && fwrite(logits, sizeof *logits, n, f) == n;
  good = f && !fclose(f) && good;
  return good ? 0 : fail_with(fail, "%s: it cannot be written", path);
}

static int
run(const Options *o, Gpu *gpu, Source *source, Memory *memory, Fail *fail)
{
  Model model;
  Session session;
  Prompt prompt = {.tokenizer = &source->tokenizer, .memory = memory, .fail = fail};
  double began = seconds_now();
  if (source_open(source, o->model, reads_text(o), memory, fail) || gpu_open(gpu, o->device, o->wide, fail) ||
      model_load(gpu, memory, &source->config, &source->tensors, source->gguf, o->context, &model, fail) ||
      (prompt.chat = source->chat, make_prompt(&prompt, o, model.vocabulary)))
    return -1;
  if (reads_text(o) && source->tokenizer.count > model.vocabulary)
    return fail_with(fail, "the tokenizer has %zu tokens, the model %llu", source->tokenizer.count, (unsigned long long)model.vocabulary);
  int status = session_open(&session, gpu, &model, &o->sampling, o->piece, memory, fail);
  if (!status && o->timing)
    fprintf(stderr, "%s: loaded in %.3f s\n", tilert_device_info(gpu->device)->name, seconds_now() - began);
  if (!status)
    status = o->rounds ? rounds_run(&session, memory, fail) : generate(&session, o, &prompt, fail);
  if (!status && o->logits)
    status = write_logits(&session, o->logits, memory, fail);
  session_close(&session);
  return status;
}

int
main(int argc, char **argv)
{
  Options options;
  Gpu gpu = {0};
  Source source = {0};
  Memory memory = {0};
  Fail fail = {{0}};
  int status = options_read(&options, argc, argv, &fail);
  if (!status && options.help)
    fputs(options_help, stdout);
  else if (!status)
    status = run(&options, &gpu, &source, &memory, &fail);
  if (status)
    fprintf(stderr, "llama: %s\n", fail.message);
  gpu_close(&gpu);
  source_close(&source);
  memory_free(&memory);
  return status != 0;
}
