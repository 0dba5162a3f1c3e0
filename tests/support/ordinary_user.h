// Runs all tests of the program once more, as a user without rights. One thread.
#pragma once

namespace sandglass::test {

// A test of the suite OrdinaryUser calls this; that suite is left out of the second run.
void ExpectAllTestsPassAsOrdinaryUser();

}  // namespace sandglass::test
