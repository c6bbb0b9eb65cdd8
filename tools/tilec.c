/* tilec.c - the command line of the compiler. Everything it does goes through tilec.h. */
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "aot.h"
#include "cubin.h"
#include "facts.h"
#include "textfile.h"
#include "tilec.h"

enum { EXIT_OK = 0, EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_MEMORY = 3, MAX_LIST = 256, EMIT_CUBIN = 100, EMIT_C };

static const struct { const char *name; int emit; } stages[] = {
  {"ast", TILEC_EMIT_AST},   {"tile", TILEC_EMIT_TILE}, {"placed", TILEC_EMIT_PLACED}, {"sched", TILEC_EMIT_SCHED},
  {"llvm", TILEC_EMIT_LLVM}, {"ptx", TILEC_EMIT_PTX},   {"cubin", EMIT_CUBIN}, {"c", EMIT_C},
};

typedef struct Cli {
  TilecOptions o;
  int emit;
  bool describe, search;
  AotOptions aot;
  const char *file, *output, *print_layout, *choices, *depfile;
  TilecDefine defines[MAX_LIST];
  TilecFact facts[MAX_LIST];
  const char *import_path[MAX_LIST];
} Cli;

static const char help[] =
  "usage: tilec FILE.tile|FILE.tir|FILE.ll [options]  compile tile kernels to PTX\n"
  "\n"
  "  -o OUT                 write here instead of standard output ('-')\n"
  "  --emit=STAGE           ast, tile, placed, sched, llvm, ptx (default), cubin (needs ptxas) or c\n"
  "  --target=NAME          sm_80, sm_89, sm_90a (default), ...; --print-targets lists them\n"
  "  -D NAME=VALUE          set a const or type parameter\n"
  "  --assume=NAME=VALUE    compile for this value of an integer argument\n"
  "  --assume=NAME%N        compile for arguments (addresses, integers) divisible by N\n"
  "  --assume=NAME=None     compile for a pointer that is null; NAME!=None: that is not\n"
  "  --assume=NAME=OTHER    compile for two pointers that are one address\n"
  "  --kernel=NAME          compile only this kernel\n"
  "  -o NAME.c --emit=c     a C source and NAME.h beside it, with a function for each kernel; and for this:\n"
  "  --target=A,B           several targets\n"
  "  --config=[KERNEL:]NAME=VALUE,...   a function with these const and type parameters; more of them, more functions\n"
  "  --config=tune          a function for each configuration of the kernels' tune clauses\n"
  "  --choices=FILE         what tuning chose (tilerun --tune --choices=FILE): launches take it where it is for their arguments\n"
  "  --form=FACT,...        code for arguments of which these facts hold (as of --assume), beside that for all others\n"
  "  --form=none            no code but that for all arguments: less to compile\n"
  "  --prefix=NAME          in front of the functions' names\n"
  "  --jobs=N               compile so many functions at a time; as many as there are processors\n"
  "  --cubin                put in what ptxas makes, too\n"
  "  --standalone           a source that needs nothing but libcuda.so.1 when it runs\n"
  "  --describe             list the kernels, their parameters and configurations, as a launcher sees them\n"
  "  --describe=search      the same of one kernel, with the configurations that a search for it would measure\n"
  "  -I DIR                 look for imported files here too\n"
  "  --depfile=FILE         write there, as a rule of make, what files the output is made of: the source and what it imports\n"
  "  -O0                    no LLVM optimisation\n"
  "  --passes=A,B,...       run these passes instead of the pipeline\n"
  "  --dump-after=PASS|all  print the IR after a pass (of several, dce.2), to standard error\n"
  "  --verify               check the IR after every pass\n"
  "  --tensors=WHICH        tiles copied as boxes of tensors: found (default), stated (by tensor_load and tensor_store), none\n"
  "  --locs                 print source positions in IR text\n"
  "  --remarks              say what was not optimised, and why\n"
  "  --no-line-info         leave .loc out of the PTX\n"
  "  --time-passes          print where the time went, to standard error\n"
  "  --diagnostics=text|json  errors for people, or one JSON object a line\n"
  "  --explain=ID           what a diagnostic means, with an example: E0211, or a runtime status such as 'fault'\n"
  "  --print-layout=LAYOUT  draw a layout, e.g. 'mma<128x64; 4x2>' or the text of one in a dump\n"
  "  --print-passes, --print-ops, --print-targets, --print-diags, --print-dtypes\n"
  "  --help, --version\n"
  "\n"
  "exit status: 0 success, 1 errors in the input, 2 misuse, 3 out of memory\n";

