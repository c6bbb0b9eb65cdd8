/* safetensors.h - the safetensors container: eight bytes of a length, so much JSON that lists tensors, their bytes. */
#ifndef LLAMA_SAFETENSORS_H
#define LLAMA_SAFETENSORS_H
#include "tensors.h"

/* Whatever the bytes are: a file, or a sentence that says what is wrong with it. What is found points into the bytes. */
int safetensors_read(Memory *memory, const uint8_t *bytes, size_t size, Tensors *out, Fail *fail);
#endif
