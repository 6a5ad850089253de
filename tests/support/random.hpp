// Randomness that can be replayed: the seed is printed when the binary starts, and RECIBO_TEST_SEED sets it.
#pragma once

#include <cstdint>
#include <random>

namespace recibo::test {

// The seed of this run.
std::uint64_t seed();

// A generator for the running test: the same for the same seed and test name, whatever other tests run.
std::mt19937_64 random_for_test();

}  // namespace recibo::test
