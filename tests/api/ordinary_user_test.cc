#include "tests/support/ordinary_user.h"

#include <gtest/gtest.h>

TEST(OrdinaryUser, PassesAllTestsOfThisProgram) {
  sandglass::test::ExpectAllTestsPassAsOrdinaryUser();
}
