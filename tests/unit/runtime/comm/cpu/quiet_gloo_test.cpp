// SPDX-License-Identifier: Apache-2.0
#include "acc/runtime/comm/cpu/quiet_gloo.hpp"

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>

#include "support/catch.hpp"
#include "support/printed.hpp"

namespace quiet_gloo_test {

using acc::detail::QuietGloo;

TEST_CASE("quiet_gloo: what other threads print, and what is printed afterwards, is kept", "[runtime]") {
  const std::string text = acc::test::printed_to(stdout, [] {
    {
      [[maybe_unused]] const QuietGloo quiet;
      std::thread([] { std::cout << "of another thread" << std::endl; }).join();
    }
    std::cout << "afterwards" << std::endl;
  });
  CHECK(text == "of another thread\nafterwards\n");
}

#ifdef ACC_GLOO_PRINTS
TEST_CASE("quiet_gloo: what the thread that connects prints is dropped, in two threads too", "[runtime]") {
  const std::string text = acc::test::printed_to(stdout, [] {
    const QuietGloo quiet;
    std::cout << "[Gloo]" << std::endl;
    std::thread([] {
      const QuietGloo also_quiet;
      std::cout << "[Gloo]" << std::endl;
    }).join();
    std::cout << '[' << std::flush;
  });
  CHECK(text.empty());
}

TEST_CASE("quiet_gloo: a std::cout that was redirected meanwhile, or has failed, stays so", "[runtime]") {
  std::ostringstream mine;
  const std::string text = acc::test::printed_to(stdout, [&] {
    std::streambuf* during = nullptr;
    {
      const QuietGloo quiet;
      during = std::cout.rdbuf(mine.rdbuf());
    }
    std::cout << "mine";
    std::cout.rdbuf(during);
    {
      const QuietGloo quiet;
    }
    std::cout << "afterwards" << std::endl;
    std::cout.setstate(std::ios::badbit);
    {
      const QuietGloo quiet;
    }
    const bool has_failed = std::cout.bad();
    std::cout.clear();
    std::cout << has_failed << std::endl;
  });
  CHECK(mine.str() == "mine");
  CHECK(text == "afterwards\n1\n");
}
#endif

}  // namespace quiet_gloo_test
