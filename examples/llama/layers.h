/* layers.h - all layers of one token in one launch (layers.tile), where model and device are for that. */
#ifndef LLAMA_LAYERS_H
#define LLAMA_LAYERS_H
#include "step.h"

/* Looks whether they are, and prepares it: s->layers is NULL if not. */
int layers_open(Session *s, Fail *fail);
int layers_launch(const Session *s, TilertError *err);
#endif