static int
usage(const char *fmt, const char *what)
{
  fputs("tilec: ", stderr);
  fprintf(stderr, fmt, what);
  fputs("\ntry 'tilec --help'\n", stderr);
  return EXIT_USAGE;
}

/* Every option but -o, -D and -I: for suggestions. */
static const char *const options[] = {
  "--emit", "--target", "--assume", "--kernel", "--passes", "--dump-after", "--verify", "--locs", "--remarks", "--no-line-info",
  "--time-passes", "--tensors", "--depfile", "--config", "--choices", "--form", "--prefix", "--jobs", "--cubin",
  "--standalone", "--diagnostics", "--explain",
  "--print-layout", "--print-passes", "--print-ops", "--print-targets",
  "--print-diags", "--print-dtypes", "--help", "--version",
};

static int
unknown_option(const char *arg)
{
  char name[64], text[160];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(arg, "="), arg);
  const char *close = tilec_suggest(name, options, sizeof options / sizeof options[0]);
  snprintf(text, sizeof text, "'%.60s' (did you mean '%s'?)", arg, close ? close : "");
  return close ? usage("unknown option %s", text) : usage("unknown option '%s'", arg);
}

static int
unknown_stage(const char *v)
{
  const char *names[sizeof stages / sizeof stages[0]], *close;
  char text[160];
  for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) names[i] = stages[i].name;
  close = tilec_suggest(v, names, sizeof stages / sizeof stages[0]);
  snprintf(text, sizeof text, "'%.60s'%s%s%s (ast, tile, placed, sched, llvm, ptx, cubin, c)", v, close ? "; did you mean '" : "",
           close ? close : "", close ? "'?" : "");
  return usage("unknown stage %s", text);
}

/* "--name=value" or "--name value": sets *value and moves *i; NULL value if it is not this option. */
static bool
option(int argc, char **argv, int *i, const char *name, const char **value)
{
  const char *arg = argv[*i];
  size_t n = strlen(name);
  *value = NULL;
  if (strncmp(arg, name, n)) return false;
  if (arg[n] == '=') *value = arg + n + 1;
  else if (arg[n]) return false;
  else if (*i + 1 < argc) *value = argv[++*i];
  return true;
}

/* What was printed has arrived, or the exit status says that it has not. */
static int
printed(void)
{
  if (!fflush(stdout) && !ferror(stdout)) return EXIT_OK;
  fprintf(stderr, "tilec: cannot write standard output: %s\n", strerror(errno));
  return EXIT_USAGE;
}

static int
print_text(const char *what)
{
  char *text = tilec_print_table(what);
  if (!text) return usage("there is no table of %s", what);
  fputs(text, stdout);
  tilec_free(text);
  return printed();
}

static int
explain(const char *id)
{
  char *text = tilec_explain(id);
  if (!text) return usage("there is no diagnostic '%s'; --print-diags lists them", id);
  fputs(text, stdout);
  tilec_free(text);
  return printed();
}

static int
parse_define(Cli *c, char *text)
{
  char *eq = strchr(text, '=');
  if (!eq || eq == text) return usage("-D wants NAME=VALUE, not '%s'", text);
  if (c->o.ndefines == MAX_LIST) return usage("too many defines; '%s' is the first that is", text);
  *eq = 0;
  c->defines[c->o.ndefines++] = (TilecDefine){text, eq + 1};
  return EXIT_OK;
}

static int
parse_fact(Cli *c, char *text)
{
  char message[160];
  TilecFact f;
  const char *wrong = fact_parse(text, &f);
  snprintf(message, sizeof message, "--assume%s %s", wrong && *wrong == 'w' ? "" : ":", wrong ? wrong : "");
  if (wrong) return usage(message, text);
  if (c->o.nfacts == MAX_LIST) return usage("too many assumptions; '%s' is the first that is", text);
  c->facts[c->o.nfacts++] = f;
  return EXIT_OK;
}

