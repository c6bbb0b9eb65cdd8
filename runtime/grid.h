/* grid.h - how many programs a kernel is launched with, as its `grid` clause says: an expression for each axis of the grid, of the launch's
 * integer arguments, of the extents of its tensors and of its device. Integers are exact: what does not fit 64 bits is an error.
 *
 * Text: up to three expressions, ';' between them, each a list of terms, ',' between them, in the order in which a stack takes them:
 *   63          a number                      $2, $0.1       argument 2; extent 1 of tensor argument 0
 *   sm          multiprocessors of the device that the launch is for
 *   + - * / %   of the two below it           cdiv min max   likewise; / and % round to zero, cdiv up
 *   < <= == != & | ^ << >>                    likewise; 1 where a comparison holds
 *   ?           c, a, b, ? is a where c is not 0, else b
 * so that "$2,63,+,64,/;4" is ((argument 2 + 63) / 64, 4). */
#ifndef TILERT_GRID_H
#define TILERT_GRID_H
#include "manifest.h"

enum { GRID_TERMS = 96, GRID_DEEP = 16 };

typedef enum GridOp {
  GRID_NUMBER, GRID_ARG, GRID_EXTENT, GRID_MULTIPROCESSORS,
  GRID_ADD, GRID_SUB, GRID_MUL, GRID_DIV, GRID_REM, GRID_CDIV, GRID_MIN, GRID_MAX, GRID_LT, GRID_LE, GRID_EQ, GRID_NE, GRID_AND, GRID_OR,
  GRID_XOR, GRID_SHL, GRID_SHR, GRID_SELECT,
  GRID_OPS
} GridOp;

/* dim: of an extent. value: of a number, or which argument; of others 0. */
typedef struct GridTerm { uint8_t op, dim; int64_t value; } GridTerm;
/* axes 0: there is no expression. Axis i's terms end at end[i]. */
typedef struct GridExpr { uint32_t axes, end[3]; GridTerm term[GRID_TERMS]; } GridExpr;

/* How text has an operator; NULL for the first three. */
const char *grid_op_text(GridOp op);
/* What is wrong with the text; NULL: nothing, and *out is what it says. */
const char *grid_parse(const char *text, GridExpr *out);

/* What the launch knows: an argument that is an integer, extent dim of a tensor, the device's multiprocessors. */
typedef int64_t GridValue(const void *user, const GridTerm *t);
/* The axes' values, 1 for those without an expression. What is wrong, with *axis; NULL: nothing. */
const char *grid_eval(const GridExpr *e, GridValue *value, const void *user, int64_t out[3], uint32_t *axis);
#endif
