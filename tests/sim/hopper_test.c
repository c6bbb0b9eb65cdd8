#include "sim_test.h"
void
test_hopper(Test *t)
{
}
