/* decode.h - what the files that read PTX share: tokens, symbols, operands and the decoder itself.
 * Errors are sticky: decode_fail keeps the first one, d->failed ends every loop, and functions that
 * return an offset return 0 after it. */
#ifndef TILERT_SIM_DECODE_H
#define TILERT_SIM_DECODE_H
#include "internal.h"
#include "names.h"

typedef enum TokKind { TK_END, TK_IDENT, TK_INT, TK_FLOAT, TK_STRING, TK_PUNCT } TokKind;
typedef struct Tok {
  uint8_t kind, fbits;       /* fbits: 32 or 64 for 0f and 0d forms, 0 for decimal floats (v: f64 bits) */
  char punct;
  uint32_t line, n;
  const char *s;
  uint64_t v;
} Tok;
/* A comment that says of a register what index it is; see decode_note.c. at: the token that it stands before; text: what
 * follows its first word. */
typedef struct Note { size_t at; const char *text; uint32_t n, line; } Note;
typedef struct Tokens { Tok *tok; size_t n, cap; Note *note; size_t nnotes, note_cap; } Tokens;
/* The tokens of a text, ended by TK_END, and its notes; both malloc'd. */
int ptx_scan(const char *text, size_t len, Tokens *out, SimError *err);
bool ptx_tok_is(const Tok *t, const char *text);
/* The type that a word names, with its dot; T_NONE if none. */
Type ptx_type_named(const Tok *t);

typedef struct FuncParam { Name name; uint32_t size, align; bool is_reg, pointer, array; uint8_t type; } FuncParam;
struct Func {
  Name name;
  uint32_t index;                      /* in SimModule.units */
  bool entry, has_body;
  size_t body, body_end;               /* tokens after '{', at the matching '}' */
  FuncParam *param, *ret; size_t nparam, param_cap, nret, ret_cap;
  uint32_t reqntid[3], maxntid[3], reqcluster[3], maxnreg, minctas, maxcluster;
  bool explicit_cluster, blocks_are_clusters;
};

enum { MAX_UNKNOWN = 10 };
/* A form that the machine does not have, where it stands first, and how often. */
typedef struct Unknown { Name text; uint32_t line, count; } Unknown;

/* Of a .global or .const variable: its symbol, and the token where its value begins; 0: none. */
typedef struct InitialValue { size_t sym, value; Type type; } InitialValue;

typedef struct Reader {
  SimModule *mod;
  SimError *err;
  Tok *tok; size_t ntok, pos;
  Note *note; size_t nnotes;
  Names names;                         /* module scope */
  Func **func; size_t nfunc, func_cap;
  Func **prototype; size_t nprototype, prototype_cap;
  InitialValue *value; size_t value_cap;          /* beside SimModule.global */
  uint64_t global_bytes;
  Unknown unknown[MAX_UNKNOWN]; uint32_t nunknown, more_unknown;
  Names strings;                       /* labels of .debug_str: where in bytes */
  bool failed;
} Reader;

typedef enum OpndKind { O_NONE, O_REG, O_IMM, O_ADDR, O_VEC, O_MEM, O_SINK, O_NAME } OpndKind;
typedef struct Opnd {
  uint8_t kind, type, fbits, space, width;
  bool neg, has_base;                  /* neg: !p */
  uint32_t slot, pipe, first, n;       /* pipe: slot + 1 of q in p|q; first, n: O_VEC in d->elem */
  uint32_t shared, var;                /* O_ADDR, O_MEM: as in Sym */
  uint64_t imm;                        /* O_IMM, O_ADDR; O_MEM: offset */
  const Tok *tok;
} Opnd;

/* What a result is made of; see origin.c. */
typedef enum FlowKind { FLOW_NUMBER, FLOW_VAR, FLOW_COPY, FLOW_CHOICE, FLOW_SUM, FLOW_DIFFERENCE } FlowKind;
typedef struct Flow { uint32_t to, a, b; FlowKind kind; } Flow;
#define CONST_BIT (1u << 31)           /* of a slot, while a function is decoded: a constant's */

typedef struct Fixup { const char *s; uint32_t n, line, insn, brx; } Fixup;
enum { MAX_OPNDS = 12, MAX_ELEMS = 160, MAX_MODS = 16, NO_GUARD = 0 };

typedef struct Decoder {
  Reader *r;
  Unit *u;
  size_t pos, note;
  bool failed, unknown;                /* unknown: the statement being read is */
  size_t code_cap, loc_cap;
  size_t list_cap, brx_cap, call_cap, var_cap, place_cap;
  size_t const_cap, special_cap, width_cap;
  Chains const_chains, place_chains;            /* of the unit's constants and places */
  uint32_t const_bytes;
  Names names;                                  /* of this function, innermost last */
  Names labels;
  Fixup *fixup; size_t nfixup, fixup_cap;
  Flow *flow; size_t nflow, flow_cap;
  uint32_t frame_top, carry, registers;
  Loc here;
  /* the statement being read */
  const Tok *op_tok;
  uint16_t mod[MAX_MODS]; uint32_t nmod;        /* ModId, or M_COUNT + Type; 0 once taken */
  Opnd op[MAX_OPNDS]; uint32_t nop;
  Opnd elem[MAX_ELEMS]; uint32_t nelem;
  uint32_t shape_n, shape_k;                    /* of a word m64n.k. */
  uint32_t guard; bool guard_not;
  Order order; Scope scope; bool scoped;        /* scoped: the statement says which */
} Decoder;

