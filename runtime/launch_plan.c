/* launch_plan.c - plans of launches, when kernels are loaded (launch_plan.h). */
#include "device.h"
#include "dtype.h"

static int
is_power(uint64_t v)
{
  return v && !(v & (v - 1));
}

int
step_only(PackStep *s, uint64_t least, uint64_t span)
{
  if (s->given == STEP_NEVER || s->given == TILERT_ARG_FLOAT || least - s->least > s->span)
    return 0;
  const uint64_t room = s->span - (least - s->least);    /* of integers with signs, least may be below 0 */
  s->least = least;
  s->span = span < room ? span : room;
  return 1;
}

int
step_multiples(PackStep *s, uint64_t of)
{
  if (s->given == STEP_NEVER || s->given == TILERT_ARG_FLOAT || !is_power(of) || of - 1 > UINT32_MAX)
    return 0;
  s->mask |= (uint32_t)(of - 1);
  return 1;
}

/* A device that looks at addresses does it in pack_arg. */
static int
plan_pointer(const TilertKernel *k, const TilertParam *p, PackStep *s)
{
  if (k->device->ops->check_pointer)
    return 0;
  s->given = TILERT_ARG_POINTER;
  s->span = UINT64_MAX;
  if (p->null == TILERT_NULL_ALWAYS)
    s->span = 0;
  else if (p->null != TILERT_NULL_ANY)
    step_only(s, 1, UINT64_MAX - 1);
  return step_multiples(s, p->divisible);
}

static int
plan_integer(const TilertParam *p, const DtypeInfo *d, PackStep *s)
{
  s->given = TILERT_ARG_INT;
  s->span = d->kind == KIND_BOOL ? 1 : UINT64_MAX >> (64 - d->bits);
  if (d->kind == KIND_SIGNED && p->nonneg)
    s->span >>= 1;
  else if (d->kind == KIND_SIGNED)
    s->least = -(UINT64_C(1) << (d->bits - 1));
  return step_multiples(s, p->divisible);
}

static int
plan_float(Dtype t, PackStep *s)
{
  s->given = TILERT_ARG_FLOAT;
  s->span = UINT64_MAX;
  s->size = t == DTYPE_F32 ? STEP_F32 : s->size;
  return t == DTYPE_F32 || t == DTYPE_F64;
}

static int
plan_arg(const TilertKernel *k, uint32_t param, PackStep *s)
{
  const TilertParam *p = &k->manifest.params[param];
  const Dtype t = (Dtype)k->dtype[param];
  const DtypeInfo *d = rt_dtype_info(t);
  *s = (PackStep){.size = (uint8_t)p->size, .offset = (uint16_t)k->offset[param]};
  if (p->kind == TILERT_PARAM_POINTER)
    return plan_pointer(k, p, s);
  if (p->kind != TILERT_PARAM_SCALAR || t == DTYPE_NONE)
    return 0;
  return d->kind == KIND_FLOAT ? plan_float(t, s) : plan_integer(p, d, s);
}

/* ---- the grid ---- */

/* The axis whose terms are these. */
static int
plan_axis(const TilertKernel *k, const GridTerm *t, uint32_t n, uint32_t most, GridStep *s)
{
  const int arg = t->op == GRID_ARG && t->value < TILERT_MAX_PARAMS;
  *s = (GridStep){.is_arg = (uint8_t)arg, .arg = arg ? (uint8_t)t->value : 0};
  if (n == 1 && arg)
    return 1;
  if (n == 3 && arg && t[1].op == GRID_NUMBER && t[2].op == GRID_CDIV && t[1].value > 0 && t[1].value <= INT32_MAX &&
      is_power((uint64_t)t[1].value)) {
    s->shift = (uint8_t)__builtin_ctzll((uint64_t)t[1].value);
    return 1;
  }
  const int64_t number = t->op == GRID_MULTIPROCESSORS ? (int64_t)k->device->info.multiprocessors : t->value;
  s->number = (uint32_t)number;
  return n == 1 && (t->op == GRID_NUMBER || t->op == GRID_MULTIPROCESSORS) && number >= 0 && number <= most;
}

static int
plan_grid(const TilertKernel *k, GridStep axis[3])
{
  uint32_t at = 0;
  int known = k->grid.axes && !k->manifest.persistent;
  for (uint32_t i = 0; i < 3; i++)
    axis[i] = (GridStep){.number = 1};
  for (uint32_t i = 0; known && i < k->grid.axes; at = k->grid.end[i++])
    known = plan_axis(k, &k->grid.term[at], k->grid.end[i] - at, k->device->info.grid_max[i], &axis[i]);
  return known;
}

/* ---- pairs ---- */

static int
add_pair(const TilertKernel *k, uint32_t i, uint32_t j, LaunchPlan *plan)
{
  const TilertParam *p = k->manifest.params;
  if (p[i].kind != TILERT_PARAM_POINTER || p[j].kind != TILERT_PARAM_POINTER || plan->npairs == PLAN_PAIRS)
    return 0;
  plan->between[plan->npairs][0] = (uint8_t)i;
  plan->between[plan->npairs][1] = (uint8_t)j;
  plan->pair[plan->npairs][0] = (uint16_t)k->offset[i];
  plan->pair[plan->npairs++][1] = (uint16_t)k->offset[j];
  return 1;
}

static int
plan_pairs(const TilertKernel *k, LaunchPlan *plan)
{
  int all = 1;
  for (uint32_t i = 0; i < k->manifest.nparams; i++)
    for (uint64_t left = k->manifest.apart[i]; all && left; left &= left - 1)
      all = add_pair(k, i, (uint32_t)__builtin_ctzll(left), plan);
  return all;
}

void
launch_plan(TilertKernel *k)
{
  const TilertManifest *m = &k->manifest;
  LaunchPlan *plan = &k->plan;
  const int shaped = m->block[0] != 0;
  memset(plan, 0, sizeof *plan);
  for (int i = 0; i < 3; i++)
    plan->block[i] = shaped ? m->block[i] : i ? 1 : 32 * m->warps;
  plan->shared = m->shared;
  plan->plain = m->nparams == k->nargs;
  plan->persistent = m->persistent != 0;
  plan->clustered = m->cluster[0] != 0;
  for (uint32_t i = 0; i < k->nargs; i++)
    if (!plan_arg(k, k->first[i], &plan->step[i])) {
      plan->step[i].given = STEP_NEVER;
      plan->never |= UINT64_C(1) << i;
    }
  plan->knows_grid = plan->fixed_grid = (uint8_t)plan_grid(k, plan->axis);
  for (int i = 0; i < 3; i++)
    plan->fixed_grid &= !plan->axis[i].is_arg;
  plan->all_pairs = (uint8_t)(!m->napart || plan_pairs(k, plan));
  plan->fits_all = 1;
  for (uint32_t i = 0; i < m->nparams; i++) {
    plan->views |= m->params[i].kind == TILERT_PARAM_VIEW;
    plan->fits_all &= m->params[i].kind != TILERT_PARAM_VIEW && m->params[i].kind != TILERT_PARAM_TENSOR && !m->params[i].nonneg;
  }
  plan->direct = k->device->ops->launch_direct && plan->plain && !plan->never && plan->all_pairs && !plan->persistent && !plan->clustered;
}
