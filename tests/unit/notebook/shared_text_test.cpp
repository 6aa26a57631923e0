// SPDX-License-Identifier: Apache-2.0
#include "acc/notebook/shared_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/in_child.hpp"

namespace shared_text_test {

using namespace acc;
using namespace acc::detail;
using namespace acc::test;

TEST_CASE("shared_text: what a fork writes the other process reads", "[notebook]") {
  const SharedText text;
  CHECK(text.read().empty());
  const std::string large(std::size_t{9} << 20U, 'x');
  REQUIRE(in_child([&] {
            text.write(large);
            return 0;
          }) == 0);
  CHECK(text.read() == large);
}

TEST_CASE("shared_text: a shorter text replaces a longer one", "[notebook]") {
  const SharedText text;
  text.write("longer");
  text.write("short");
  CHECK(text.read() == "short");
}

TEST_CASE("shared_text: it is not lost where the standard streams are closed", "[notebook]") {
  CHECK(in_child([] {
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO}) ::close(stream);
          const SharedText first;
          const SharedText second;
          first.write("first");
          const Descriptor null(::open("/dev/null", O_RDWR));
          for (const int stream : {STDIN_FILENO, STDOUT_FILENO})
            if (stream != null.get()) ::dup2(null.get(), stream);
          second.write("second");
          return first.read() == "first" && second.read() == "second" ? 0 : 1;
        }) == 0);
}

}  // namespace shared_text_test