/* One more of --config or --form. */
static int
add_text(const char **list, size_t *n, const char *text)
{
  if (*n == AOT_LIST) return usage("too many of them; '%s' is the first that is", text);
  list[(*n)++] = text;
  return EXIT_OK;
}

static int
parse_jobs(Cli *c, const char *text)
{
  char *end;
  const unsigned long n = strtoul(text, &end, 10);
  if (!isdigit((unsigned char)*text) || *end || n < 1 || n > 64) return usage("--jobs wants a number from 1 to 64, not '%s'", text);
  c->aot.jobs = n;
  return EXIT_OK;
}

static int
add_folder(Cli *c, const char *folder)
{
  if (c->o.nimport_path == MAX_LIST) return usage("too many folders; '%s' is the first that is", folder);
  c->import_path[c->o.nimport_path++] = folder;
  return EXIT_OK;
}

static bool
parse_stage(Cli *c, const char *name)
{
  for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
    if (!strcmp(stages[i].name, name)) {
      c->emit = stages[i].emit;
      c->o.emit = c->emit >= EMIT_CUBIN ? TILEC_EMIT_PTX : (TilecEmit)c->emit;
      return true;
    }
  return false;
}

static const struct { const char *flag, *table; } tables[] = {
  {"--print-passes", "passes"}, {"--print-ops", "ops"}, {"--print-targets", "targets"},
  {"--print-diags", "diags"},   {"--print-dtypes", "dtypes"},
};

/* Options without a value. */
static bool
parse_switch(Cli *c, const char *arg)
{
  if (!strcmp(arg, "--verify")) c->o.verify = 1;
  else if (!strcmp(arg, "--locs")) c->o.locs = 1;
  else if (!strcmp(arg, "--no-line-info")) c->o.line_info = 0;
  else if (!strcmp(arg, "--time-passes")) c->o.time_passes = 1;
  else if (!strcmp(arg, "--remarks")) c->o.remarks = 1;
  else if (!strcmp(arg, "-O0")) c->o.opt_level = 0;
  else if (!strcmp(arg, "--cubin")) c->aot.cubin = true;
  else if (!strcmp(arg, "--standalone")) c->aot.standalone = true;
  else if (!strcmp(arg, "--config=tune")) c->aot.tune = true;
  else if (!strcmp(arg, "--describe")) c->describe = true;
  else if (!strcmp(arg, "--describe=search")) c->describe = c->search = true;
  else return false;
  return true;
}

static bool
parse_tensors(const char *word, int *out)
{
  static const char *const words[] = {"found", "stated", "none"};
  const int n = sizeof words / sizeof *words;
  for (*out = 0; *out < n && strcmp(word, words[*out]); ++*out) {}
  return *out < n;
}

/* Options with a value. Returns -1 if arg is none of them, else EXIT_OK or EXIT_USAGE. */
static int
parse_valued(Cli *c, int argc, char **argv, int *i)
{
  const char *arg = argv[*i], *v;
  if (option(argc, argv, i, "-o", &v)) c->output = v;
  else if (option(argc, argv, i, "--target", &v)) c->o.target = v;
  else if (option(argc, argv, i, "--kernel", &v)) c->o.kernel = v;
  else if (option(argc, argv, i, "--passes", &v)) c->o.passes = v;
  else if (option(argc, argv, i, "--dump-after", &v)) c->o.dump_after = v;
  else if (option(argc, argv, i, "--print-layout", &v)) c->print_layout = v;
  else if (option(argc, argv, i, "--prefix", &v)) c->aot.prefix = v;
  else if (option(argc, argv, i, "--choices", &v)) c->choices = v;
  else if (option(argc, argv, i, "--depfile", &v)) c->depfile = v;
  else if (option(argc, argv, i, "--jobs", &v)) {
    if (v && parse_jobs(c, v)) return EXIT_USAGE;
  } else if (option(argc, argv, i, "--config", &v)) {
    if (v && add_text(c->aot.configs, &c->aot.nconfigs, v)) return EXIT_USAGE;
  } else if (option(argc, argv, i, "--form", &v)) {
    if (v && add_text(c->aot.forms, &c->aot.nforms, v)) return EXIT_USAGE;
  } else if (option(argc, argv, i, "--tensors", &v)) {
    if (v && !parse_tensors(v, &c->o.tensors)) return usage("unknown choice of tensors '%s' (found, stated, none)", v);
  } else if (option(argc, argv, i, "--emit", &v)) {
    if (v && !parse_stage(c, v)) return unknown_stage(v);
  } else if (option(argc, argv, i, "--assume", &v)) {
    if (v && parse_fact(c, (char *)v)) return EXIT_USAGE;
  } else if (option(argc, argv, i, "--diagnostics", &v) || option(argc, argv, i, "--diagnostics-format", &v)) {
    if (v && strcmp(v, "json") && strcmp(v, "text")) return usage("unknown diagnostics format '%s' (text, json)", v);
    c->o.json = v && !strcmp(v, "json");
  } else if (option(argc, argv, i, "-I", &v)) {
    if (v && add_folder(c, v)) return EXIT_USAGE;
  } else if (!strncmp(arg, "-D", 2)) {
    char *text = arg[2] ? argv[*i] + 2 : *i + 1 < argc ? argv[++*i] : NULL;
    v = text;
    if (text && parse_define(c, text)) return EXIT_USAGE;
  } else {
    return -1;
  }
  return v ? EXIT_OK : usage("option '%s' needs a value", arg);
}

