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

/* Tensors behind those that there are. */
static int
add_tensors(Source *s, const Tensors *more, Memory *memory, Fail *fail)
{
  Tensor *all = memory_take(memory, s->tensors.count + more->count, sizeof *all, fail);
  if (!all)
    return -1;
  if (s->tensors.count)
    memcpy(all, s->tensors.at, s->tensors.count * sizeof *all);
  if (more->count)
    memcpy(all + s->tensors.count, more->at, more->count * sizeof *all);
  s->tensors = (Tensors){all, s->tensors.count + more->count};
  return 0;
}

/* ---- GGUF, in one file or in parts ---- */

/* Which part of how many a file says it is; 0 of 1: the whole. */
typedef struct Part { uint64_t number, count; } Part;

static int
part_of(const Gguf *g, Part *p, Fail *fail)
{
  if (gguf_integer(g, "split.no", 0, &p->number, fail) || gguf_integer(g, "split.count", 1, &p->count, fail))
    return -1;
  if (p->count > FILES_MOST || p->number >= (p->count ? p->count : 1))
    return fail_with(fail, "metadata split.no: part %llu of %llu; at most %d parts can be read", (unsigned long long)p->number + 1,
                     (unsigned long long)p->count, FILES_MOST);
  return 0;
}

/* Part i, whose name has its number in place of the first part's: NAME-00001-of-00003.gguf. */
static int
add_part(Source *s, const char *first, size_t stem, Part p, Memory *memory, Fail *fail)
{
  char path[PATH_LONGEST];
  Gguf g;
  Part said = {0};
  Mapping *m = &s->weights[s->files];
  if (snprintf(path, sizeof path, "%.*s-%05llu-of-%05llu.gguf", (int)stem, first, (unsigned long long)p.number + 1, (unsigned long long)p.count) >=
      (int)sizeof path)
    return fail_with(fail, "%s: the name is too long", first);
  if (mapping_open(m, path, fail))
    return -1;
  s->files++;
  int status = gguf_read(memory, m->bytes, m->size, &g, fail) || part_of(&g, &said, fail) ? -1 : 0;
  if (!status && (said.number != p.number || said.count != p.count))
    status = fail_with(fail, "it says that it is part %llu of %llu", (unsigned long long)said.number + 1, (unsigned long long)said.count);
  return in_file(path, status, fail) || add_tensors(s, &g.tensors, memory, fail) ? -1 : 0;
}

static int
add_parts(Source *s, const char *path, const Gguf *g, Part p, Memory *memory, Fail *fail)
{
  char tail[64];
  uint64_t tensors;
  int n = snprintf(tail, sizeof tail, "-%05llu-of-%05llu.gguf", (unsigned long long)p.number + 1, (unsigned long long)p.count);
  size_t len = strlen(path);
  if (len < (size_t)n || strcmp(path + len - n, tail))
    return fail_with(fail, "%s: the first part of %llu has a name that ends in %s", path, (unsigned long long)p.count, tail);
  for (p.number = 1; p.number < p.count; p.number++)
    if (add_part(s, path, len - (size_t)n, p, memory, fail))
      return -1;
  if (gguf_integer(g, "split.tensors.count", s->tensors.count, &tensors, fail) || tensors_index(&s->tensors, fail))
    return -1;
  return tensors == s->tensors.count ? 0 : fail_with(fail, "%s: %llu tensors in all parts, there are %zu", path, (unsigned long long)tensors, s->tensors.count);
}

static int
read_gguf(Source *s, const char *path, bool tokenizer, Memory *memory, Fail *fail)
{
  Gguf g;
  Part p = {0};
  s->gguf = true;
  int status = gguf_read(memory, s->weights[0].bytes, s->weights[0].size, &g, fail) || part_of(&g, &p, fail) ? -1 : 0;
  if (!status && p.number)
    status = fail_with(fail, "it is part %llu of %llu; the first one is to be given", (unsigned long long)p.number + 1, (unsigned long long)p.count);
  if (!status)
    status = config_from_gguf(&g, &s->config, fail);
  if (!status && tokenizer)
    status = tokenizer_from_gguf(memory, &g, &s->tokenizer, fail);
  const GgufValue *chat = status ? NULL : gguf_find(&g, "tokenizer.chat_template");
  if (chat && !chat->is_array && chat->type == GGUF_STRING)
    s->chat = chat->strings[0];
  s->tensors = g.tensors;
  return in_file(path, status, fail) || (p.count > 1 && add_parts(s, path, &g, p, memory, fail)) ? -1 : 0;
}

/* ---- a folder of safetensors ---- */

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
  return add_tensors(s, &more, memory, fail);
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

/* chat_template of tokenizer_config.json, which may be a list of those with names, or a file of its own. Neither has to be there. */
static int
read_chat(Source *s, const char *folder, Memory *memory, Fail *fail)
{
  static const char config_name[] = "tokenizer_config.json", own[] = "chat_template.jinja";
  char path[PATH_LONGEST];
  struct stat st;
  Json *config;
  if (snprintf(path, sizeof path, "%s/%s", folder, own) < (int)sizeof path && !stat(path, &st)) {
    if (mapping_open(&s->chat_text, path, fail))
      return -1;
    s->chat = (Text){(const char *)s->chat_text.bytes, s->chat_text.size};
    return 0;
  }
  if (snprintf(path, sizeof path, "%s/%s", folder, config_name) >= (int)sizeof path || stat(path, &st))
    return 0;
  if (open_json(folder, config_name, &s->chat_text, &config, memory, fail))
    return -1;
  const Json *chat = json_member(config, "chat_template");
  if (chat && chat->kind == JSON_ARRAY)
    chat = json_member(chat->first, "template");
  if (chat && chat->kind == JSON_STRING)
    s->chat = chat->text;
  return 0;
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
         tokenizer_from_json(memory, words, config, &s->tokenizer, fail) || read_chat(s, folder, memory, fail) ? -1 : 0;
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
  return read_gguf(s, path, tokenizer, memory, fail);
}

void
source_close(Source *s)
{
  for (size_t i = 0; i < s->files; i++)
    mapping_close(&s->weights[i]);
  mapping_close(&s->index_text);
  mapping_close(&s->config_text);
  mapping_close(&s->tokenizer_text);
  mapping_close(&s->chat_text);
}
