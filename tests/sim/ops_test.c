#include "sim_test.h"
void
test_ops(Test *t)
{
}
