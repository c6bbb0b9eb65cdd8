/* json.h - JSON (RFC 8259), strictly: no comments, no commas too many, UTF-8 in strings is kept as it is. */
#ifndef LLAMA_JSON_H
#define LLAMA_JSON_H
#include "common.h"

typedef enum JsonKind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } JsonKind;
typedef struct Json Json;
/* Members and elements are a list, in the order of the text. */
struct Json {
  JsonKind kind;
  Text key;                     /* of a member of an object */
  Text text;                    /* of a string, without its escapes; of a number, as it is written */
  size_t count;
  Json *first, *next;
};

/* All of the text is one value, or a sentence says where it stops being one. */
int json_read(Memory *memory, const char *text, size_t size, Json **out, Fail *fail);
/* NULL if there is none, or j is no object. */
const Json *json_member(const Json *j, const char *key);
/* A number that is whole and not negative. */
bool json_integer(const Json *j, uint64_t *out);
bool json_real(const Json *j, double *out);
#endif
