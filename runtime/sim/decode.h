/* decode.h - what the files that read PTX share: tokens, symbols, operands and the decoder itself.
 * Errors are sticky: decode_fail keeps the first one, d->failed ends every loop, and functions that
 * return an offset return 0 after it. */
#ifndef TILERT_SIM_DECODE_H
#define TILERT_SIM_DECODE_H
#include "internal.h"

typedef enum TokKind { TK_END, TK_IDENT, TK_INT, TK_FLOAT, TK_STRING, TK_PUNCT } TokKind;
typedef struct Tok {
  uint8_t kind, fbits;       /* fbits: 32 or 64 for 0f and 0d forms, 0 for decimal floats (v: f64 bits) */
  char punct;
  uint32_t line, n;
  const char *s;
  uint64_t v;
} Tok;
/* The tokens of a text, ended by TK_END; *out is malloc'd. */
int ptx_scan(const char *text, size_t len, Tok **out, size_t *count, SimError *err);
bool ptx_tok_is(const Tok *t, const char *text);

typedef enum SymKind { SYM_VAR, SYM_REG, SYM_RANGE, SYM_FUNC, SYM_TARGETS } SymKind;
typedef struct Func Func;
typedef struct Sym {
  const char *s; uint32_t n, hash;
  uint8_t kind, type, space;
  bool dynamic;                        /* .extern .shared: placed after the static variables */
  uint32_t size, align, count;
  uint64_t addr;                       /* SYM_VAR: address or offset; SYM_REG: slot; SYM_TARGETS: token */
  uint32_t *slots;                     /* SYM_RANGE: by number, 0: not used yet */
  Func *func;
} Sym;

typedef struct FuncParam { const char *s; uint32_t n, size, align; bool is_reg; uint8_t type; } FuncParam;
struct Func {
  const char *s; uint32_t n, line;
  bool entry, has_body;
  size_t body, body_end;               /* tokens after '{', at the matching '}' */
  FuncParam *param, *ret; size_t nparam, param_cap, nret, ret_cap;
  uint32_t reqntid[3], maxntid[3];
};

typedef struct Reader {
  SimModule *mod;
  SimError *err;
  Tok *tok; size_t ntok, pos;
  Sym *sym; size_t nsym, sym_cap;      /* module scope */
  Func **func; size_t nfunc, func_cap;
  bool failed;
} Reader;

typedef enum OpndKind { O_NONE, O_REG, O_IMM, O_ADDR, O_VEC, O_MEM, O_SINK, O_NAME } OpndKind;
typedef struct Opnd {
  uint8_t kind, type, fbits, space, width;
  bool neg, dynamic, has_base;         /* neg: !p */
  uint32_t slot, pipe, first, n;       /* pipe: slot + 1 of q in p|q; first, n: O_VEC in d->elem */
  uint64_t imm;                        /* O_IMM, O_ADDR; O_MEM: offset */
  const Tok *tok;
} Opnd;

typedef struct Label { const char *s; uint32_t n, hash, pc; } Label;
typedef struct Fixup { const char *s; uint32_t n, hash, line, insn, brx; } Fixup;
enum { MAX_OPNDS = 12, MAX_ELEMS = 64, MAX_MODS = 16, NO_GUARD = 0 };

typedef struct Decoder {
  Reader *r;
  Kernel *k;
  size_t pos;
  bool failed;
  Insn *code; Loc *loc; size_t ncode, code_cap, loc_cap;
  uint32_t *ext; size_t next, ext_cap;
  uint32_t *brx; size_t nbrx, brx_cap;
  ConstSlot *consts; size_t nconsts, const_cap;
  uint32_t *const_next; size_t const_next_cap;
  uint32_t const_head[256];
  SpecialSlot *specials; size_t nspecials, special_cap;
  uint32_t const_bytes;
  Sym *sym; size_t nsym, sym_cap, sym_base;
  Label *label; size_t nlabel, label_cap, label_base;
  Fixup *fixup; size_t nfixup, fixup_cap, fixup_base;
  uint64_t *shared_at; size_t shared_cap;       /* by module symbol: offset + 1 */
  const Func *stack[32]; uint32_t depth;
  uint32_t local_top, carry;
  Loc here;
  /* the statement being read */
  const Tok *op_tok;
  uint16_t mod[MAX_MODS]; uint32_t nmod;        /* ModId, or M_COUNT + Type; 0 once taken */
  Opnd op[MAX_OPNDS]; uint32_t nop;
  Opnd elem[MAX_ELEMS]; uint32_t nelem;
  uint32_t guard; bool guard_not, strong;
} Decoder;

/* decode.c */
void decode_fail(Decoder *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const Tok *decode_peek(Decoder *d);
bool decode_accept(Decoder *d, char punct);
void decode_expect(Decoder *d, char punct);
void decode_body(Decoder *d, const Func *f);
Sym *decode_lookup(Decoder *d, const char *s, uint32_t n);
Sym *decode_declare(Decoder *d, const Tok *name, SymKind kind);
void decode_fixup(Decoder *d, const Tok *label, uint32_t insn, uint32_t brx);
uint32_t ptx_hash(const char *s, uint32_t n);
/* operands.c */
/* Whether a word is a register; then *o is it. */
bool opnd_register(Decoder *d, const Tok *t, Opnd *o);
void opnd_list(Decoder *d);
uint32_t slot_new(Decoder *d, int width);
uint32_t slot_const(Decoder *d, int width, uint64_t value, bool dynamic);
uint32_t slot_special(Decoder *d, SpecialId id, int width);
int opnd_width(Type t);
/* The slot of a source of a width in bytes (0: predicate); float immediates are rounded to type t. */
uint32_t opnd_src(Decoder *d, const Opnd *o, Type t);
uint32_t opnd_dst(Decoder *d, const Opnd *o, int width);
Insn *insn_emit(Decoder *d, Kind kind);
void insn_alu(Decoder *d, AluOp op, int var, Type t, int dw, uint32_t dst, uint32_t a, uint32_t b, uint32_t c);
void insn_pred(Decoder *d, char op, uint32_t dst, uint32_t a, uint32_t b);
void insn_ext(Decoder *d, uint32_t value);
/* The type of plain bits of a width in bytes. */
Type opnd_bits(int width);
/* decode_ops.c: modifiers and counts */
ModId opmod_take_range(Decoder *d, ModId first, ModId last);
ModId opmod_rounding(Decoder *d);
Type decode_type(Decoder *d);
void decode_operands(Decoder *d, uint32_t min, uint32_t max);
bool opmod_take(Decoder *d, ModId m);
Type opmod_type(Decoder *d);
Space opmod_space(Decoder *d);
/* decode_mem.c: the register or constant that [base+offset] starts from, and how an instruction uses it. */
uint32_t opnd_address(Decoder *d, const Opnd *m);
void insn_address(Insn *in, const Opnd *m, uint32_t slot);
/* every opcode's decoder */
typedef void DecodeFn(Decoder *d, int arg);
#define PTX(text, decoder, arg) DecodeFn decode_##decoder;
#include "ptx.def"
void decode_statement(Decoder *d);
#endif