/* reader.c: r has mod and err; an error makes it failed, and the first is the one that is said. */
void reader_read(Reader *r, const char *text, size_t len);
void reader_free(Reader *r);
void reader_fail(Reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void reader_no_memory(Reader *r);
const Tok *reader_peek(const Reader *r);
const Tok *reader_next(Reader *r);
bool reader_accept(Reader *r, char punct);
bool reader_accept_word(Reader *r, const char *word);
void reader_expect(Reader *r, char punct);
/* A whole number, without a sign. */
uint64_t reader_number(Reader *r);
/* decode.c */
void decode_fail(Decoder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void decode_no_memory(Decoder *d);
/* The statement is a form that the machine does not have: note it, and go on behind it. */
void decode_unknown(Decoder *d);
const Tok *decode_peek(Decoder *d);
bool decode_accept(Decoder *d, char punct);
void decode_expect(Decoder *d, char punct);
/* A whole number, without a sign. */
uint64_t decode_number(Decoder *d);
void decode_body(Decoder *d, const Func *f);
Sym *decode_lookup(Decoder *d, const char *s, uint32_t n);
Sym *decode_declare(Decoder *d, const Tok *name, SymKind kind);
/* Shared memory that the system keeps for libraries, which a special register has the address of: a variable of the module. */
Sym *decode_reserved(Decoder *d, const Tok *t);
void decode_fixup(Decoder *d, const Tok *label, uint32_t insn, uint32_t brx);
/* decode_place.c: .loc; sets d->here.place. */
void decode_loc(Decoder *d);
/* decode_note.c: the first note of a function's body; those before the next token become checks. */
size_t note_first(const Reader *r, size_t body);
void decode_notes(Decoder *d);
/* decode_call.c: where parameters lie in a frame, and how many bytes they take; false when out of memory. */
bool signature_of(const Func *f, Signature *out, uint32_t *bytes);
void signature_free(Signature *s);
void decode_prototype(Decoder *d, const Tok *name);
/* reader.c: the .callprototype at *pos, which moves behind it; the reader's. NULL with the reader failed. */
Func *module_prototype(Reader *r, size_t *pos);
/* origin.c: a register gets a value, of which nothing is known; the one just defined is made of a and b; a slot holds a variable's
 * address; afterwards, each address gets the variable that it is in. */
void flow_define(Decoder *d, uint32_t slot);
void flow_is(Decoder *d, uint32_t slot, FlowKind kind, uint32_t a, uint32_t b);
void flow_var(Decoder *d, uint32_t slot, uint32_t var);
void flow_solve(Decoder *d);
/* hollow.c: loads whose values are only stored again are marked so. */
void hollow_find(Decoder *d);
/* operands.c */
/* Whether a word is a register; then *o is it. */
bool opnd_register(Decoder *d, const Tok *t, Opnd *o);
void opnd_list(Decoder *d);
uint32_t slot_new(Decoder *d, int width);
/* shared: of SimModule.shared + 1, for an address; else 0 */
uint32_t slot_const(Decoder *d, int width, uint64_t value, uint32_t shared);
uint32_t slot_special(Decoder *d, SpecialId id, int width);
int opnd_width(Type t);
/* The slot of a source of a width in bytes (0: predicate); float immediates are rounded to type t. */
uint32_t opnd_src(Decoder *d, const Opnd *o, Type t);
uint32_t opnd_dst(Decoder *d, const Opnd *o, int width);
/* The register or constant that [base+offset] starts from, and the rest of the address. */
uint32_t opnd_address(Decoder *d, const Opnd *m, Space space, Address *at);
Insn *insn_emit(Decoder *d, Kind kind, uint32_t nslot);
/* An instruction of K_WARP or K_CONV. */
Insn *insn_warp(Decoder *d, Kind kind, WarpFn *fn, uint32_t nslot);
/* NULL after an error, else the instruction. */
Insn *insn_alu(Decoder *d, AluOp op, int var, Type t, int width, uint32_t dst, uint32_t a, uint32_t b, uint32_t c);
void insn_pred(Decoder *d, char op, uint32_t dst, uint32_t a, uint32_t b);
/* Append a register to the list of the instruction emitted last. */
void insn_list(Decoder *d, uint32_t slot);
/* The type of plain bits of a width in bytes. */
Type opnd_bits(int width);
/* decode_ops.c: modifiers and counts */
ModId opmod_take_range(Decoder *d, ModId first, ModId last);
ModId opmod_rounding(Decoder *d);
Type decode_type(Decoder *d);
void decode_operands(Decoder *d, uint32_t min, uint32_t max);
/* The first operand: how many groups may stay in flight. */
uint32_t decode_groups(Decoder *d);
bool opmod_take(Decoder *d, ModId m);
Type opmod_type(Decoder *d);
Space opmod_space(Decoder *d);
/* A multiple of align, which is a power of two. */
static inline uint32_t
align_up(uint32_t v, uint32_t align)
{
  return (v + align - 1) & ~(align - 1);
}
/* every opcode's decoder */
typedef void DecodeFn(Decoder *d, int arg);
#define PTX(text, decoder, arg) DecodeFn decode_##decoder;
#include "ptx.def"
void decode_statement(Decoder *d);
/* decode_bulk.c: what follows cp.async.bulk and cp.reduce.async.bulk. */
void decode_bulk(Decoder *d);
void decode_map_fence(Decoder *d);
#endif
