#include "options.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char options_help[] =
  "llama MODEL.gguf|FOLDER [PROMPT] [OPTION...]\n"
  "  FOLDER has model.safetensors, config.json and tokenizer.json.\n"
  "  --device=cuda|sim     default: a GPU if there is one, else the simulator\n"
  "  --tokens=N            at most so many more (default 64)\n"
  "  --context=N           places for tokens (default 2048, or what the model has)\n"
  "  --piece=N             so many tokens of the prompt at a time (default 64, on a GPU 2048)\n"
  "  --temperature=T       0, the default: always the most probable token\n"
  "  --top-k=N --top-p=P   of the N most probable ones (up to 64), those that make up P\n"
  "  --seed=N\n"
  "  --system=TEXT         what a chat begins with (default: what the model's template says)\n"
  "  --raw                 the prompt as it is, no chat\n"
  "  --ids=N,N,...         the prompt as numbers of tokens; numbers come out\n"
  "  --logits=FILE         the last step's logits, as f32\n"
  "  --time                how long it took\n"
  "  --rounds              for measuring: lines \"TOKENS STEPS\" of standard input are answered by the seconds that they take\n"
  "  --wide                on the simulator, the kernels that a GPU gets\n";

typedef enum Kind { KIND_TEXT, KIND_INT32, KIND_INT64, KIND_FLOAT, KIND_FLAG } Kind;
typedef struct Row { const char *name; Kind kind; size_t offset; double least, most; } Row;
#define AT(field) offsetof(Options, field)
static const Row rows[] = {
  {"device", KIND_TEXT, AT(device)}, {"system", KIND_TEXT, AT(system)}, {"logits", KIND_TEXT, AT(logits)}, {"ids", KIND_TEXT, AT(ids)},
  {"tokens", KIND_INT64, AT(tokens), 0, 1 << 20}, {"context", KIND_INT64, AT(context), 1, 1 << 20},
  {"piece", KIND_INT64, AT(piece), 1, 1 << 16},
  {"temperature", KIND_FLOAT, AT(sampling.temperature), 0, 100}, {"top-p", KIND_FLOAT, AT(sampling.top_p), 0, 1},
  {"top-k", KIND_INT32, AT(sampling.top_k), 1, CHOICES}, {"seed", KIND_INT64, AT(sampling.seed), 0, 9e15},
  {"raw", KIND_FLAG, AT(raw)}, {"time", KIND_FLAG, AT(timing)}, {"wide", KIND_FLAG, AT(wide)}, 
  {"rounds", KIND_FLAG, AT(rounds)}, {"help", KIND_FLAG, AT(help)}};

static int
read_number(const Row *row, const char *value, void *to, Fail *fail)
{
  char *end;
  errno = 0;
  double v = strtod(value, &end);
  if (!*value || *end || errno || !(v >= row->least && v <= row->most) || (row->kind != KIND_FLOAT && v != (double)(int64_t)v))
    return fail_with(fail, "--%s=%s: a number from %g to %g is expected", row->name, value, row->least, row->most);
  if (row->kind == KIND_FLOAT)
    *(float *)to = (float)v;
  else if (row->kind == KIND_INT32)
    *(int32_t *)to = (int32_t)v;
  else
    *(int64_t *)to = (int64_t)v;
  return 0;
}

static int
read_option(Options *o, const char *arg, Fail *fail)
{
  size_t n = strcspn(arg, "=");
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    void *to = (char *)o + rows[i].offset;
    if (strlen(rows[i].name) != n || strncmp(rows[i].name, arg, n))
      continue;
    if ((rows[i].kind == KIND_FLAG) != !arg[n])
      return fail_with(fail, "--%s: %s", rows[i].name, arg[n] ? "it takes no value" : "a value is expected, behind =");
    if (rows[i].kind == KIND_FLAG)
      *(bool *)to = true;
    else if (rows[i].kind == KIND_TEXT)
      *(const char **)to = arg + n + 1;
    else
      return read_number(&rows[i], arg + n + 1, to, fail);
    return 0;
  }
  return fail_with(fail, "--%.*s: no such option; --help lists them", (int)n, arg);
}

int
options_read(Options *o, int argc, char **argv, Fail *fail)
{
  *o = (Options){.tokens = 64, .sampling = {.top_p = 1, .top_k = 40}};
  for (int i = 1; i < argc; i++)
    if (!strncmp(argv[i], "--", 2)) {
      if (read_option(o, argv[i] + 2, fail))
        return -1;
    } else if (!o->model) {
      o->model = argv[i];
    } else if (!o->prompt) {
      o->prompt = argv[i];
    } else {
      return fail_with(fail, "%s: a model and a prompt are all", argv[i]);
    }
  if (!o->help && (!o->model || (!o->prompt && !o->ids && !o->rounds)))
    return fail_with(fail, "a model and a prompt are needed; --help says more");
  return 0;
}
