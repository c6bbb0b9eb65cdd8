/* tokenizer.h - text to tokens and back. Two kinds:
 *
 * - Byte-level BPE as GPT-2 began it: text to words, words to tokens by merging pairs, the earliest in the list first. Tokens and merges are written
 *   in an alphabet in which every byte is a character that can be seen; decoding goes back.
 * - Pieces, as SentencePiece's BPE has them (pieces.c): the whole text is one word, with U+2581 for spaces; the pair whose result has the highest
 *   score is merged first. Characters that are no pieces become bytes, tokens called <0x00> to <0xFF>. */
#ifndef LLAMA_TOKENIZER_H
#define LLAMA_TOKENIZER_H
#include "gguf.h"
#include "json.h"

/* How text falls into words: GPT-2's expression, the same with every number's digit alone (SmolLM), Llama 3's. */
typedef enum Words { WORDS_GPT2, WORDS_DIGITS, WORDS_LLAMA3 } Words;

/* Of a token: control tokens are never found in text and stand for themselves; added ones are found in it before all others, as they are. */
enum { TOKEN_TEXT, TOKEN_CONTROL, TOKEN_BYTE, TOKEN_ADDED };

typedef struct Slot { uint64_t key; int32_t rank, result; } Slot;
typedef struct Tokenizer {
  Text *pieces;                 /* of each token, in the alphabet, or of a control token as it is */
  uint8_t *kind;
  size_t added_most;            /* bytes of the longest added token; 0: there is none */
  bool added_first[256];        /* with which bytes such begin */
  size_t count;
  int32_t *by_text;             /* open addressing: token + 1 */
  Slot *merges;                 /* open addressing: the pair + 1; NULL: of pieces with scores */
  bool pieced;                  /* of pieces */
  float *scores;                /* of pieces; NULL: by merges */
  bool add_space;               /* in front of a text of pieces */
  size_t text_mask, merge_mask;
  int32_t byte_token[256];
  Words words;
  int32_t begin, end, unknown;  /* tokens in front of a text and behind it, and for what there is none; -1: none */
  bool add_begin;
} Tokenizer;

int tokenizer_from_gguf(Memory *memory, const Gguf *g, Tokenizer *out, Fail *fail);
/* Of tokenizer.json. What ends a text stands in config.json, which may be NULL. */
int tokenizer_from_json(Memory *memory, const Json *j, const Json *config, Tokenizer *out, Fail *fail);

/* Tokens, with room for more. */
typedef struct Tokens { int32_t *at; size_t count, room; } Tokens;
int tokens_add(Tokens *t, int32_t token, Memory *memory, Fail *fail);
/* Control tokens in the text are text like other. */
int tokenizer_encode(const Tokenizer *t, Text text, Tokens *out, Memory *memory, Fail *fail);
/* The token of that name; -1: none. */
int32_t tokenizer_find(const Tokenizer *t, Text name);
/* The bytes of a token, at most size of them; none of a control token. */
size_t tokenizer_decode(const Tokenizer *t, int32_t token, char *out, size_t size);
/* The longest added token that text begins with; -1: none. */
int32_t tokenizer_added(const Tokenizer *t, const char *at, const char *end);
/* tokenizer_encode for pieces. */
int pieces_encode(const Tokenizer *t, Text text, Tokens *out, Memory *memory, Fail *fail);
/* What a pair of tokens becomes by the list of merges; NULL: nothing. */
const Slot *tokenizer_merge(const Tokenizer *t, int32_t left, int32_t right);
/* The length of the word that text begins with; 0 at the end. */
size_t word_length(Words words, const char *at, const char *end);
#endif