/* Returns -1 to go on, else the exit status. */
static int
parse_args(Cli *c, int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    const char *arg = argv[i];
    const char *id;
    int rc;
    if (option(argc, argv, &i, "--explain", &id)) return id ? explain(id) : usage("option '%s' needs a value", arg);
    if (!strcmp(arg, "--help") || !strcmp(arg, "-h")) return fputs(help, stdout), printed();
    if (!strcmp(arg, "--version")) return printf("tilec %s\n", tilec_version()), printed();
    for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
      if (!strcmp(arg, tables[t].flag)) return print_text(tables[t].table);
    if (parse_switch(c, arg)) continue;
    if ((rc = parse_valued(c, argc, argv, &i)) == EXIT_USAGE) return rc;
    if (rc == EXIT_OK) continue;
    if (arg[0] == '-' && arg[1]) return unknown_option(arg);
    if (c->file) return usage("one input file at a time; '%s' is the second", arg);
    c->file = arg;
  }
  if (c->depfile && (!c->output || !strcmp(c->output, "-")))
    return usage("%s", "--depfile tells of a file that is written: name it, -o OUT");
  return c->file || c->print_layout ? -1 : usage("%s", "no input file");
}

static int
write_output(const Cli *c, const char *text, size_t len)
{
  FILE *f = c->output && strcmp(c->output, "-") ? fopen(c->output, "wb") : stdout;
  struct stat st;
  bool ok, ordinary;
  if (!f) {
    fprintf(stderr, "tilec: cannot write %s: %s\n", c->output, strerror(errno));
    return EXIT_USAGE;
  }
  ordinary = f != stdout && !fstat(fileno(f), &st) && S_ISREG(st.st_mode);
  ok = fwrite(text, 1, len, f) == len;
  ok = (f == stdout ? fflush(f) : fclose(f)) == 0 && ok;
  if (ok) return EXIT_OK;
  fprintf(stderr, "tilec: cannot write %s: %s\n", f == stdout ? "standard output" : c->output, strerror(errno));
  if (ordinary) unlink(c->output);   /* half of it is worse than none */
  return EXIT_USAGE;
}

static int
write_cubin(const Cli *c, const TilecResult *r)
{
  char message[4096];
  size_t len;
  char *cubin = cubin_assemble(r->output, r->output_len, c->o.target, &len, message, sizeof message);
  int rc;
  if (!cubin) {
    fprintf(stderr, "tilec: %s\n", message);
    return EXIT_INPUT;
  }
  rc = write_output(c, cubin, len);
  free(cubin);
  return rc;
}

/* A file's name, or the first of some lines, as make reads it. */
static void
put_name(FILE *f, const char *name)
{
  for (; *name && *name != '\n'; name++) {
    if (*name == ' ' || *name == '#') putc('\\', f);
    if (*name == '$') putc('$', f);
    putc(*name, f);
  }
}

/* Each line of a list between two texts. */
static void
put_names(FILE *f, const char *lines, const char *before, const char *behind)
{
  for (const char *s = lines; *s; s += strcspn(s, "\n"), s += *s == '\n') {
    fputs(before, f);
    put_name(f, s);
    fputs(behind, f);
  }
}

