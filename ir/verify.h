/* verify.h - what the parts of the verifier share; private to verify*.c. */
#ifndef TILEC_IR_VERIFY_H
#define TILEC_IR_VERIFY_H
#include "ir.h"

typedef struct Verifier {
  Ctx *ctx;
  Module *module;
  Func *func;
  Phase phase;
  u8 *visible;               /* by value id: may be used here */
  bool ok;
} Verifier;

/* Reports "op 'name': ..." at the op; always false. */
bool verify_fail(Verifier *v, const Op *op, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* The layout, if any, is one for this shape: rank and padded extents agree. */
bool verify_layout_fits(const Type *t);
/* "f32[64]", with the layout's text behind it when with_layout; in scratch. */
const char *verify_type_str(Verifier *v, const Type *t, bool with_layout);
/* a and b are one type, else "<what> have types ..." (or layouts). */
bool verify_same(Verifier *v, const Op *op, const char *what, const Type *a, const Type *b);

/* Types of an op's operand and result, and how messages spell one. */
static inline const Type *in_type(const Op *op, u32 i) { return op->operands[i].value->type; }
#define IN_TYPE(op, id, name) in_type(op, SLOT(id, name))
static inline const Type *out_type(const Op *op) { return op_result(op)->type; }
static inline const char *spell(Verifier *v, const Type *t) { return type_str(v->ctx, t); }

/* verify_team.c: where a warp_specialize stands, and its numbers: before its regions are looked at. */
bool verify_teams(Verifier *v, const Op *op);
/* verify_attrs.c: attributes that the row demands are there, none is foreign, every value is in its range. */
bool verify_attrs(Verifier *v, const Op *op);
/* verify_ops.c: the row's RULE, or check_<ID> of a CUSTOM row. Operands are present and counts right. */
/* verify_shared.c: buffers are operands only where ops.def says what is done to them. */
bool verify_no_buffers(Verifier *v, const Op *op);
/* verify_wgmma.c: accumulators under way are operands only where they may be. */
bool verify_pending(Verifier *v, const Op *op);
/* verify_cluster.c: buffers of other programs are operands only where they may be. */
bool verify_remote(Verifier *v, const Op *op);
bool verify_op_rule(Verifier *v, const Op *op);

#define OP(id, name, operands, results, attrs, regions, rule, traits, doc) bool check_##id(Verifier *v, const Op *op);
#include "ops.def"
#undef OP
#endif
