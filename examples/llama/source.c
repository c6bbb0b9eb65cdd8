#include "source.h"
#include "safetensors.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_LONGEST = 4096 };
static const char index_name[] = "model.safetensors.index.json";

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
  if (gguf_read(memory, s->weights[0].bytes, s->weights[0].size, &g, fail) || config_from_gguf(&g, &s->config, fail))
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

/* Tensors of one file behind those that there are. */
static int
add_file(Source *s, const char *folder, Text file, Memory *memory, Fail *fail)
{
  char path[PATH_LONGEST];
  Tensors more;
  Mapping *m = &s->weights[s->files];
  if (s->files == FILES_MOST)
    return fail_with(fail, "%s: more than %d files of weights", folder, FILES_MOST);
  if (!file.len || file.len > NAME_SHOWN || memchr(file.at, '/', file.len) || memchr(file.at, 0, file.len))
    return fail_with(fail, "%s: %.*s is no name of a file in the folder", folder, TEXT_ARGS(file));
  if (snprintf(path, sizeof path, "%s/%.*s", folder, TEXT_ARGS(file)) >= (int)sizeof path)
    return fail_with(fail, "%s: the name is too long", folder);
  if (mapping_open(m, path, fail))
    return -1;
  s->files++;
  if (in_file(path, safetensors_read(memory, m->bytes, m->size, &more, fail), fail))
    return -1;
  Tensor *all = memory_take(memory, s->tensors.count + more.count, sizeof *all, fail);
  if (!all)
    return -1;
  if (s->tensors.count)
    memcpy(all, s->tensors.at, s->tensors.count * sizeof *all);
  if (more.count)
    memcpy(all + s->tensors.count, more.at, more.count * sizeof *all);
  s->tensors = (Tensors){all, s->tensors.count + more.count};
  return 0;
}

/* The files that the list names, each once. */
static int
read_parts(Source *s, const char *folder, const Json *list, Memory *memory, Fail *fail)
{
  const Json *map = json_member(list, "weight_map");
  Text seen[FILES_MOST];
  if (!map || map->kind != JSON_OBJECT)
    return fail_with(fail, "%s/%s: it has no weight_map", folder, index_name);
  for (const Json *e = map->first; e; e = e->next) {
    bool known = false;
    if (e->kind != JSON_STRING)
      return fail_with(fail, "%s/%s: %.*s is in no file", folder, index_name, TEXT_ARGS(e->key));
    for (size_t i = 0; i < s->files && !known; i++)
      known = seen[i].len == e->text.len && !memcmp(seen[i].at, e->text.at, e->text.len);
    if (known)
      continue;
    if (add_file(s, folder, e->text, memory, fail))
      return -1;
    seen[s->files - 1] = e->text;
  }
  return 0;
}

static int
read_weights(Source *s, const char *folder, Memory *memory, Fail *fail)
{
  static const char whole[] = "model.safetensors";
  char path[PATH_LONGEST];
  struct stat st;
  Json *list;
  int status;
  if (snprintf(path, sizeof path, "%s/%s", folder, index_name) >= (int)sizeof path)
    return fail_with(fail, "%s: the name is too long", folder);
  if (stat(path, &st))
    status = add_file(s, folder, (Text){whole, sizeof whole - 1}, memory, fail);
  else
    status = open_json(folder, index_name, &s->index_text, &list, memory, fail) || read_parts(s, folder, list, memory, fail);
  return status || tensors_index(&s->tensors, fail) ? -1 : 0;
}

static int
read_folder(Source *s, const char *folder, bool tokenizer, Memory *memory, Fail *fail)
{
  Json *config, *words;
  if (open_json(folder, "config.json", &s->config_text, &config, memory, fail) || config_from_json(config, &s->config, fail) ||
      read_weights(s, folder, memory, fail))
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
  if (mapping_open(&s->weights[0], path, fail))
    return -1;
  s->files = 1;
  return in_file(path, read_gguf(s, tokenizer, memory, fail), fail);
}

void
source_close(Source *s)
{
  for (size_t i = 0; i < s->files; i++)
    mapping_close(&s->weights[i]);
  mapping_close(&s->index_text);
  mapping_close(&s->config_text);
  mapping_close(&s->tokenizer_text);
}
