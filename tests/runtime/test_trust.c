/* What the cache does not believe, and what it does not fall over: directories and entries that others could have written, links, pipes
 * and devices in an entry's place, entries that are too large, limits on the size of files. What only root can set up (files of other
 * users) is left out for others. */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include "entries.h"

static char root[] = "/tmp/tilec-trust-XXXXXX";
static char dir[100], entry[400], good[512];   /* a directory with key 1 in it: where the entry lies, and its bytes */
static size_t good_len;

static void
make_entry(void)
{
  remove_all(dir);
  Cache *c = cache_open(dir, 0);
  cache_put(c, key_of(1), "the text", 8);
  CHECK(holds(c, key_of(1), "the text"));
  cache_close(c);
  DIR *d = opendir(dir);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    if (e->d_name[0] != '.')
      snprintf(entry, sizeof entry, "%s/%s", dir, e->d_name);
  closedir(d);
  good_len = slurp(entry, good, sizeof good);
}

/* Through this name nothing is found and nothing is kept, and the reason holds these words. */
static void
refused(const char *name, const char *words)
{
  char why[400] = "", cut[5];
  Cache *c = cache_open(name, 0);
  CHECK(c && empty(c, key_of(1)));
  cache_put(c, key_of(2), "more", 4);
  CHECK(empty(c, key_of(2)));
  CHECK(cache_trouble(c, why, sizeof why) == strlen(why) && cache_trouble(c, cut, sizeof cut) > 5 && strlen(cut) == 4);
  if (!strstr(why, words))
    fprintf(stderr, "%s: \"%s\", expected \"%s\"\n", name, why, words);
  CHECK(strstr(why, words));
  cache_close(c);
}

static void
believed(const char *name)
{
  char why[400] = "x";
  Cache *c = cache_open(name, 0);
  CHECK(c && holds(c, key_of(1), "the text") && !cache_trouble(c, why, sizeof why) && !*why);
  cache_close(c);
}

static void
test_directories(void)
{
  char link_name[160], through[200];
  snprintf(link_name, sizeof link_name, "%s/link", root);
  make_entry();
  believed(dir);
  CHECK(!chmod(dir, 0777));
  refused(dir, "others may write to it");
  CHECK(!chmod(dir, 01777));
  refused(dir, "others may write to it");
  CHECK(!chmod(dir, 0770));               /* of a group: its entries are asked */
  believed(dir);
  CHECK(!symlink(dir, link_name));
  refused(link_name, "symbolic link");
  snprintf(through, sizeof through, "%s/", link_name);
  refused(through, "symbolic link");
  snprintf(through, sizeof through, "%s/.//.", link_name);
  refused(through, "symbolic link");
  unlink(link_name);
  CHECK(!symlink(root, link_name));       /* on the way it may be one */
  snprintf(through, sizeof through, "%s/cache", link_name);
  believed(through);
  unlink(link_name);
  if (!geteuid()) {
    CHECK(!chown(dir, 12345, 12345));
    refused(dir, "another user");
    CHECK(!chown(dir, 0, 0));
  } else {
    refused("/tmp", "another user");
  }
  believed(dir);
}

/* The entry is there but is not used; keeping it again puts a good one in its place. */
static void
entry_refused(const char *what, const char *words)
{
  char why[400];
  Cache *c = cache_open(dir, 0);
  alarm(10);                              /* it must not wait */
  if (!empty(c, key_of(1)))
    fprintf(stderr, "believed: %s\n", what);
  CHECK(empty(c, key_of(1)));
  cache_trouble(c, why, sizeof why);
  if (!strstr(why, words))
    fprintf(stderr, "%s: \"%s\", expected \"%s\"\n", what, why, words);
  CHECK(strstr(why, words));
  cache_put(c, key_of(1), "the text", 8);
  CHECK(holds(c, key_of(1), "the text"));
  alarm(0);
  cache_close(c);
}

static void
bind_socket(const char *path)
{
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  CHECK(s >= 0 && snprintf(a.sun_path, sizeof a.sun_path, "%s", path) < (int)sizeof a.sun_path);
  CHECK(!bind(s, (struct sockaddr *)&a, sizeof a));
  close(s);
}

