#include "sim_test.h"
void
test_faults(Test *t)
{
}
