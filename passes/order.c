/* order.c - the passes, in the order in which they run. */
#include "internal.h"

const char *const passes_order[] = {
  /* clean: the frontend writes plainly; everything later sees less */
  "choose_maths", "expand_maps", "older_forms", "plain_tensors", "canon", "cse", "aggregate_atomics", "privatise_atomics", "licm",
  "flatten_loops", "dce", "version_edges", "outline",
  /* boxes, then programs that stay; place: instructions, then layouts, then fewer conversions; merging and dropping what that left */
  "widen_factors", "unpacked_dots", "find_tensors", "walk_grid", "choose_mma", "assign_layout", "fold_convert", "cse", "dce",
  /* overlap: loads of loops with stages become asynchronous copies; what only they needed goes;
   * fragments are loaded a slice ahead, or where registers are short as late as possible */
  "pipeline_loops", "stored_dots", "lower_tensors", "prefetch_slices", "keep_in_shared", "cse", "dce",
  /* schedule: how data moves, where, and what must wait */
  "plan_conversions", "read_again", "hoist_loads", "alloc_shared", "insert_barriers", "load_on_demand", "skip_ones", "check_registers",
  NULL
};
