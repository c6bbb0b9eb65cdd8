#include "sim_test.h"
void
test_fuzz(Test *t)
{
}
