#include "config.h"
#include <inttypes.h>
#include <stdio.h>

/* GGUF's names and those of transformers; %llu is the layer. */
static const struct { const char *gguf, *safetensors; } names[ROLE_COUNT] = {
  [ROLE_EMBEDDING] = {"token_embd.weight", "model.embed_tokens.weight"},
  [ROLE_OUT_NORM] = {"output_norm.weight", "model.norm.weight"},
  [ROLE_HEAD] = {"output.weight", "lm_head.weight"},
  [ROLE_FREQUENCIES] = {"rope_freqs.weight", ""},
  [ROLE_ATTENTION_NORM] = {"attn_norm.weight", "input_layernorm.weight"},
  [ROLE_Q] = {"attn_q.weight", "self_attn.q_proj.weight"},
  [ROLE_K] = {"attn_k.weight", "self_attn.k_proj.weight"},
  [ROLE_V] = {"attn_v.weight", "self_attn.v_proj.weight"},
  [ROLE_O] = {"attn_output.weight", "self_attn.o_proj.weight"},
  [ROLE_HIDDEN_NORM] = {"ffn_norm.weight", "post_attention_layernorm.weight"},
  [ROLE_GATE] = {"ffn_gate.weight", "mlp.gate_proj.weight"},
  [ROLE_UP] = {"ffn_up.weight", "mlp.up_proj.weight"},
  [ROLE_DOWN] = {"ffn_down.weight", "mlp.down_proj.weight"}};

const Tensor *
role_find(const Tensors *all, bool gguf, Role role, uint64_t layer, char *name, size_t size)
{
  const char *last = gguf ? names[role].gguf : names[role].safetensors;
  if (role < ROLE_ATTENTION_NORM)
    snprintf(name, size, "%s", last);
  else
    snprintf(name, size, "%s%" PRIu64 ".%s", gguf ? "blk." : "model.layers.", layer, last);
  return tensors_find(all, name);
}

static int
check(const Config *c, Fail *fail)
{
  if (!c->layers || c->layers > 1024 || !c->dim || c->dim > 65536 || !c->hidden || c->hidden > 1 << 20 || !c->context)
    return fail_with(fail, "config: %" PRIu64 " layers of %" PRIu64 ", %" PRIu64 " hidden, context %" PRIu64, c->layers, c->dim, c->hidden, c->context);
  if (c->dim % 32 || c->hidden % 32)
    return fail_with(fail, "config: rows of %" PRIu64 " and %" PRIu64 " have to be multiples of 32", c->dim, c->hidden);
  if (!c->heads || !c->kv_heads || c->heads > 1024 || c->heads % c->kv_heads || c->heads / c->kv_heads > 16)
    return fail_with(fail, "config: %" PRIu64 " heads for %" PRIu64 " of the cache; 1 to 16 share one", c->heads, c->kv_heads);
  if (c->head_dim < 8 || c->head_dim > 256 || c->head_dim % 8 || c->heads * c->head_dim % 32)
    return fail_with(fail, "config: heads of %" PRIu64 "; a multiple of 8 up to 256 is needed, all together one of 32", c->head_dim);
  if (!(c->eps > 0) || !(c->theta > 0))
    return fail_with(fail, "config: eps %g, theta %g", c->eps, c->theta);
  return 0;
}

int
config_from_gguf(const Gguf *g, Config *out, Fail *fail)
{
  const GgufValue *arch = gguf_find(g, "general.architecture");
  if (!arch || arch->is_array || arch->type != GGUF_STRING || !text_is(arch->strings[0], "llama"))
    return fail_with(fail, "metadata general.architecture: llama is what can be run");
  *out = (Config){.neighbours = true};
  if (gguf_integer(g, "llama.block_count", 0, &out->layers, fail) || gguf_integer(g, "llama.embedding_length", 0, &out->dim, fail) ||
      gguf_integer(g, "llama.feed_forward_length", 0, &out->hidden, fail) || gguf_integer(g, "llama.attention.head_count", 0, &out->heads, fail) ||
      gguf_integer(g, "llama.attention.head_count_kv", out->heads, &out->kv_heads, fail) ||
      gguf_integer(g, "llama.rope.dimension_count", out->heads ? out->dim / out->heads : 0, &out->head_dim, fail) ||
      gguf_integer(g, "llama.context_length", 2048, &out->context, fail) ||
      gguf_real(g, "llama.attention.layer_norm_rms_epsilon", 1e-5, &out->eps, fail) ||
      gguf_real(g, "llama.rope.freq_base", 10000, &out->theta, fail))
    return -1;
  return check(out, fail);
}

static int
json_whole(const Json *j, const char *key, uint64_t otherwise, uint64_t *out, Fail *fail)
{
  const Json *m = json_member(j, key);
  *out = otherwise;
  return m && m->kind != JSON_NULL && !json_integer(m, out) ? fail_with(fail, "config.json: %s: a whole number is expected", key) : 0;
}

static int
json_number(const Json *j, const char *key, double otherwise, double *out, Fail *fail)
{
  const Json *m = json_member(j, key);
  *out = otherwise;
  return m && m->kind != JSON_NULL && !json_real(m, out) ? fail_with(fail, "config.json: %s: a number is expected", key) : 0;
}

static int
read_stretch(const Json *j, Config *out, Fail *fail)
{
  const Json *s = json_member(j, "rope_scaling");
  if (!s || s->kind == JSON_NULL)
    return 0;
  const Json *type = json_member(s, "rope_type");
  if (!type || !text_is(type->text, "llama3"))
    return fail_with(fail, "config.json: rope_scaling: llama3 is what can be run");
  return json_number(s, "factor", 8, &out->stretch.factor, fail) || json_number(s, "low_freq_factor", 1, &out->stretch.low, fail) ||
         json_number(s, "high_freq_factor", 4, &out->stretch.high, fail) ||
         json_number(s, "original_max_position_embeddings", 8192, &out->stretch.original, fail) ? -1 : 0;
}

int
config_from_json(const Json *j, Config *out, Fail *fail)
{
  const Json *type = json_member(j, "model_type");
  if (!type || !text_is(type->text, "llama"))
    return fail_with(fail, "config.json: model_type: llama is what can be run");
  *out = (Config){.neighbours = false};
  if (json_whole(j, "num_hidden_layers", 0, &out->layers, fail) || json_whole(j, "hidden_size", 0, &out->dim, fail) ||
      json_whole(j, "intermediate_size", 0, &out->hidden, fail) || json_whole(j, "num_attention_heads", 0, &out->heads, fail) ||
      json_whole(j, "num_key_value_heads", out->heads, &out->kv_heads, fail) ||
      json_whole(j, "head_dim", out->heads ? out->dim / out->heads : 0, &out->head_dim, fail) ||
      json_whole(j, "max_position_embeddings", 2048, &out->context, fail) || json_number(j, "rms_norm_eps", 1e-6, &out->eps, fail) ||
      json_number(j, "rope_theta", 10000, &out->theta, fail) || read_stretch(j, out, fail))
    return -1;
  return check(out, fail);
}
