#include "internal.h"
void pass_fold_convert(Ctx *c, Module *m) {}
