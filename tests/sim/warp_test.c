#include "sim_test.h"
void
test_warp(Test *t)
{
}
