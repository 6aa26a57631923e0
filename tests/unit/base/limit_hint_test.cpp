// SPDX-License-Identifier: Apache-2.0
#include "acc/base/limit_hint.hpp"

#include <cerrno>

#include "support/catch.hpp"

namespace limit_hint_test {

TEST_CASE("limit_hint: names the limit behind an errno value", "[base]") {
  CHECK(acc::limit_hint(EMFILE).ends_with("ulimit -n"));
  CHECK(acc::limit_hint(EAGAIN) == "raise the limit of processes: ulimit -u, or pids.max of the cgroup");
  CHECK(acc::limit_hint(ENOENT).empty());
}

}  // namespace limit_hint_test
