/* choices.h - a file of what tuning chose, a line for each choice (tilejit_tuning_choice). */
#ifndef TILEC_TOOLS_CHOICES_H
#define TILEC_TOOLS_CHOICES_H
/* Put the line into the file, which need not be there, instead of one for the same target, kernel and arguments. NULL: the choice cannot be
 * written. 0, or 1 after saying on standard error what is wrong. */
int choices_keep(const char *path, const char *line);
#endif
