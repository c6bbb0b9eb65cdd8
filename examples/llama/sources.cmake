# What of kernels.tile is compiled: the forms that weights are held in (weights.h), and heads of up to so many numbers.
set(LLAMA_CONFIGS attend:HEAD=64 attend:HEAD=128 attend:HEAD=256 merge:HEAD=64 merge:HEAD=128 merge:HEAD=256 best_of:K=1 best_of:K=64)
foreach(wide false true)
  list(APPEND LLAMA_CONFIGS matvec_dense:WIDE=${wide})
endforeach()
foreach(form W=u4,GROUP=32,MIN=true W=i8,GROUP=32,MIN=false W=i8,GROUP=16,MIN=false)
  list(APPEND LLAMA_CONFIGS embed_grouped:${form} product_grouped:${form} matvec_grouped:${form} matvec_spans:${form},BN=2 matvec_spans:${form},BN=4)
endforeach()
set(LLAMA_SOURCES common.c tensors.c gguf.c json.c safetensors.c unicode.c words.c tokenizer.c config.c gpu.c weights.c source.c model.c step.c options.c main.c)
