#include "source.h"
#include "safetensors.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_LONGEST = 4096 };

/* What went wrong in a file begins with its name. */
static int
in_file(const char *path, int status, Fail *fail)
{
  Fail inner = *fail;
  return status ? fail_with(fail, "%s: %.*s", path, (int)sizeof inner.message, inner.message) : 0;
}

static int
read_gguf(Source *s, bool tokenizer, Memory *memory, Fail *fail)
{
  Gguf g;
  s->gguf = true;
  if (gguf_read(memory, s->weights.bytes, s->weights.size, &g, fail) || config_from_gguf(&g, &s->config, fail))
    return -1;
  s->tensors = g.tensors;
  return tokenizer ? tokenizer_from_gguf(memory, &g, &s->tokenizer, fail) : 0;
}

static int
open_json(const char *folder, const char *name, Mapping *m, Json **out, Memory *memory, Fail *fail)
{
  char path[PATH_LONGEST];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
    return fail_with(fail, "%s: the name is too long", name);
  if (mapping_open(m, path, fail))
    return -1;
  return in_file(path, json_read(memory, (const char *)m->bytes, m->size, out, fail), fail);
}

static int
read_folder(Source *s, const char *folder, bool tokenizer, Memory *memory, Fail *fail)
{
  char path[PATH_LONGEST];
  Json *config, *words;
  if (snprintf(path, sizeof path, "%s/model.safetensors", folder) >= (int)sizeof path)
    return fail_with(fail, "the name is too long");
  if (open_json(folder, "config.json", &s->config_text, &config, memory, fail) || config_from_json(config, &s->config, fail) ||
      mapping_open(&s->weights, path, fail) || in_file(path, safetensors_read(memory, s->weights.bytes, s->weights.size, &s->tensors, fail), fail))
    return -1;
  if (!tokenizer)
    return 0;
  return open_json(folder, "tokenizer.json", &s->tokenizer_text, &words, memory, fail) ||
         tokenizer_from_json(memory, words, config, &s->tokenizer, fail) ? -1 : 0;
}

int
source_open(Source *s, const char *path, bool tokenizer, Memory *memory, Fail *fail)
{
  struct stat st;
  *s = (Source){0};
  if (!stat(path, &st) && S_ISDIR(st.st_mode))
    return read_folder(s, path, tokenizer, memory, fail);
  if (mapping_open(&s->weights, path, fail))
    return -1;
  return in_file(path, read_gguf(s, tokenizer, memory, fail), fail);
}

void
source_close(Source *s)
{
  mapping_close(&s->weights);
  mapping_close(&s->config_text);
  mapping_close(&s->tokenizer_text);
}
