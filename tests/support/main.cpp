// SPDX-License-Identifier: Apache-2.0
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include "support/catch.hpp"

#if __has_include(<catch2/catch_all.hpp>)
int main(int argc, char** argv) {
  return Catch::Session().run(argc, argv);
}
#endif