/* "OUT: SOURCE CHOICES IMPORT...", and a rule for each import, so that one which is gone is no error where nothing imports it any more. */
static int
write_depfile(const Cli *c, const char *imports)
{
  FILE *f = fopen(c->depfile, "wb");
  bool ok = f != NULL;
  if (ok) {
    put_name(f, c->output);
    fputs(":", f);
    put_names(f, strcmp(c->file, "-") ? c->file : "", " ", "");
    put_names(f, c->choices ? c->choices : "", " ", "");
    put_names(f, imports, " ", "");
    fputs("\n", f);
    put_names(f, imports, "", ":\n");
    ok = !ferror(f);
    ok = !fclose(f) && ok;
  }
  if (ok) return EXIT_OK;
  fprintf(stderr, "tilec: cannot write %s: %s\n", c->depfile, strerror(errno));
  return EXIT_USAGE;
}

static int
report(const Cli *c, TilecResult *r)
{
  int rc;
  if (!r) return fputs("tilec: out of memory\n", stderr), EXIT_MEMORY;
  if (r->dump) fputs(r->dump, stderr);
  if (r->diagnostics) fputs(r->diagnostics, stderr);
  if (r->timing) fputs(r->timing, stderr);
  rc = r->status;
  if (!rc) rc = c->emit == EMIT_CUBIN && !c->print_layout ? write_cubin(c, r) : write_output(c, r->output, r->output_len);
  if (!rc && c->depfile) rc = write_depfile(c, r->imports);
  tilec_result_free(r);
  return rc;
}

/* Says why, by errno. */
static int
unreadable(const char *file)
{
  const int why = errno;
  fprintf(stderr, "tilec: cannot read %s: %s\n", file, strerror(why));
  return why == ENOMEM ? EXIT_MEMORY : EXIT_USAGE;
}

/* The source and its header. */
static int
emit_c(Cli *c, const char *name, const char *text, size_t len)
{
  c->aot.compile = &c->o;
  c->aot.name = name;
  c->aot.text = text;
  c->aot.len = len;
  c->aot.targets = c->o.target;
  c->aot.output = c->output;
  const size_t n = c->output ? strlen(c->output) : 0;
  if (n < 3 || strcmp(c->output + n - 2, ".c") != 0) return usage("%s", "--emit=c writes two files: name the source, -o NAME.c");
  c->aot.choices = c->choices ? textfile_read(c->choices, TEXTFILE_MOST, &(size_t){0}) : NULL;
  if (c->choices && !c->aot.choices) return unreadable(c->choices);
  int rc = aot_emit(&c->aot);
  free(c->aot.choices);
  if (rc || !c->depfile) return rc;
  TilecResult *r = tilec_describe(name, text, len, &c->o);
  if (!r || r->status == TILEC_NO_MEMORY) rc = EXIT_MEMORY;
  else rc = write_depfile(c, r->imports);
  tilec_result_free(r);
  return rc;
}

int
main(int argc, char **argv)
{
  Cli c = {.emit = TILEC_EMIT_PTX};
  size_t len;
  char *text;
  int rc;
  signal(SIGXFSZ, SIG_IGN);   /* a file that may not grow is an error of writing */
  tilec_options_default(&c.o);
  c.o.defines = c.defines;
  c.o.facts = c.facts;
  c.o.import_path = c.import_path;
  c.o.color = isatty(STDERR_FILENO) && !getenv("NO_COLOR");
  if ((rc = parse_args(&c, argc, argv)) >= 0) return rc;
  if (c.print_layout) return report(&c, tilec_print_layout(c.print_layout, 32));
  text = textfile_read(c.file, TEXTFILE_MOST, &len);
  if (!text) return unreadable(c.file);
  const char *name = strcmp(c.file, "-") ? c.file : "<stdin>";
  c.o.tuning = c.search ? TILEC_TUNING_SEARCH : c.describe ? TILEC_TUNING_CLAUSES : TILEC_TUNING_NONE;
  if (c.emit == EMIT_C && !c.describe) rc = emit_c(&c, name, text, len);
  else rc = report(&c, c.describe ? tilec_describe(name, text, len, &c.o) : tilec_compile(name, text, len, &c.o));
  free(text);
  return rc;
}
