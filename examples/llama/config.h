/* config.h - the shape of a model, from GGUF's metadata or config.json, and the names of its tensors in either. */
#ifndef LLAMA_CONFIG_H
#define LLAMA_CONFIG_H
#include "gguf.h"
#include "json.h"

typedef struct Config {
  uint64_t layers, dim, hidden, heads, kv_heads, head_dim, context;
  double eps, theta;
  bool neighbours;              /* rotary embedding turns elements 2 i and 2 i + 1 of a head; else i and i + head_dim / 2 */
  struct { double factor, low, high, original; } stretch;     /* Llama 3's longer waves (rope_scaling); a factor of 0: none */
} Config;

/* Both check what they say: extents that fit kernels, whole groups of heads. */
int config_from_gguf(const Gguf *g, Config *out, Fail *fail);
int config_from_json(const Json *j, Config *out, Fail *fail);

typedef enum Role {
  ROLE_EMBEDDING, ROLE_OUT_NORM, ROLE_HEAD, ROLE_FREQUENCIES,
  ROLE_ATTENTION_NORM, ROLE_Q, ROLE_K, ROLE_V, ROLE_O, ROLE_HIDDEN_NORM, ROLE_GATE, ROLE_UP, ROLE_DOWN, ROLE_COUNT
} Role;
/* NULL if the file has none, which only the head and the frequencies may lack. Its name is written in any case. */
const Tensor *role_find(const Tensors *all, bool gguf, Role role, uint64_t layer, char *name, size_t size);
#endif
