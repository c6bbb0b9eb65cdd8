/* replay.c - a fuzz target on files instead of libFuzzer's inventions: TARGET FILE|FOLDER... */
#include "target.h"
#include <dirent.h>

static unsigned
replay_file(const char *path)
{
  FILE *f = fopen(path, "rb");
  if (!f)
    return 0;
  fseek(f, 0, SEEK_END);
  size_t len = (size_t)ftell(f);
  rewind(f);
  uint8_t *bytes = malloc(len ? len : 1);      /* no byte more: a read past the end is found */
  len = fread(bytes, 1, len, f);
  fclose(f);
  fprintf(stderr, "%s\n", path);               /* the last line before a fault */
  LLVMFuzzerTestOneInput(bytes, len);
  free(bytes);
  return 1;
}

static unsigned
replay(const char *path)
{
  DIR *d = opendir(path);
  struct dirent *e;
  char inside[4096];
  unsigned n = 0;
  if (!d)
    return replay_file(path);
  while ((e = readdir(d)) != NULL)
    if (e->d_name[0] != '.' && snprintf(inside, sizeof inside, "%s/%s", path, e->d_name) < (int)sizeof inside)
      n += replay_file(inside);
  closedir(d);
  return n;
}

int
main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    unsigned n = replay(argv[i]);
    printf("%s: %u inputs\n", argv[i], n);
    if (!n)
      return 2;
  }
  return argc < 2 ? 2 : 0;
}
