/* facts.h - what an argument is compiled for, as the command line has it. */
#ifndef TILEC_FACTS_H
#define TILEC_FACTS_H
#include "tilec.h"
/* NAME=INTEGER, NAME%INTEGER, NAME=None, NAME!=None, NAME=OTHER. text is cut into what *out points to. 0, or what is wrong, for
 * printf with the text. */
const char *fact_parse(char *text, TilecFact *out);
#endif
