// SPDX-License-Identifier: Apache-2.0
#include "acc/launch/filtered_log.hpp"

#include <fcntl.h>

#include "acc/launch/channel.hpp"
#include "support/catch.hpp"
#include "support/read_all.hpp"

using namespace acc;
using namespace acc::launcher;

TEST_CASE("filtered_log: keeps the lines in which one of the words occurs, as they were shown", "[launch]") {
  Channel pipe = make_pipe();
  FilteredLog log(std::move(pipe.workers), {"apple", "z,z"}, [](const std::string&) {});
  log.take("an apple a day", "[0]:an apple a day\n");
  log.take("a pear", "apple[0]:a pear\n");
  log.take("az,z", "[1]:az,z\n");
  CHECK(test::read_all(pipe.ours.get()) == "[0]:an apple a day\n[1]:az,z\n");
}

TEST_CASE("filtered_log: a file that cannot be written is tried again", "[launch]") {
  std::vector<std::string> reasons;
  FilteredLog log(Descriptor(::open("/dev/full", O_WRONLY | O_CLOEXEC)), {"a"},
                  [&](const std::string& reason) { reasons.push_back(reason); });
  log.take("a", "a\n");
  log.take("a", "a\n");
  CHECK(reasons == std::vector<std::string>(2, "No space left on device"));
  CHECK(log.close() == 4);
}
