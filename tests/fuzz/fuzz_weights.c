/* fuzz_weights.c - any bytes as a file of weights, GGUF or safetensors, or of JSON beside them: a tokenizer, a configuration. What is accepted
 * can be read, all of it, and a tokenizer takes any text, and any template of a chat. */
#include "config.h"
#include "frames.h"
#include "safetensors.h"
#include "target.h"
#include "tokenizer.h"

static unsigned
touch(const Tensors *all)
{
  unsigned sum = 0;
  for (size_t i = 0; i < all->count; i++) {
    if (tensors_find(all, "w") == &all->at[i])
      sum++;
    sum += all->at[i].data[0] + (unsigned)all->at[i].data[all->at[i].size - 1];
  }
  return sum;
}

static unsigned
touch_values(const Gguf *g)
{
  Fail fail;
  uint64_t n;
  double d;
  unsigned sum = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    const GgufValue *v = &g->values[i];
    for (uint64_t k = 0; k < v->count; k++)
      sum += v->type == GGUF_STRING ? (unsigned)v->strings[k].len : (unsigned)gguf_element(v, k);
  }
  return sum + (unsigned)gguf_integer(g, "layers", 0, &n, &fail) + (unsigned)gguf_real(g, "eps", 0, &d, &fail);
}

static void
use_tokenizer(const Tokenizer *t, const uint8_t *data, size_t size, Memory *memory, Fail *fail)
{
  Tokens tokens = {0};
  char bytes[64];
  if (!tokenizer_encode(t, (Text){(const char *)data, size}, &tokens, memory, fail))
    for (size_t i = 0; i < tokens.count; i++)
      tokenizer_decode(t, tokens.at[i], bytes, sizeof bytes);
  frames_encode(t, (Text){(const char *)data, size}, NULL, "what is asked", &tokens, memory, fail);
}

static void
use_gguf(const Gguf *g, const uint8_t *data, size_t size, Memory *memory, Fail *fail)
{
  Config config;
  Tokenizer t;
  touch_values(g);
  config_from_gguf(g, &config, fail);
  if (!tokenizer_from_gguf(memory, g, &t, fail))
    use_tokenizer(&t, data, size, memory, fail);
}

static int
use_json(const uint8_t *data, size_t size, Memory *memory, Fail *fail)
{
  Json *j;
  Config config;
  Tokenizer t;
  if (json_read(memory, (const char *)data, size, &j, fail))
    return -1;
  config_from_json(j, &config, fail);
  if (!tokenizer_from_json(memory, j, j, &t, fail))
    use_tokenizer(&t, data, size, memory, fail);
  return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  Memory memory = {0};
  Fail fail = {{0}};
  Gguf g = {0};
  Tensors tensors = {0};
  int status;
  if (gguf_looks_so(data, size)) {
    status = gguf_read(&memory, data, size, &g, &fail);
    if (!status)
      use_gguf(&g, data, size, &memory, &fail);
    tensors = g.tensors;
  } else if (size && data[0] == '{') {
    status = use_json(data, size, &memory, &fail);
  } else {
    status = safetensors_read(&memory, data, size, &tensors, &fail);
  }
  if (!status)
    touch(&tensors);
  else if (!*fail.message)
    fault("refused without a word", "");
  memory_free(&memory);
  return 0;
}