static void
test_entries(void)
{
  char elsewhere[160];
  snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", root);
  make_entry();
  CHECK(!chmod(entry, 0620));
  entry_refused("an entry that its group may write to", "others may write to it");
  CHECK(!chmod(entry, 0602));
  entry_refused("an entry that all may write to", "others may write to it");
  CHECK(!chmod(entry, 0644));             /* reading harms nobody */
  believed(dir);
  if (!geteuid()) {
    CHECK(!chown(entry, 12345, 12345));
    entry_refused("an entry of another user", "another user");
    CHECK(!unlink(entry) && !mknod(entry, S_IFCHR | 0600, makedev(1, 5)));   /* /dev/zero */
    entry_refused("a device", "");
  }
  CHECK(!unlink(entry) && !mkfifo(entry, 0600));
  entry_refused("a pipe", "no ordinary file");
  CHECK(!unlink(entry));
  bind_socket(entry);
  entry_refused("a socket", "");
  CHECK(!unlink(entry));
  spit(elsewhere, good, good_len);
  CHECK(!chmod(elsewhere, 0600) && !symlink(elsewhere, entry));
  entry_refused("a link to a good entry", "");
  CHECK(!unlink(entry) && !symlink("/dev/zero", entry));
  entry_refused("a link to a device", "");
  CHECK(!unlink(entry) && !mkdir(entry, 0700));   /* nothing can be kept here */
  Cache *c = cache_open(dir, 0);
  cache_put(c, key_of(1), "the text", 8);
  CHECK(empty(c, key_of(1)));
  cache_close(c);
  rmdir(entry);
}

/* A child that may have 100 MB: a large entry is refused before it is read. It is sparse, and right but for its size. */
static void
test_large(void)
{
  uint64_t size = UINT64_C(700) << 20, len;
  struct rusage used;
  make_entry();
  memcpy(&len, good + 24, 8);
  CHECK(len == 8);
  len = size - 48;
  memcpy(good + 24, &len, 8);
  spit(entry, good, good_len);
  CHECK(!truncate(entry, (off_t)size));
  int status;
  pid_t child = fork();
  if (!child) {
    Cache *c = cache_open(dir, 0);
    CHECK(empty(c, key_of(1)) && access(entry, F_OK));
    CHECK(!getrusage(RUSAGE_SELF, &used));
    _exit(used.ru_maxrss > 100 << 10);
  }
  CHECK(waitpid(child, &status, 0) == child && !status);
  spit(entry, good, good_len);            /* shorter than it says */
  CHECK(!chmod(entry, 0600));
  Cache *c = cache_open(dir, 0);
  CHECK(empty(c, key_of(1)) && access(entry, F_OK));
  cache_close(c);
}

static volatile sig_atomic_t signalled;

static void
on_signal(int number)
{
  signalled = 1;
}

/* Files may have 100 bytes: nothing is kept, nothing is left behind, and the process lives and sees no signal. */
static void
small_files(int waiting)
{
  static char big[1000];
  char why[400];
  struct rlimit limit = {100, RLIM_INFINITY};
  sigset_t set, now;
  CHECK(!setrlimit(RLIMIT_FSIZE, &limit));
  sigemptyset(&set);
  sigaddset(&set, SIGXFSZ);
  signal(SIGXFSZ, waiting ? on_signal : SIG_DFL);
  if (waiting) {
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGXFSZ);
  }
  Cache *c = cache_open(dir, 0);
  cache_put(c, key_of(3), big, sizeof big);
  CHECK(empty(c, key_of(3)) && cache_trouble(c, why, sizeof why) && strstr(why, "too large"));
  cache_put(c, key_of(4), "x", 1);
  CHECK(holds(c, key_of(4), "x"));
  CHECK(!sigpending(&now) && sigismember(&now, SIGXFSZ) == waiting && !signalled);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
  CHECK(signalled == waiting);            /* the caller's own has waited */
  cache_close(c);
  int n = 0;
  DIR *d = opendir(dir);
  for (struct dirent *e; (e = readdir(d)) != NULL;)
    n += strncmp(e->d_name, ".new", 4) == 0;
  closedir(d);
  _exit(n);
}

static void
test_limits(void)
{
  for (int waiting = 0; waiting < 2; waiting++) {
    int status;
    pid_t child = fork();
    if (!child)
      small_files(waiting);
    CHECK(waitpid(child, &status, 0) == child && !status);
  }
}

static void
test_sizes(void)
{
  static char big[3000];
  static const struct { const char *text; int limited; } sizes[] = {
    {"2K", 1}, {"2048", 1}, {"1M", 0}, {"20000000000000000000", 0}, {"18014398509481986K", 0}, {"-1", 0}, {"2KK", 0}, {"", 0},
    {"K", 0}, {"0", 0},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    setenv("TILEC_CACHE_SIZE", sizes[i].text, 1);
    Cache *c = cache_open(dir, 0);
    remove_all(dir);
    cache_put(c, key_of(9), big, sizeof big);
    if (empty(c, key_of(9)) != sizes[i].limited)
      fprintf(stderr, "TILEC_CACHE_SIZE=%s\n", sizes[i].text);
    CHECK(empty(c, key_of(9)) == sizes[i].limited);
    cache_close(c);
  }
  unsetenv("TILEC_CACHE_SIZE");
  CHECK(!cache_open("", 0) && !cache_trouble(NULL, big, 10) && !*big);
}

int
main(void)
{
  umask(0);
  CHECK(mkdtemp(root));
  snprintf(dir, sizeof dir, "%s/cache", root);
  test_directories();
  test_entries();
  test_large();
  test_limits();
  test_sizes();
  remove_all(root);
  return 0;
}
